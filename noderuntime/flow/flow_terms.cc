// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Limits and requests of the jobs: who was told what, and what may still change.
#include <algorithm>
#include <utility>

#include "noderuntime/flow/flow.h"
#include "scheduler/ledger/limits.h"

namespace sluice::flow {

using scheduler::EventKind;
using scheduler::Phase;
using scheduler::Record;

bool Flow::MayYield(JobId id) const {
  const FlowJob* job = Find(id);
  const scheduler::Job* known = ledger_.Find(id);
  return job != nullptr && known != nullptr && job->spec.limit == 0 &&
         known->phase == Phase::kWaiting;
}

Status Flow::SetTerms(JobId id, Units limit, int32_t priority) {
  FlowJob* job = Get(id);
  if (job == nullptr) return {};
  const scheduler::Job* known = ledger_.Find(id);
  const bool told = known != nullptr && known->phase != Phase::kWaiting;
  if (limit != job->spec.limit && told) {
    // An iteration that was measured needs this again.
    const Units needs = job->published.has_value() ? job->published->plan.peak_units : 0;
    if (limit != 0 && limit < needs) {
      return Status(StatusCode::kFailedPrecondition,
                    "limit " + ledger_.Bytes(limit) + ": " + known->Title() + " needs " +
                        ledger_.Bytes(needs) + " in each iteration; allowed: from that");
    }
    Ledger next = ledger_;
    if (Status s = next.SetLimit(id, limit); !s.ok()) return s;
    ReplaceLedger(std::move(next));
  }
  job->spec.limit = limit;
  job->spec.priority = priority;
  if (scheduler::Request* waits = RequestOf(id)) waits->priority = priority;
  return {};
}

void Flow::PublishLimit(JobId id) {
  const scheduler::Job* known = ledger_.Find(id);
  if (known == nullptr || known->phase == Phase::kWaiting || known->phase == Phase::kDying) return;
  Get(id)->pages.daemon->limit_units.store(known->limit, std::memory_order_release);
}

void Flow::ReplaceLedger(Ledger next) {
  const Ledger before = std::exchange(ledger_, std::move(next));
  // Whoever makes room comes first, so that every line of the log leaves I0 true.
  for (const bool falling : {true, false}) {
    for (const scheduler::Job& job : ledger_.jobs()) {
      const scheduler::Job* old = before.Find(job.id);
      if (job.id == scheduler::kBeyondBudget) continue;  // has its own lines
      if (old == nullptr || (old->limit == job.limit && old->request == job.request)) continue;
      if ((job.limit <= old->limit && job.request <= old->request) == falling) LogTerms(*old, job);
    }
  }
}

void Flow::LogTerms(const scheduler::Job& old, const scheduler::Job& job) {
  // Settling writes its own record, which carries both.
  if (job.settled == old.settled) {
    Record record = RecordFor(EventKind::kLimit, job.id);
    record.limit = job.limit;
    record.request = job.request;
    Log(std::move(record));
  }
  if (old.limit == job.limit) return;
  PublishLimit(job.id);
  // A job that has not begun was not told anything yet.
  if (job.phase != Phase::kWaiting) {
    sink_->Notice(job.id, 0, {"limit is now " + ledger_.Bytes(job.limit)});
  }
}

void Flow::GrowLimit(JobId id, Units more) {
  const FlowJob* job = Find(id);
  const scheduler::Job* known = ledger_.Find(id);
  if (job->spec.limit > 0) return;
  Ledger next = ledger_;
  // Nobody limited this job: what the others were promised is the only bound.
  const Units most = next.LargestLimit(id, known->request);
  if (more > most || known->leased > most - more) return;
  const Units limit = std::min(most, scheduler::WithTenth(known->leased + more));
  if (next.SetLimit(id, limit).ok()) ReplaceLedger(std::move(next));
}

}  // namespace sluice::flow
