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

/// Of one job: all together; then the first run that may, and those behind it as far as they may
/// together, half as many each time that they may not. `bounded`: no further than the budget
/// reaches, but one run at a time, or it would never come to an end.
std::optional<Decision> ReclaimOf(const Ledger& ledger, const Job& job, bool bounded,
                                  SpareCursor::Place* at, bool* left) {
  const auto look = [&] { at->pieces -= static_cast<int64_t>(ledger.map().spans().size()); };
  const Extents spare = ledger.map().Held(job.id, UnitState::kSpare);
  const bool in_the_middle = at->begun;
  if (!in_the_middle || spare.size() == 1) {
    look();
    if (auto decision = TryReclaim(ledger, job, spare)) return decision;
  }
  if (spare.size() == 1) return std::nullopt;
  at->begun = true;
  look();
  const SpareRuns known(ledger, job);
  Extents runs;
  for (const Extent& extent : spare) {
    if (extent.offset >= at->offset && known.MayBeFreed(extent)) runs.push_back(extent);
  }
  bool tried = false;
  for (size_t i = 0; i < runs.size();) {
    at->offset = runs[i].offset;
    *left = bounded && tried && at->pieces <= 0;
    if (*left) return std::nullopt;
    tried = true;
    look();
    const size_t together = std::min(at->together, runs.size() - i);
    const auto first = runs.begin() + static_cast<std::ptrdiff_t>(i);
    Extents extents(first, first + static_cast<std::ptrdiff_t>(together));
    if (auto decision = TryReclaim(ledger, job, Merge(std::move(extents)))) {
      at->together = 2 * together;
      return decision;
    }
    if (together == 1) ++i;
    at->together = std::max<size_t>(together / 2, 1);
  }
  // A round ends; the next one begins with all together. What was tried before this call was tried
  // in another state.
  *at = {.pieces = at->pieces};
  *left = bounded && in_the_middle;
  return std::nullopt;
}

}  // namespace

void SpareCursor::Tick() {
  for (auto& [job, place] : places) place.pieces = std::min(kPieces, place.pieces + kPiecesInATick);
}

std::optional<Decision> Reclaim(const Ledger& ledger, SpareCursor* cursor, bool* left) {
  *left = false;
  if (cursor != nullptr) {
    std::erase_if(cursor->places,
                  [&](const auto& place) { return ledger.Find(place.first) == nullptr; });
  }
  for (const Job& job : ledger.jobs()) {
    if (job.spare == 0) continue;
    SpareCursor::Place anew;
    SpareCursor::Place* at = cursor == nullptr ? &anew : &cursor->places[job.id];
    bool left_of_it = cursor != nullptr && at->pieces <= 0;
    if (!left_of_it) {
      if (auto decision = ReclaimOf(ledger, job, cursor != nullptr, at, &left_of_it)) {
        return decision;
      }
    }
    *left = *left || left_of_it;
  }
  return std::nullopt;
}

}  // namespace sluice::scheduler
