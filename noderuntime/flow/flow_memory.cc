// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Releases and fences: how units get from a client back into the pool.
#include <algorithm>

#include "noderuntime/flow/flow.h"

namespace sluice::flow {

using scheduler::EventKind;
using scheduler::Record;

namespace {

constexpr size_t kRecordsPerPoll = 4096;

}  // namespace

bool Flow::FenceReached(const FlowJob& job, const PendingRelease& release) const {
  return std::all_of(
      release.fence.begin(), release.fence.end(), [&](const protocol::FenceTerm& term) {
        // Acquire: whoever is granted these bytes starts after this load.
        const uint64_t mark = job.pages.mark->mark[term.slot].load(std::memory_order_acquire);
        return protocol::MarkReached(mark, term.value);
      });
}

void Flow::FinishRelease(JobId id, const PendingRelease& release) {
  // Published (and poisoned) while the ledger still counts them as held: nobody can be granted
  // them.
  sink_->HolderChanged(release.extents, scheduler::kNoJob);
  Record record = RecordFor(EventKind::kFenced, id);
  record.release = release.id;
  const scheduler::ReleaseId number = release.id + (options_.faults.misnumber_fences ? 1 : 0);
  if (Must(id, ledger_.Fenced(id, number))) Log(std::move(record));
}

bool Flow::CollectFences(JobId id, FlowJob* job) {
  size_t kept = 0;
  for (size_t i = 0; i < job->releases.size(); ++i) {
    if (FenceReached(*job, job->releases[i])) {
      FinishRelease(id, job->releases[i]);
      --fences_pending_;
    } else {
      if (kept != i) job->releases[kept] = std::move(job->releases[i]);
      ++kept;
    }
  }
  const bool some = kept != job->releases.size();
  job->releases.resize(kept);
  if (some) NoticeFences(id);
  return some;
}

void Flow::PollFences(uint64_t now_ns) {
  bool some = again_at_ns_ != 0 && again_at_ns_ <= now_ns;
  const bool places = PlacesMatter();
  if (fences_pending_ == 0 && !places && !some) return;
  now_ns_ = now_ns;
  for (auto& [id, job] : jobs_) {
    some = CollectFences(id, &job) || some;
    if (places) some = ConsumeRing(id, &job, kRecordsPerPoll) || some;
  }
  if (some) Decide();
}

}  // namespace sluice::flow
