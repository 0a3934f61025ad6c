// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <vector>

#include "scheduler/ledger/types.h"

namespace sluice::scheduler {

/// Neighbouring units that are alike.
struct Span {
  Units offset = 0;
  Units length = 0;
  UnitState state = UnitState::kFree;
  JobId holder = kNoJob;  // kNoJob exactly when free
  ReleaseId release = 0;  // only while unfenced
  Units end() const { return offset + length; }
  friend bool operator==(const Span&, const Span&) = default;
};

/// Who holds which unit. Kept as sorted, merged spans that cover the pool, so that a copy and a
/// walk cost by the number of pieces (tens) and not by the number of units (ten thousand). It knows
/// no rules and checks nothing: that is the ledger's business.
class PoolMap {
 public:
  explicit PoolMap(Units units);

  Units units() const { return units_; }
  const std::vector<Span>& spans() const { return spans_; }
  /// The span that holds the unit at `offset`; the end of spans() beyond the pool.
  std::vector<Span>::const_iterator At(Units offset) const;

  /// Every unit of `extent` is in `state` and held by `holder`. False when it leaves the pool.
  bool All(const Extent& extent, UnitState state, JobId holder) const;
  /// Overwrites `extent`, which must lie in the pool (All tells) and may cover spans of any state.
  void Set(const Extent& extent, UnitState state, JobId holder, ReleaseId release = 0);
  /// The same for many, sorted and merged: one walk over the pool, however many they are.
  void Set(const Extents& extents, UnitState state, JobId holder, ReleaseId release = 0);

  /// Runs of free units, by offset, merged. Kept, as every decision asks for them.
  const Extents& FreeRuns() const { return free_runs_; }
  /// Runs of units of `holder` in `state`, by offset, merged over release ids.
  Extents Held(JobId holder, UnitState state) const;
  /// Everything `holder` holds, whatever the state.
  Extents Held(JobId holder) const;
  Units free() const { return free_; }
  /// Spans that `holder` holds.
  size_t Pieces(JobId holder) const;
  Units Count(JobId holder) const;
  Units Count(JobId holder, UnitState state) const;
  /// Units of `extent` that `holder` holds, whatever the state. By the pieces in it, not in the
  /// pool.
  Units Count(const Extent& extent, JobId holder) const;

  friend bool operator==(const PoolMap&, const PoolMap&) = default;

 private:
  void AddFree(const Extent& extent);
  void RemoveFree(const Extent& extent);

  Units units_;
  Units free_;
  Extents free_runs_;
  std::vector<Span> spans_;
};

/// Set operations; the results are sorted and merged. Subtract and Intersect need sorted, merged
/// extents, Merge and Union take any.
Extents Merge(Extents extents);  // any order in; empty pieces are dropped
Extents Union(const Extents& a, const Extents& b);
Extents Subtract(const Extents& a, const Extents& b);
Extents Intersect(const Extents& a, const Extents& b);

}  // namespace sluice::scheduler
