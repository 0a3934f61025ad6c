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
/// Of one job in a turn. A client has a handful on their way; one that has thousands waits longer.
constexpr size_t kLooksPerPoll = 1024;
constexpr size_t kFinishedPerPoll = 1024;

}  // namespace

/// What was reached stays so: a mark only grows.
bool Flow::FenceReached(const FlowJob& job, PendingRelease* release) {
  for (; release->reached < release->fence.size(); ++release->reached) {
    const protocol::FenceTerm& term = release->fence[release->reached];
    // Acquire: whoever is granted these bytes starts after this load.
    const uint64_t mark = job.pages.mark->mark[term.slot].load(std::memory_order_acquire);
    if (!protocol::MarkReached(mark, term.value)) return false;
  }
  return true;
}

void Flow::FinishRelease(JobId id, const PendingRelease& release) {
  const scheduler::ReleaseId number = release.id + (options_.faults.misnumber_fences ? 1 : 0);
  if (!Must(id, ledger_.Fenced(id, number))) return;
  // Published (and poisoned) before anything is decided: nobody has been granted them.
  sink_->HolderChanged(release.extents, scheduler::kNoJob);
  Record record = RecordFor(EventKind::kFenced, id);
  record.release = release.id;
  Log(std::move(record));
}

bool Flow::CollectFences(JobId id, FlowJob* job) {
  job->next_fence = 0;
  return CollectFences(id, job, job->releases.size(), job->releases.size());
}

/// Looks at no more than `most` of them, behind those of the call before, and finishes no more than
/// `finished`.
bool Flow::CollectFences(JobId id, FlowJob* job, size_t most, size_t finished) {
  std::vector<PendingRelease>& releases = job->releases;
  if (job->next_fence >= releases.size()) job->next_fence = 0;
  size_t kept = job->next_fence;
  size_t next = kept;
  for (; next < releases.size() && most > 0 && finished > 0; ++next, --most) {
    if (FenceReached(*job, &releases[next])) {
      FinishRelease(id, releases[next]);
      --fences_pending_;
      --finished;
    } else {
      if (kept != next) releases[kept] = std::move(releases[next]);
      ++kept;
    }
  }
  const bool some = kept != next;
  releases.erase(releases.begin() + static_cast<std::ptrdiff_t>(kept),
                 releases.begin() + static_cast<std::ptrdiff_t>(next));
  job->next_fence = kept;
  if (some) NoticeFences(id);
  return some;
}

bool Flow::PollFences(JobId id, FlowJob* job) {
  return CollectFences(id, job, kLooksPerPoll, kFinishedPerPoll);
}

void Flow::PollFences(uint64_t now_ns) {
  bool some = again_at_ns_ != 0 && again_at_ns_ <= now_ns;
  const bool places = PlacesMatter();
  if (fences_pending_ == 0 && !places && !some) return;
  now_ns_ = now_ns;
  for (auto& [id, job] : jobs_) {
    some = PollFences(id, &job) || some;
    if (places) some = ReadRing(id, &job, kRecordsPerPoll) || some;
  }
  if (some) Decide();
}

}  // namespace sluice::flow
