// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

#include "noderuntime/session/token_bucket.h"

namespace sluice::noded {

/// How many lines of the daemon's log one source may cause. Whoever has used it up is silent until
/// a part of it is back, so that a flood becomes a few lines now and then and not a trickle.
/// Nothing is left out without a word: how much it was is said when it is over.
class LineBudget {
 public:
  LineBudget(uint64_t burst, uint64_t per_second, uint64_t now_ns)
      : lines_(burst, per_second, now_ns), reopens_at_(burst / 8 + 1) {}

  /// Whether a line may be written now. One that may not counts as left out.
  bool Take(uint64_t now_ns) {
    if (!Open(now_ns) || left_out_ > 0 || !lines_.Take(now_ns)) {
      ++left_out_;
      shut_ = true;
      return false;
    }
    return true;
  }

  /// How many lines were left out, once there is room again to say so; 0: nothing to say. Saying
  /// it takes a line of the budget.
  uint64_t TakeLeftOut(uint64_t now_ns) {
    if (left_out_ == 0 || !Open(now_ns) || !lines_.Take(now_ns)) return 0;
    const uint64_t count = left_out_;
    left_out_ = 0;
    return count;
  }

  uint64_t left_out() const { return left_out_; }

 private:
  bool Open(uint64_t now_ns) {
    if (shut_ && lines_.Left(now_ns) >= reopens_at_) shut_ = false;
    return !shut_;
  }

  session::TokenBucket lines_;
  uint64_t reopens_at_;
  uint64_t left_out_ = 0;
  bool shut_ = false;
};

}  // namespace sluice::noded
