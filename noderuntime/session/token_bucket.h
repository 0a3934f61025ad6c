// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::session {

/// So many at once, and so many in a second after that. A value, on its caller's clock.
class TokenBucket {
 public:
  /// `per_second` from 1 to 10^9; the bucket is full at first.
  TokenBucket(uint64_t burst, uint64_t per_second, uint64_t now_ns)
      : burst_(burst), interval_ns_(1'000'000'000 / per_second), tokens_(burst), at_ns_(now_ns) {}

  /// False: there is none left.
  bool Take(uint64_t now_ns) {
    if (Left(now_ns) == 0) return false;
    --tokens_;
    return true;
  }

  uint64_t Left(uint64_t now_ns) {
    // A caller whose clock was read before that of an earlier call gets nothing for it.
    if (now_ns <= at_ns_) return tokens_;
    const uint64_t more = (now_ns - at_ns_) / interval_ns_;
    tokens_ = std::min(burst_, tokens_ + std::min(more, burst_));
    at_ns_ += more * interval_ns_;
    return tokens_;
  }

 private:
  uint64_t burst_;
  uint64_t interval_ns_;
  uint64_t tokens_;
  uint64_t at_ns_;
};

}  // namespace sluice::session
