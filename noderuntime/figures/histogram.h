// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::figures {

/// How often something took how long. Upper bounds in nanoseconds, ascending and included; what is
/// longer than the last one is in one bucket more. A value.
class Histogram {
 public:
  static constexpr size_t kMostBounds = 16;

  /// `bounds` is a constant of the program: at most kMostBounds.
  explicit Histogram(std::span<const uint64_t> bounds) : bounds_(bounds) {}

  void Add(uint64_t ns) {
    size_t bucket = 0;
    while (bucket < bounds_.size() && ns > bounds_[bucket]) ++bucket;
    ++counts_[bucket];
    sum_ns_ += ns;
  }

  std::span<const uint64_t> bounds() const { return bounds_; }
  /// One more than there are bounds.
  std::span<const uint64_t> counts() const { return {counts_.data(), bounds_.size() + 1}; }
  uint64_t sum_ns() const { return sum_ns_; }

 private:
  std::span<const uint64_t> bounds_;
  std::array<uint64_t, kMostBounds + 1> counts_ = {};
  uint64_t sum_ns_ = 0;
};

// From what nobody notices to what somebody complains of, in steps of about three.
inline constexpr uint64_t kWaitBounds[] = {
    100'000,     300'000,     1'000'000,     3'000'000,     10'000'000,     30'000'000,
    100'000'000, 300'000'000, 1'000'000'000, 3'000'000'000, 10'000'000'000, 30'000'000'000};
inline constexpr uint64_t kDecisionBounds[] = {500,    1'000,  2'000,   5'000,     10'000,
                                               20'000, 50'000, 100'000, 1'000'000, 10'000'000};
inline constexpr uint64_t kServiceBounds[] = {1'000,  2'000,   5'000,   10'000,    20'000,
                                              50'000, 100'000, 500'000, 1'000'000, 10'000'000};
inline constexpr uint64_t kHandoverBounds[] = {30'000,      100'000,      300'000,    1'000'000,
                                               3'000'000,   10'000'000,   30'000'000, 100'000'000,
                                               300'000'000, 1'000'000'000};
inline constexpr uint64_t kReclaimBounds[] = {1'000'000,     3'000'000,      10'000'000,
                                              30'000'000,    100'000'000,    300'000'000,
                                              1'000'000'000, 10'000'000'000, 60'000'000'000};

}  // namespace sluice::figures
