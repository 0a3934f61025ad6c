// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

namespace sluice {

/// Which allocation of an iteration outlives it, by what the one in its place did: the gradients
/// that a training keeps until its next step, for example. A place is the number of an allocation
/// since the iteration began; where another size was asked for there nothing is expected. Pure; the
/// caller holds a lock. Zero bytes are one of which nothing is known.
class Lifetimes {
 public:
  /// So many allocations of an iteration are told apart; of further ones nothing is expected.
  static constexpr uint32_t kMost = 1u << 16;

  /// When a block was allocated.
  struct Birth {
    uint32_t iteration = 0;  // 0: in none
    uint32_t place = 0;
  };

  void BeginIteration() {
    ++iteration_;
    counting_ = true;
    next_ = 0;
  }
  /// Iterations are not known any more, or are others. What lives was born in none of these.
  void Forget() {
    counting_ = false;
    since_ = iteration_ + 1;
    for (uint32_t i = 0; i < used_; ++i) place_[i] = 0;
    used_ = next_ = 0;
  }

  /// Whether a block of this size, allocated now, is expected to outlive the iteration.
  bool Expected(uint32_t granules) const {
    return counting_ && next_ < used_ && place_[next_] == (granules << 1 | 1);
  }
  /// It is allocated.
  Birth Born(uint32_t granules) {
    if (!counting_ || next_ == kMost) return {};
    const uint32_t place = next_++;
    if (place >= used_) used_ = place + 1;
    if (place_[place] >> 1 != granules) place_[place] = granules << 1;
    return {iteration_, place};
  }
  /// It is freed.
  void Ended(const Birth& birth) {
    // Wraps below the first of these iterations.
    if (birth.iteration == 0 || birth.iteration - since_ > iteration_ - since_) return;
    if (birth.place >= used_) return;
    const uint32_t outlived = birth.iteration != iteration_ ? 1 : 0;
    place_[birth.place] = (place_[birth.place] & ~1u) | outlived;
  }

 private:
  uint32_t iteration_;     // 0: none has begun
  uint32_t since_;         // the first that counts
  uint32_t next_;          // the place of the next allocation
  uint32_t used_;          // places below it are known
  uint32_t place_[kMost];  // granules, and in the lowest bit: it outlived its iteration
  bool counting_;
};

}  // namespace sluice
