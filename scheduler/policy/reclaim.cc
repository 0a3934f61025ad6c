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

/// The first that may, and those of its job behind it as far as they may together: half as many
/// each time that they may not.
std::optional<Decision> ReclaimSome(const Ledger& ledger, const std::vector<SpareRun>& runs,
                                    SpareCursor* cursor, bool* left) {
  SpareCursor all;
  SpareCursor& at = cursor == nullptr ? all : *cursor;
  uint32_t trials = 0;
  for (size_t i = 0; i < runs.size();) {
    at.job = runs[i].job->id;
    at.offset = runs[i].extent.offset;
    *left = cursor != nullptr && trials++ == SpareCursor::kTrials;
    if (*left) return std::nullopt;
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
  *left = false;
  std::vector<SpareRun> runs;
  for (const Job& job : ledger.jobs()) {
    if (job.spare == 0) continue;
    const Extents spare = ledger.map().Held(job.id, UnitState::kSpare);
    if (auto decision = TryReclaim(ledger, job, spare)) return decision;
    if (spare.size() < 2) continue;
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
  return ReclaimSome(ledger, runs, cursor, left);
}

}  // namespace sluice::scheduler
