// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>

#include "simgpu/sharing/gpu_state.h"

namespace sluice::simgpu {

/// How often whoever waits for a turn looks after the others: they may have been killed.
inline constexpr uint64_t kVirtualCheckNs = 10'000'000;

/// Gives the turn to whoever has it next, if nobody has it, and rings for them. Needs the guard.
void PassOnLocked(const GpuState& gpu);

/// Participants and contexts whose processes are gone hold up nobody. Needs the guard.
void ReapVirtualLocked(const GpuState& gpu);

/// Waits in real time until the bell was rung, looking after the others.
void AwaitBell(const GpuState& gpu, std::atomic<uint32_t>* bell);

/// Once per kVirtualCheckNs of waiting: notices a program that waits outside the driver (all its
/// threads sleep and it uses no CPU time) while the device could go on, and lets the device go on.
class StallWatch {
 public:
  explicit StallWatch(const GpuState* gpu) : gpu_(gpu) {}
  void Look();

 private:
  const GpuState* gpu_;
  ProcessId watched_;
  uint64_t cpu_ = 0;
  uint32_t quiet_looks_ = 0;
};

}  // namespace sluice::simgpu
