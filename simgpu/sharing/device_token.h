// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

#include "simgpu/sharing/gpu_state.h"

namespace sluice::simgpu {

/// The right to run operations on the GPU, and the device clock that goes with it. Used by one
/// thread of one executor. The clock stands still between the operations of an owner (what the host
/// needs to fetch the next one is not the GPU's time) and follows real time while nobody owns the
/// token.
class DeviceToken {
 public:
  DeviceToken(GpuState* gpu, uint32_t executor) : gpu_(gpu), me_(executor) {}

  bool held() const { return held_; }
  /// Waits for the turn, skipping owners that died.
  void Acquire();
  /// Gives it up because there is nothing to run.
  void Release();
  /// After an operation: lets a waiter run if the time slice is used up.
  void YieldIfDue();

  /// Brackets one operation of declared duration. EndOperation paces: it sleeps until the declared
  /// time has passed in scaled real time, holding the token.
  void BeginOperation(uint64_t declared_ns);
  void EndOperation(bool is_kernel);

 private:
  void TakeLocked();
  uint32_t NextWaiterLocked() const;
  void PassOnLocked();

  GpuState* gpu_;
  uint32_t me_;
  bool held_ = false;
  uint64_t pace_ns_ = 0;  // real time at which the operations so far should have ended
  uint64_t declared_ns_ = 0;
};

/// The device clock now.
uint64_t DeviceClockNs(const GpuState& gpu);

}  // namespace sluice::simgpu
