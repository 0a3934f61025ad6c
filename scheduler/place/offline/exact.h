// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "scheduler/place/offline/buffers.h"

namespace sluice::scheduler {

struct ExactResult {
  enum class Outcome : uint8_t {
    kPlaced,
    kImpossible,  // proven
    kGaveUp,
  };
  Outcome outcome = Outcome::kGaveUp;
  Offsets offsets;     // kPlaced only
  uint64_t nodes = 0;  // partial placements that were looked at
};

/// More buffers than this are not tried: memory and stack grow with their number.
inline constexpr size_t kMostExactBuffers = 4096;

inline constexpr uint64_t kNodesPerQuestion = 1024;

/// The orders that are tried in turn.
inline constexpr size_t kExactOrders = 4;

/// A placement of checked buffers below `capacity`, or the proof that there is none. `go_on` is
/// asked every kNodesPerQuestion nodes (milliseconds); when it says no the search gives up.
///
/// A search in depth over the orders in which the buffers can be stacked from below. What it leaves
/// out is in Moffitt, MiniMalloc (ASPLOS 2023): placements that are not tight, placements in which
/// one that is still to come fits under the next one, and those in which the rest does not fit
/// above what is there at some time, nor above the next one's offset at any time; and what falls
/// apart into groups that do not meet any more is searched group by group. The order in which
/// equals are tried decides between milliseconds and for ever, so several are tried in turn, with
/// ten times the patience in each round.
ExactResult PlaceExactly(std::span<const Buffer> buffers, uint64_t capacity,
                         const std::function<bool()>& go_on);

/// The same under a ceiling that is not level: while one of `above` lives, nothing is placed above
/// `capacity` less its size. No two of them live at the same time. `patience`: nodes for each order
/// in the first round.
ExactResult PlaceExactlyBelow(std::span<const Buffer> buffers, std::span<const Buffer> above,
                              uint64_t capacity, uint64_t patience,
                              const std::function<bool()>& go_on);

}  // namespace sluice::scheduler
