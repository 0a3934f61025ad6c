// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "intercept/base/system.h"

namespace sluice {
namespace {

// Critical sections are tens of nanoseconds, so a short spin nearly always ends the wait.
constexpr int kSpins = 100;

void WaitWhile(std::atomic<uint32_t>& word, uint32_t value, const timespec* at_most) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, at_most,
          nullptr, 0);
}

void WakeOne(std::atomic<uint32_t>& word) {
  const ErrnoKeeper keeper;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr,
          0);
}

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

void Lock::Wake() { WakeOne(word_); }

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

void BriefLock::Wake() { WakeOne(word_); }

}  // namespace sluice
