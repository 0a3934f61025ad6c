// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "scheduler/place/offline/buffers.h"

namespace sluice::scheduler {

/// What makes one placement better than another that also stays below the capacity.
enum class PlaceObjective : uint8_t {
  kFootprint,  // how high it reaches
  kLeased,     // bytes leased over time, in whole units (leased.h); the lower one among equals
};

/// How long is searched. No clock: equal requests have equal answers.
struct PlaceEffort {
  uint64_t looks = 0;  // one buffer held against another by a fit or a repair
  uint64_t nodes = 0;  // partial placements of the exact search (exact.h)
};
/// The fits alone, as far as they take a moment; then about a second for some thousand buffers;
/// and as long as the hardest of data/placement takes with its capacity.
inline constexpr PlaceEffort kQuickEffort = {100'000'000, 0};
inline constexpr PlaceEffort kUsualEffort = {600'000'000, 1'000'000};
inline constexpr PlaceEffort kThoroughEffort = {5'000'000'000, 20'000'000};

struct PlaceRequest {
  std::span<const Buffer> buffers;
  std::optional<uint64_t> capacity;  // absent: as low as possible
  PlaceObjective objective = PlaceObjective::kFootprint;
  uint64_t unit_bytes = uint64_t{8} << 20;  // of kLeased; at least 1
  PlaceEffort effort = kUsualEffort;
};

struct PlaceAnswer {
  Offsets offsets;  // valid whether or not they stay below the capacity
  uint64_t footprint = 0;
  uint64_t lower_bound = 0;  // of every placement's footprint: the peak load, or what was proven
  std::string method;  // what found it: "time, best fit", "repair of area, first fit", "exact", ...
};

/// The best placement found: below the capacity if any of them is, and then the best by the
/// objective; else the lowest. kInvalidArgument as CheckBuffers, and for a unit of 0.
///
/// Tries all fits that the effort allows, the quick ones first, until one is within 1/4096 of the
/// lower bound; then, while the capacity (without one, the same) is not reached, the exact search
/// where it is quick, placing from two ends, repairs of the best fits, and the exact search once
/// more. Ends early when it is proven that nothing stays below the capacity (`lower_bound` is above
/// it then).
Result<PlaceAnswer> SolvePlacement(const PlaceRequest& request);

}  // namespace sluice::scheduler
