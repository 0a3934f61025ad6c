// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "noderuntime/session/token_bucket.h"

namespace sluice::session {

/// What a job's clients may have of the daemon's one thread beside other jobs: so many frames, and
/// so much of its time. Who is over its share is read later, never closed for it. A value, on its
/// caller's clock.
class Share {
 public:
  /// A client that waits for each answer, and does nothing else, comes to some 150,000; one that
  /// computes sends some in an iteration.
  static constexpr uint64_t kFramesPerSecond = 200'000;
  static constexpr uint64_t kFrameBurst = 20'000;
  /// Of the thread's CPU time, in nanoseconds: a frame may make it look at thousands of pieces.
  static constexpr uint64_t kWorkPerSecond = 250'000'000;
  static constexpr uint64_t kWorkBurst = 20'000'000;

  explicit Share(uint64_t now_ns)
      : frames_(kFrameBurst, kFramesPerSecond, now_ns), work_(kWorkBurst, kWorkPerSecond, now_ns) {}

  void Frame(uint64_t now_ns) { frames_.Spend(1, now_ns); }
  /// A frame may make the thread do what others are the reason for: one never costs its sender more
  /// than a burst.
  void Work(uint64_t cpu_ns, uint64_t now_ns) { work_.Spend(std::min(cpu_ns, kWorkBurst), now_ns); }
  bool Spent(uint64_t now_ns) { return frames_.Left(now_ns) == 0 || work_.Left(now_ns) == 0; }

 private:
  TokenBucket frames_;
  TokenBucket work_;
};

}  // namespace sluice::session
