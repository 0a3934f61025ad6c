// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/place/offline/buffers.h"

/// Heuristics that place one buffer after another into a hole between those that are placed already
/// and live at the same time.
namespace sluice::scheduler {

/// Which buffer comes next. Among equals the larger one, then the earlier one, then as they are
/// given.
enum class FitOrder : uint8_t {
  kSize,     // largest first: SmartPool (Zhang et al., III-C)
  kQuarter,  // largest product of size and fourth root of life first, between kSize and kArea
  kHalf,     // the same with the square root
  kArea,     // largest product of size and life first
  kWidth,    // longest life first
  kTime,     // as they are allocated; of those of one time the one that lives longest first
  kEnd,      // as they are freed, the last first: kTime in a time that runs backwards
};
inline constexpr std::array kFitOrders = {FitOrder::kSize, FitOrder::kQuarter, FitOrder::kHalf,
                                          FitOrder::kArea, FitOrder::kWidth,   FitOrder::kTime,
                                          FitOrder::kEnd};

/// Which hole it gets.
enum class FitHole : uint8_t {
  kFirst,  // the lowest that is large enough
  kBest,   // the smallest that is large enough, the lowest among equals; SmartPool's default
};

inline constexpr std::array kFitHoles = {FitHole::kFirst, FitHole::kBest};

std::string_view Name(FitOrder order);
std::string_view Name(FitHole hole);

/// A valid placement of checked buffers. Quadratic in the number of buffers in the worst case; in
/// the order of time n log n (that is what an allocator does that sees one call after another), and
/// in that of ends.
Offsets PlaceByFit(std::span<const Buffer> buffers, FitOrder order, FitHole hole);

/// The buffers of checked ones, by number, as `order` has them.
std::vector<uint32_t> InOrder(std::span<const Buffer> buffers, FitOrder order);

/// The same in any order: `sequence` names each buffer once. Adds to `looks` how often one buffer
/// was held against another, at most half the square of their number.
Offsets PlaceInSequence(std::span<const Buffer> buffers, std::span<const uint32_t> sequence,
                        FitHole hole, uint64_t* looks);

}  // namespace sluice::scheduler
