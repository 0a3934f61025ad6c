// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/reclaim.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "scheduler/policy/operations.h"
#include "scheduler/safety/safety.h"

namespace sluice::scheduler {

namespace {

struct SpareRun {
  const Job* job;
  Extent extent;
};

std::optional<Decision> TryReclaim(const Ledger& ledger, const Job& job, const Extents& extents) {
  Decision decision;
  decision.kind = Decision::Kind::kReclaim;
  decision.job = job.id;
  decision.reclaim = extents;
  decision.terms = job.terms;
  const auto change = ChangeOf(decision, {}, ledger);
  if (!change || !NoWorse(ledger, {ledger, *change})) return std::nullopt;
  return decision;
}

void Look(const Ledger& ledger, SpareCursor* cursor) {
  if (cursor != nullptr) cursor->pieces -= static_cast<int64_t>(ledger.map().spans().size());
}

/// The first that may, and those of its job behind it as far as they may together: half as many
/// each time that they may not.
std::optional<Decision> ReclaimSome(const Ledger& ledger, const std::vector<SpareRun>& runs,
                                    SpareCursor* cursor, bool* left) {
  bool tried = false;
  SpareCursor all;
  SpareCursor& at = cursor == nullptr ? all : *cursor;
  for (size_t i = 0; i < runs.size();) {
    at.job = runs[i].job->id;
    at.offset = runs[i].extent.offset;
    // One at a time is tried, or it would never come to an end.
    *left = cursor != nullptr && tried && cursor->pieces <= 0;
    if (*left) return std::nullopt;
    tried = true;
    Look(ledger, cursor);
    Extents extents;
    for (size_t k = i; k < runs.size() && k - i < at.together; ++k) {
      if (runs[k].job != runs[i].job) break;
      extents.push_back(runs[k].extent);
    }
    const size_t together = extents.size();
    if (auto decision = TryReclaim(ledger, *runs[i].job, Merge(std::move(extents)))) {
      at.together = 2 * together;
      return decision;
    }
    if (together == 1) ++i;
    at.together = std::max<size_t>(together / 2, 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Decision> Reclaim(const Ledger& ledger, SpareCursor* cursor, bool* left) {
  const auto has_some = [](const Job& job) { return job.spare > 0; };
  *left = cursor != nullptr && cursor->pieces <= 0 &&
          std::any_of(ledger.jobs().begin(), ledger.jobs().end(), has_some);
  if (*left) return std::nullopt;
  const bool anew = cursor == nullptr || cursor->job == kNoJob;
  std::vector<SpareRun> runs;
  for (const Job& job : ledger.jobs()) {
    if (job.spare == 0) continue;
    const Extents spare = ledger.map().Held(job.id, UnitState::kSpare);
    if (anew || spare.size() == 1) {
      Look(ledger, cursor);
      if (auto decision = TryReclaim(ledger, job, spare)) return decision;
    }
    if (spare.size() == 1) continue;
    Look(ledger, cursor);
    const SpareRuns known(ledger, job);
    for (const Extent& extent : spare) {
      if (known.MayBeFreed(extent)) runs.push_back({&job, extent});
    }
  }
  if (cursor != nullptr) {
    const auto first = std::partition_point(runs.begin(), runs.end(), [&](const SpareRun& run) {
      return std::pair(run.job->id, run.extent.offset) < std::pair(cursor->job, cursor->offset);
    });
    std::rotate(runs.begin(), first, runs.end());
  }
  auto decision = ReclaimSome(ledger, runs, cursor, left);
  if (cursor != nullptr && !decision && !*left) *cursor = {.pieces = cursor->pieces};
  return decision;
}

}  // namespace sluice::scheduler
