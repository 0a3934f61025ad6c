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

/// The same for sections of tens of nanoseconds that everybody passes: to release it is a plain
/// store, which costs a third of what acquiring does. The price: the one who releases may not see
/// one who goes to sleep at that moment, so sleepers look again after a millisecond.
class BriefLock {
 public:
  constexpr BriefLock() = default;
  BriefLock(const BriefLock&) = delete;
  BriefLock& operator=(const BriefLock&) = delete;

  void Acquire() {
    if (word_.exchange(kHeld, std::memory_order_acquire) != kFree) AcquireSlow();
  }
  void Release() {
    word_.store(kFree, std::memory_order_release);
    if (sleepers_.load(std::memory_order_relaxed) != 0) Wake();
  }
  /// In a forked child, as above.
  void ForgetHolder() {
    word_.store(kFree, std::memory_order_relaxed);
    sleepers_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;

  void AcquireSlow();
  void Wake();

  std::atomic<uint32_t> word_{kFree};
  std::atomic<uint32_t> sleepers_{0};
};

/// Several, which may also be held all at once, by whoever holds none of them.
template <uint32_t kCount>
class Locks {
 public:
  Lock& operator[](uint32_t i) { return lock_[i]; }

  void Acquire() {
    for (Lock& lock : lock_) lock.Acquire();
  }
  void Release() {
    for (Lock& lock : lock_) lock.Release();
  }
  void ForgetHolder() {
    for (Lock& lock : lock_) lock.ForgetHolder();
  }

 private:
  Lock lock_[kCount];
};

template <class Mutex>
class LockGuard {
 public:
  explicit LockGuard(Mutex& lock) : lock_(lock) { lock_.Acquire(); }
  ~LockGuard() { lock_.Release(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Mutex& lock_;
};

}  // namespace sluice
