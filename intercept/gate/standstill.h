// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include <atomic>

namespace sluice {

/// Keeps every thread of the process from issuing work while its memory is in the daemon's hands.
/// Whoever issues work enters before and leaves after the driver's call; one thread, which waits
/// for the daemon, begins and ends the standstill. Constant-initialised, any thread.
class Standstill {
 public:
  constexpr Standstill() = default;

  /// False: the memory is lost and nothing may be issued; there is nothing to leave then. Waits as
  /// long as the standstill lasts.
  bool Enter() {
    // Both in one order with Begin: either this sees that it has begun, or that one sees this.
    under_way_.fetch_add(1, std::memory_order_seq_cst);
    if (state_.load(std::memory_order_seq_cst) == kMoving) [[likely]]
      return true;
    return EnterSlow();
  }
  /// The rest of it, for one that is counted as under way and found that it may not be. `wait`
  /// comes back when the standstill is over; another one may have begun by then.
  template <class Wait>
  bool EnterAfter(Wait wait) {
    while (true) {
      Leave();
      wait();
      if (state_.load(std::memory_order_acquire) == kLost) return false;
      under_way_.fetch_add(1, std::memory_order_seq_cst);
      if (state_.load(std::memory_order_seq_cst) == kMoving) return true;
    }
  }
  void Leave() { under_way_.fetch_sub(1, std::memory_order_release); }

  /// From here on nobody enters.
  void Begin() { state_.store(kStill, std::memory_order_seq_cst); }
  /// Until all who had entered have left: what they issued is queued then. False: not in time.
  bool AwaitOthers(uint64_t at_most_ns) const;
  /// What was moved is back, or never was moved.
  void End() { Change(kMoving); }
  /// What was moved does not come back.
  void Lose() { Change(kLost); }

  bool still() const { return state_.load(std::memory_order_acquire) == kStill; }

 private:
  enum State : uint32_t { kMoving, kStill, kLost };

  bool EnterSlow();
  void Change(State to);

  std::atomic<uint32_t> state_{kMoving};
  std::atomic<uint32_t> under_way_{0};
};

}  // namespace sluice
