// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::session {

/// So many at once, and so many in a second after that. A value, on its caller's clock.
class TokenBucket {
 public:
  /// `burst` below 2^62, `per_second` from 1 to 10^9; the bucket is full at first.
  TokenBucket(uint64_t burst, uint64_t per_second, uint64_t now_ns)
      : burst_(static_cast<int64_t>(burst)),
        interval_ns_(1'000'000'000 / per_second),
        tokens_(burst_),
        at_ns_(now_ns) {}

  /// False: there is none left.
  bool Take(uint64_t now_ns) {
    if (Left(now_ns) == 0) return false;
    --tokens_;
    return true;
  }

  /// What was used already, also where there is less: as much is owed, and comes in before
  /// anything is left again.
  void Spend(uint64_t tokens, uint64_t now_ns) {
    Refill(now_ns);
    tokens_ -= static_cast<int64_t>(std::min(tokens, kMostAtOnce));
    tokens_ = std::max(tokens_, -static_cast<int64_t>(kMostAtOnce));
  }

  uint64_t Left(uint64_t now_ns) {
    Refill(now_ns);
    return static_cast<uint64_t>(std::max<int64_t>(tokens_, 0));
  }

 private:
  static constexpr uint64_t kMostAtOnce = uint64_t{1} << 62;

  void Refill(uint64_t now_ns) {
    // A caller whose clock was read before that of an earlier call gets nothing for it.
    if (now_ns <= at_ns_) return;
    const uint64_t more = (now_ns - at_ns_) / interval_ns_;
    const auto missing = static_cast<uint64_t>(burst_ - tokens_);
    tokens_ += static_cast<int64_t>(std::min(more, missing));
    at_ns_ += more * interval_ns_;
  }

  int64_t burst_;
  uint64_t interval_ns_;
  int64_t tokens_;  // below 0: owed
  uint64_t at_ns_;
};

}  // namespace sluice::session
