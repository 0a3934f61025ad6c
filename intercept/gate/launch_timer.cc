// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/gate/launch_timer.h"

namespace sluice {

uint32_t LaunchTimer::Begin(const DriverTable& driver, CUstream stream) {
  if (driver.cuEventCreate == nullptr || driver.cuEventRecord == nullptr ||
      driver.cuEventQuery == nullptr || driver.cuEventElapsedTime == nullptr) {
    return kNotTimed;
  }
  uint32_t at = 0;
  {
    const LockGuard guard(head_lock_);
    at = head_.load(std::memory_order_relaxed);
    if (at - tail_.load(std::memory_order_acquire) >= kEntries) return kNotTimed;
    ring_[at % kEntries].state.store(State::kStarted, std::memory_order_relaxed);
    head_.store(at + 1, std::memory_order_release);
  }
  Entry& entry = ring_[at % kEntries];
  const bool created =
      (entry.start != nullptr || driver.cuEventCreate(&entry.start, 0) == CUDA_SUCCESS) &&
      (entry.end != nullptr || driver.cuEventCreate(&entry.end, 0) == CUDA_SUCCESS);
  if (!created || driver.cuEventRecord(entry.start, stream) != CUDA_SUCCESS) {
    entry.state.store(State::kDropped, std::memory_order_release);
    return kNotTimed;
  }
  return at;
}

void LaunchTimer::End(const DriverTable& driver, uint32_t at, CUstream stream, uint32_t slot,
                      uint32_t launch) {
  Entry& entry = ring_[at % kEntries];
  entry.slot = slot;
  entry.launch = launch;
  const bool queued = driver.cuEventRecord(entry.end, stream) == CUDA_SUCCESS;
  entry.state.store(queued ? State::kQueued : State::kDropped, std::memory_order_release);
}

void LaunchTimer::Forget() {
  for (Entry& entry : ring_) entry.start = entry.end = nullptr;
  tail_.store(head_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace sluice
