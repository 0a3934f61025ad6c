// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/gate/standstill.h"

#include <limits.h>

#include "intercept/base/futex.h"

namespace sluice {

bool Standstill::EnterSlow() {
  const ErrnoKeeper keeper;
  return EnterAfter([this] {
    while (state_.load(std::memory_order_acquire) == kStill) WaitWhile(state_, kStill, nullptr);
  });
}

bool Standstill::AwaitOthers(uint64_t at_most_ns) const {
  const uint64_t start = NowNs();
  Backoff backoff;
  // Acquire: what they have issued is known here.
  while (under_way_.load(std::memory_order_acquire) != 0) {
    if (NowNs() - start > at_most_ns) return false;
    backoff.Pause();
  }
  return true;
}

void Standstill::Change(State to) {
  if (state_.exchange(to, std::memory_order_acq_rel) == kStill) WakeSleepers(state_, INT_MAX);
}

}  // namespace sluice
