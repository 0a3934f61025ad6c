// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/place.h"

#include <algorithm>

namespace sluice::scheduler {

namespace {

Extent Cut(const Extent& run, End end, Units units) {
  return end == End::kLow ? Extent{run.offset, units} : Extent{run.end() - units, units};
}

/// Run `i` of `runs`, counted from `end`.
const Extent& FromEnd(const Extents& runs, End end, size_t i) {
  return end == End::kLow ? runs[i] : runs[runs.size() - 1 - i];
}

/// The side of `run` that faces `end` touches one of `near`, which are sorted and do not overlap.
bool Touches(const Extent& run, End end, const Extents& near) {
  const Units at = end == End::kLow ? run.offset : run.end();
  const auto held = std::partition_point(near.begin(), near.end(), [&](const Extent& one) {
    return (end == End::kLow ? one.end() : one.offset) < at;
  });
  return held != near.end() && (end == End::kLow ? held->end() : held->offset) == at;
}

/// Takes from the runs, in their order and from the side that faces `end`, whole pieces of
/// `contiguous` and then the rest from the first run with room. The rest is one run too: split, it
/// would be the very remainders that whole pieces avoid. Returns how many units are missing.
Units TakeWhole(Extents* runs, End end, Units units, Units contiguous, Extents* taken) {
  const auto take = [&](Extent& run, Units length) {
    if (length == 0) return;
    taken->push_back(Cut(run, end, length));
    if (end == End::kLow) run.offset += length;
    run.length -= length;
  };
  Units whole = units / contiguous * contiguous;
  for (Extent& run : *runs) {
    const Units length = std::min(whole, run.length / contiguous * contiguous);
    take(run, length);
    whole -= length;
  }
  const Units rest = units % contiguous;
  for (Extent& run : *runs) {
    if (run.length < rest) continue;
    take(run, rest);
    return whole;
  }
  return whole + rest;
}

std::optional<Extents> PlaceWhole(Extents runs, End end, Units units, Units contiguous) {
  if (end == End::kHigh) std::reverse(runs.begin(), runs.end());
  Extents result;
  if (TakeWhole(&runs, end, units, contiguous, &result) > 0) return std::nullopt;
  return Merge(std::move(result));
}

}  // namespace

std::optional<Extents> Place(const Extents& runs, End end, Units units, Units contiguous,
                             const Extents& near, Pieces pieces) {
  if (units == 0) return Extents{};
  contiguous = std::clamp<Units>(contiguous, 1, units);
  const Extent* whole = nullptr;
  const Extent* piece = nullptr;
  uint64_t sum = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const Extent& run = FromEnd(runs, end, i);
    sum += run.length;
    if (run.length >= units) {
      // Next to what the job holds: its blocks may then span both, and its base stays in one piece.
      if (Touches(run, end, near)) return Extents{Cut(run, end, units)};
      if (whole == nullptr) whole = &run;
    }
    if (piece == nullptr && run.length >= contiguous) piece = &run;
  }
  if (whole != nullptr) return Extents{Cut(*whole, end, units)};
  if (piece == nullptr || sum < units) return std::nullopt;
  if (pieces == Pieces::kWhole) return PlaceWhole(runs, end, units, contiguous);

  // No run has room for all. The piece's run is used up first: fewer extents, and no second cut in
  // it.
  Extents result{*piece};
  Units left = units - piece->length;
  for (size_t i = 0; i < runs.size() && left > 0; ++i) {
    const Extent& run = FromEnd(runs, end, i);
    if (&run == piece) continue;
    const Units take = std::min(left, run.length);
    result.push_back(Cut(run, end, take));
    left -= take;
  }
  return Merge(std::move(result));
}

std::optional<Extents> PlaceOnSpare(const PoolMap& map, JobId job, End end, Units units,
                                    Units contiguous) {
  if (units == 0) return std::nullopt;
  contiguous = std::clamp<Units>(contiguous, 1, units);
  Extents spare = map.Held(job, UnitState::kSpare);
  if (end == End::kHigh) std::reverse(spare.begin(), spare.end());
  Extents result;
  const Units missing = TakeWhole(&spare, end, units, contiguous, &result);
  if (missing == units) return std::nullopt;
  const auto rest = Place(map.FreeRuns(), end, missing, contiguous,
                          map.Held(job, UnitState::kLeased), Pieces::kWhole);
  if (!rest) return std::nullopt;
  result.insert(result.end(), rest->begin(), rest->end());
  return Merge(std::move(result));
}

const Extents& FreeAnd(const Extents& spare, const PoolMap& map, Extents* both) {
  if (spare.empty()) return map.FreeRuns();
  return *both = Union(map.FreeRuns(), spare);
}

Extents HeldBeside(const PoolMap& map, const Extents& runs, Units units, JobId holder,
                   std::optional<UnitState> state) {
  Extents held;
  auto span = map.spans().begin();  // the runs are sorted
  const auto add = [&](Units unit) {
    while (span->end() <= unit) ++span;
    if (span->holder == holder && (!state || span->state == *state)) held.push_back({unit, 1});
  };
  for (const Extent& run : runs) {
    if (run.length < units) continue;
    if (run.offset > 0) add(run.offset - 1);
    if (run.end() < map.units()) add(run.end());
  }
  return held;
}

Extents Sparing(const Extents& runs, const Extents& places, uint64_t still, uint32_t turn) {
  Extents beside = Subtract(runs, places);
  const bool spare = TotalUnits(beside) >= still || turn % 2 != 0;
  return spare ? beside : Intersect(runs, places);
}

std::vector<Extents> PlaceCandidates(const Extents& runs, End end, Units units, Units contiguous,
                                     const Extents& near, size_t most, Pieces pieces) {
  std::vector<Extents> result;
  auto add = [&result, most](Extents extents) {
    if (result.size() < most && std::find(result.begin(), result.end(), extents) == result.end()) {
      result.push_back(std::move(extents));
    }
  };
  const End other = end == End::kLow ? End::kHigh : End::kLow;
  for (const End side : {end, other}) {
    if (result.size() == most) return result;
    if (auto placed = Place(runs, side, units, contiguous, near, pieces)) add(std::move(*placed));
  }
  if (units == 0) return result;
  for (size_t i = 0; i < runs.size() && result.size() < most; ++i) {
    const Extent& run = FromEnd(runs, end, i);
    if (run.length < units) continue;
    add({Cut(run, end, units)});
    add({Cut(run, other, units)});
  }
  return result;
}

}  // namespace sluice::scheduler
