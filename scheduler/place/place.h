// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>

#include "scheduler/ledger/pool_map.h"

/// Placement only proposes: it knows free runs and no rules. First fit from the end of the job's
/// lane instead of best fit: best fit leaves slivers between jobs, and slivers are what I3 cannot
/// use.
namespace sluice::scheduler {

/// What may be taken from several runs when no single one has room for all. kWhole: from each run a
/// multiple of `contiguous`, and the rest from one; then blocks of that size leave no remainder in
/// any of them. kAny: whatever is there, which such blocks may not be able to use.
enum class Pieces : uint8_t { kWhole, kAny };

/// `units` units out of `runs` (sorted, merged), with at least one run of `contiguous` (<= units)
/// in them; nullopt if there are none. First fit from `end`: one run next to something `near` (what
/// the job holds already) that has room for all, else the first run that has, else (by `pieces`)
/// the first run with room for `contiguous` and the rest from the runs nearest the end. The result
/// is sorted and merged.
std::optional<Extents> Place(const Extents& runs, End end, Units units, Units contiguous,
                             const Extents& near = {}, Pieces pieces = Pieces::kAny);

/// In whole pieces for `job`: out of its spare units, which nobody else can have at the moment, as
/// far as these have room for such pieces or for the rest, and only what is missing out of what is
/// free, as Place does. nullopt also where nothing spare is of use.
std::optional<Extents> PlaceOnSpare(const PoolMap& map, JobId job, End end, Units units,
                                    Units contiguous);

/// What is free and `spare`: mostly there is nothing spare; `both` holds the sum where there is.
const Extents& FreeAnd(const Extents& spare, const PoolMap& map, Extents* both);

/// Units that `holder` holds (nullopt: in any state) beside those of the `runs` that have room for
/// `units`: what is `near` of what `holder` has, as far as Place looks at it.
Extents HeldBeside(const PoolMap& map, const Extents& runs, Units units, JobId holder,
                   std::optional<UnitState> state);

/// All placements worth trying when the preferred one would be unsafe: from the end, from the other
/// end, then both ends of each run that has room for all, at most `most` in total, without repeats.
std::vector<Extents> PlaceCandidates(const Extents& runs, End end, Units units, Units contiguous,
                                     const Extents& near, size_t most,
                                     Pieces pieces = Pieces::kAny);

/// The part of `runs` through which a job that may yet take `still` units in its iteration should
/// look before the rest, where somebody has to come back to `places`: what it keeps there at its
/// trough keeps that one away. So not there as long as there is enough beside them; else in one
/// `turn` there first and in the next one there last, for some jobs allocate late what outlives
/// their iterations (results), others early (the next batch), and would keep it away for ever.
Extents Sparing(const Extents& runs, const Extents& places, uint64_t still, uint32_t turn);

}  // namespace sluice::scheduler
