// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/lock.h"

#include <time.h>

#include "intercept/base/futex.h"

namespace sluice {
namespace {

// Critical sections are tens of nanoseconds, so a short spin nearly always ends the wait.
constexpr int kSpins = 100;

}  // namespace

void Lock::AcquireSlow() {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (word_.load(std::memory_order_relaxed) == kFree && TryAcquire()) return;
    CpuRelax();
  }
  const ErrnoKeeper keeper;
  while (word_.exchange(kContended, std::memory_order_acquire) != kFree) {
    WaitWhile(word_, kContended, nullptr);
  }
}

void Lock::Wake() { WakeSleepers(word_, 1); }

void BriefLock::AcquireSlow() {
  const auto take = [this] {
    return word_.load(std::memory_order_relaxed) == kFree &&
           word_.exchange(kHeld, std::memory_order_acquire) == kFree;
  };
  for (int spin = 0; spin < kSpins; ++spin) {
    if (take()) return;
    CpuRelax();
  }
  const ErrnoKeeper keeper;
  const timespec look_again{0, 1'000'000};
  sleepers_.fetch_add(1);
  while (!take()) WaitWhile(word_, kHeld, &look_again);
  sleepers_.fetch_sub(1);
}

void BriefLock::Wake() { WakeSleepers(word_, 1); }

}  // namespace sluice
