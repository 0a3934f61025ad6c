// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

namespace sluice {

/// When those who wait for the daemon say that it gives no sign of life, and that it is back: once
/// each. Pure: what they see goes in, what is to be said comes out. Times in nanoseconds of one
/// clock. For one thread at a time.
class Silence {
 public:
  enum class Say : uint8_t { kNothing, kSilent, kBack };

  constexpr Silence() = default;

  /// Somebody who waits has heard nothing and looked: the daemon's page says `beats`.
  constexpr Say Look(uint64_t beats, uint64_t now_ns, uint64_t bound_ns) {
    if (!looked_ || beats != beats_) {
      looked_ = true;
      beats_ = beats;
      since_ns_ = now_ns;
      return Back();
    }
    if (said_ || now_ns - since_ns_ < bound_ns) return Say::kNothing;
    said_ = true;
    return Say::kSilent;
  }
  /// The daemon, or the one that came in its place, has said something.
  constexpr Say Heard() {
    looked_ = false;
    return Back();
  }

 private:
  constexpr Say Back() {
    const bool back = said_;
    said_ = false;
    return back ? Say::kBack : Say::kNothing;
  }

  bool looked_ = false;
  bool said_ = false;
  uint64_t beats_ = 0;
  uint64_t since_ns_ = 0;  // beats_ has been what it is
};

}  // namespace sluice
