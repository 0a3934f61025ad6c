// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "scheduler/place/offline/buffers.h"

/// Heuristics that place one buffer after another into a hole between those that are placed already
/// and live at the same time.
namespace sluice::scheduler {

/// Which buffer comes next.
enum class FitOrder : uint8_t {
  kSize,   // largest first: SmartPool (Zhang et al., III-C); earlier ones first among equals
  kWidth,  // longest life first
  kArea,   // largest product of both first
  kTime,   // as they are allocated; of those of one time the one that lives longest first
};

/// Which hole it gets.
enum class FitHole : uint8_t {
  kFirst,  // the lowest that is large enough
  kBest,   // the smallest that is large enough, the lowest among equals; SmartPool's default
};

std::string_view Name(FitOrder order);
std::string_view Name(FitHole hole);

/// A valid placement of checked buffers. Quadratic in the number of buffers in the worst case; in
/// the order of time n log n (that is what an allocator does that sees one call after another).
Offsets PlaceByFit(std::span<const Buffer> buffers, FitOrder order, FitHole hole);

}  // namespace sluice::scheduler
