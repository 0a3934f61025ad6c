// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Repetitions in a sequence of function ids. The idea that an iteration is what repeats twice in a
/// row is SmartPool's (Zhang et al., Efficient Memory Management for GPU-based Deep Learning
/// Systems, V); there it is looked for in allocations, here in launches, because sizes may change.
/// Linear time by the Z function (Gusfield, Algorithms on Strings, 1.3).
namespace sluice::scheduler {

/// A suffix of a sequence that repeats.
struct Repetition {
  uint32_t period = 0;
  uint32_t covered = 0;  // length of the longest suffix with this period
};

/// Every period p for which the sequence ends in at least two full repetitions of p elements, by
/// how much they cover, most first; among equals the shortest first. Multiples of a listed period
/// that cover no more are left out.
std::vector<Repetition> Repetitions(std::span<const uint64_t> sequence, uint32_t max_period);

/// The best of them that covers at least `min_covered` elements. "aabaab" has period 3, not 1.
std::optional<Repetition> DetectPeriod(std::span<const uint64_t> sequence, uint32_t max_period,
                                       uint32_t min_covered);

/// Fewest elements before position `at` (exclusive, cyclically) that occur nowhere else in the
/// cycle; 0 if the cycle is a repetition of a shorter one, so that no window tells its positions
/// apart.
uint32_t UniqueWindow(std::span<const uint64_t> cycle, uint32_t at);

}  // namespace sluice::scheduler
