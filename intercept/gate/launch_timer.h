// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include <atomic>

#include "intercept/base/lock.h"
#include "intercept/lookup/driver_table.h"

namespace sluice {

/// GPU times of launches, by a pair of events around each, kept in a ring and read when the GPU has
/// passed them. Never waits: a launch that finds the ring full is not timed.
class LaunchTimer {
 public:
  static constexpr uint32_t kNotTimed = 0xffffffff;

  constexpr LaunchTimer() = default;

  /// Before the launch is issued. The result goes to End or Cancel.
  uint32_t Begin(const DriverTable& driver, CUstream stream);
  void End(const DriverTable& driver, uint32_t entry, CUstream stream, uint32_t slot,
           uint32_t launch);
  void Cancel(uint32_t entry) {
    ring_[entry % kEntries].state.store(State::kDropped, std::memory_order_release);
  }

  /// report(slot, launch, gpu_ns) for each finished launch, oldest first, a few at a time.
  template <class Report>
  void Poll(const DriverTable& driver, Report report) {
    if (tail_.load(std::memory_order_relaxed) == head_.load(std::memory_order_relaxed)) return;
    if (!poll_lock_.TryAcquire()) return;
    for (uint32_t i = 0; i < kPollMost; ++i) {
      Entry* entry = Oldest();
      if (entry == nullptr) break;
      if (entry->state.load(std::memory_order_acquire) == State::kQueued) {
        if (driver.cuEventQuery(entry->end) != CUDA_SUCCESS) break;
        float ms = 0;
        if (driver.cuEventElapsedTime(&ms, entry->start, entry->end) == CUDA_SUCCESS && ms >= 0) {
          report(entry->slot, entry->launch, static_cast<uint64_t>(ms * 1e6f));
        }
      }
      tail_.fetch_add(1, std::memory_order_release);
    }
    poll_lock_.Release();
  }

  /// The events went with their context.
  void Forget();
  /// Nobody asks about an event until Release: their context is about to end. Who records one is in
  /// that context, and it is for the program that nobody is then.
  void Hold() { poll_lock_.Acquire(); }
  void Release() { poll_lock_.Release(); }

 private:
  enum class State : uint8_t { kStarted, kQueued, kDropped };
  struct Entry {
    CUevent start;
    CUevent end;
    uint32_t slot;
    uint32_t launch;
    std::atomic<State> state;
  };
  static constexpr uint32_t kEntries = 1024;
  static constexpr uint32_t kPollMost = 8;

  // Null when nothing is left or the oldest is still being issued.
  Entry* Oldest() {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == head_.load(std::memory_order_acquire)) return nullptr;
    Entry* entry = &ring_[tail % kEntries];
    return entry->state.load(std::memory_order_acquire) == State::kStarted ? nullptr : entry;
  }

  Entry ring_[kEntries] = {};
  std::atomic<uint32_t> head_{0};
  std::atomic<uint32_t> tail_{0};
  Lock head_lock_;
  Lock poll_lock_;
};

}  // namespace sluice
