// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include <atomic>

namespace sluice {

/// A futex lock: constant-initialised, without destructor, without libpthread (whose symbols carry
/// newer versions than the library's floor). Not recursive, not fair.
class Lock {
 public:
  constexpr Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool TryAcquire() {
    uint32_t expected = kFree;
    return word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  void Acquire() {
    if (!TryAcquire()) AcquireSlow();
  }
  void Release() {
    if (word_.exchange(kFree, std::memory_order_release) == kContended) Wake();
  }
  /// In a forked child, whose other threads (one of which may hold this lock) do not exist.
  void ForgetHolder() { word_.store(kFree, std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kContended = 2;

  void AcquireSlow();
  void Wake();

  std::atomic<uint32_t> word_{kFree};
};

class LockGuard {
 public:
  explicit LockGuard(Lock& lock) : lock_(lock) { lock_.Acquire(); }
  ~LockGuard() { lock_.Release(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace sluice
