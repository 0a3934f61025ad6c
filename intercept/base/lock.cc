// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "intercept/base/system.h"

namespace sluice {

void Lock::AcquireSlow() {
  // Critical sections are tens of nanoseconds, so a short spin nearly always ends the wait.
  for (int spin = 0; spin < 100; ++spin) {
    if (word_.load(std::memory_order_relaxed) == kFree && TryAcquire()) return;
    CpuRelax();
  }
  const ErrnoKeeper keeper;
  while (word_.exchange(kContended, std::memory_order_acquire) != kFree) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word_), FUTEX_WAIT_PRIVATE, kContended, nullptr,
            nullptr, 0);
  }
}

void Lock::Wake() {
  const ErrnoKeeper keeper;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr,
          0);
}

}  // namespace sluice
