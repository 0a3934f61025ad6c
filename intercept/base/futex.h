// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "intercept/base/system.h"

namespace sluice {

/// Sleeps while `word` is `value`; may return early. `at_most` may be null. Changes errno.
inline void WaitWhile(std::atomic<uint32_t>& word, uint32_t value, const timespec* at_most) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, at_most,
          nullptr, 0);
}

/// Wakes at most so many of those who sleep on `word`.
inline void WakeSleepers(std::atomic<uint32_t>& word, int at_most) {
  const ErrnoKeeper keeper;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, at_most, nullptr,
          nullptr, 0);
}

}  // namespace sluice
