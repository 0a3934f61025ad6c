// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::supervisor {

/// When a program that ended is started again: soon, and each time after twice as long, so that one
/// that cannot run does not keep the node busy; one that ran for a while is forgiven. Pure.
class Restarts {
 public:
  static constexpr uint64_t kFirstNs = 100'000'000;
  static constexpr uint64_t kLongestNs = 10'000'000'000;
  static constexpr uint64_t kForgivenNs = 60'000'000'000;

  /// `first_ns`: how long to wait the first time; 0: not at all.
  explicit Restarts(uint64_t first_ns = kFirstNs) : first_ns_(first_ns), next_ns_(first_ns) {}

  /// It ran for `ran_ns`. How long to wait until the next start.
  uint64_t Ended(uint64_t ran_ns) {
    if (ran_ns >= kForgivenNs) next_ns_ = first_ns_;
    const uint64_t wait = next_ns_;
    next_ns_ = std::min(kLongestNs, std::max(kFirstNs, 2 * next_ns_));
    return wait;
  }

 private:
  uint64_t first_ns_;
  uint64_t next_ns_;
};

}  // namespace sluice::supervisor
