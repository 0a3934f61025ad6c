// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "simgpu/sharing/fluid.h"
#include "simgpu/sharing/gpu_state.h"

namespace sluice::simgpu {

/// One context's part in a GPU whose operations may overlap. Used by one thread of one executor.
/// The host carries an operation out at once; its time passes afterwards, beside that of others.
class FluidDevice {
 public:
  FluidDevice(GpuState* gpu, uint32_t executor);

  /// The device clock now.
  uint64_t Clock();
  /// An operation starts. `since` is the device clock from which on it could have: what the host
  /// was late is made good, within limits. Nothing if too many are under way.
  std::optional<uint32_t> Begin(uint64_t declared_ns, Engine engine, const GpuDemand& demand,
                                uint64_t since, bool is_kernel);
  /// The host has carried it out.
  void BodyDone(uint32_t flight);
  /// If its time is over: forgets it and returns the device clock at which it ended.
  std::optional<uint64_t> Land(uint32_t flight);
  /// Forgets it.
  void Cancel(uint32_t flight);
  /// Real time until something of this context may have changed.
  uint64_t RealTimeToNext();

 private:
  struct Declared {
    uint64_t ns;
    bool is_kernel;
  };
  void AdvanceLocked();

  GpuState* gpu_;
  uint32_t me_;
  FluidRules rules_;
  std::array<Declared, kFlights> declared_{};
};

/// The device clock of a GPU whose operations may overlap, and the same brought up to date in the
/// state page. Needs the page's guard.
uint64_t FluidClockLocked(const GpuState& gpu);

}  // namespace sluice::simgpu
