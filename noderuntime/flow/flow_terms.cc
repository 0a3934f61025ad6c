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
using scheduler::RequestKind;

bool Flow::MayYield(JobId id) const {
  const FlowJob* job = Find(id);
  const scheduler::Job* known = ledger_.Find(id);
  return job != nullptr && known != nullptr && job->spec.limit == 0 &&
         known->phase == Phase::kWaiting;
}

Status Flow::SetTerms(JobId id, Units limit, int32_t priority) {
  FlowJob* job = Get(id);
  const bool other = job == nullptr || limit != job->spec.limit;
  if (other) {
    if (Status s = TakesNothing(id, limit); !s.ok()) return s;
  }
  if (job == nullptr) return {};
  JobSpec wanted = job->spec;
  wanted.limit = limit;
  wanted.request = limit > 0 ? std::min(wanted.request, limit) : wanted.request;
  wanted.priority = priority;
  if (other && job->refusal.empty()) {
    if (Status s = FitsBesideOthers(*job, wanted); !s.ok()) return s;
  }
  if (other && job->admitted) {
    Result<Ledger> next = UnderTerms(wanted);
    if (!next.ok()) return next.status();
    const Units outside = ledger_.Find(id)->outside;
    ReplaceLedger(std::move(*next));
    if (ledger_.Find(id)->outside != outside) {
      LogOutside(id, outside_.families(id).begin()->first);
    }
  }
  ++changes_;
  job->spec = std::move(wanted);
  if (scheduler::Request* waits = RequestOf(id)) waits->priority = priority;
  if (!other || frozen_) return {};
  TryAdmit(id);
  Decide();
  return {};
}

/// Whether the job keeps all that it has, was promised and is known to need. One without a session
/// is asked what it left outside the pool; what a dead one has is gone when it begins again.
Status Flow::TakesNothing(JobId id, Units limit) const {
  const scheduler::Job* known = ledger_.Find(id);
  if (limit == 0 || (known != nullptr && known->phase == Phase::kDying)) return {};
  Units needs = 0;
  const FlowJob* job = Find(id);
  if (job != nullptr && job->published.has_value()) needs = job->published->plan.peak_units;
  const Request* waits = RequestOf(id);
  // A newcomer that asks for more than its limit never begins.
  if (waits != nullptr && waits->kind == RequestKind::kNewcomer) needs = waits->units;
  const auto left = outside_.jobs().find(id);
  const std::string who = known != nullptr                ? known->Title()
                          : left != outside_.jobs().end() ? left->second.title
                                                          : "job " + std::to_string(id);
  const scheduler::LeastLimit least =
      LeastLimitOf(known != nullptr ? *known : scheduler::Job(), needs, OutsideUnits(id, limit, 0));
  return CheckLimit(ledger_, who, limit, least);
}

/// What no ledger says of other terms: the budget that was asked for, and for a job that waits to
/// be admitted what it will be asked then.
Status Flow::FitsBesideOthers(const FlowJob& job, const JobSpec& wanted) const {
  if (Status s = CheckGivenLimit(wanted); !s.ok()) return s;
  const bool raises = job.spec.limit == 0 || wanted.limit > job.spec.limit;
  if (job.admitted || !raises || !EverythingMeasured()) return {};
  return WhyNotAdmitted(wanted);
}

/// The ledger with other terms for a job that it knows. What it has outside the pool counts under a
/// given limit alone.
Result<scheduler::Ledger> Flow::UnderTerms(const JobSpec& wanted) const {
  const JobId id = wanted.id;
  const scheduler::Job& known = *ledger_.Find(id);
  const Units limit = wanted.limit > 0 ? wanted.limit : known.limit;
  // All of the limit of a job that gives nothing back is reserved.
  const bool whole = options_.spatial || known.settled;
  const Units request = whole ? limit : std::min(known.request, limit);
  Ledger next = ledger_;
  Status set;
  // A request is never above its limit, on the way neither.
  if (request < known.request) set = next.SetRequest(id, request);
  if (set.ok()) set = next.SetLimit(id, limit);
  if (set.ok() && request > known.request) {
    if (options_.spatial) {
      set = next.SetRequest(id, request);
    } else {
      // As far as there is room: it may grow beyond, where that is safe.
      SetRequest(&next, id, request, [this](JobId other) { return MayYield(other); });
    }
  }
  if (set.ok()) set = next.SetOutside(id, OutsideUnits(id, wanted.limit, 0));
  if (!set.ok()) return set;
  return next;
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
