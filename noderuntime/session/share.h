// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "noderuntime/session/token_bucket.h"

namespace sluice::session {

/// What a job's clients may have of the daemon's one thread beside other jobs, in nanoseconds of
/// its CPU time. Who is over its share is read later, never closed for it. A value, on its caller's
/// clock.
class Share {
 public:
  /// A sixteenth: some 10,000 requests, where a job that does nothing but ask and wait comes to
  /// 20,000 beside a GPU. More would cost two jobs that compute on two processors a tenth of their
  /// speed (bench/neighbour).
  static constexpr uint64_t kPerSecond = 62'500'000;
  static constexpr uint64_t kBurst = 20'000'000;

  explicit Share(uint64_t now_ns) : left_(kBurst, kPerSecond, now_ns) {}

  /// Frames may make the thread do what others are the reason for: those that are read at once
  /// never cost their sender more than a burst.
  void Spend(uint64_t cpu_ns, uint64_t now_ns) { left_.Spend(std::min(cpu_ns, kBurst), now_ns); }
  bool Spent(uint64_t now_ns) { return left_.Left(now_ns) == 0; }

 private:
  TokenBucket left_;
};

}  // namespace sluice::session
