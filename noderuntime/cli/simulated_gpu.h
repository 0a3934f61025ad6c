// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "noderuntime/cli/environment.h"
#include "noderuntime/cli/layout.h"

namespace sluice::cli {

struct GpuStats {
  uint64_t span_ns = 0;  // of the device clock, from the first operation to the end of the last
  uint64_t oracle_violations = 0;
  uint64_t memory_used = 0;  // bytes, by all processes now
};

/// A simulated GPU of this process, or several, taken down with this object. It is reached through
/// the control program only: nothing links the simulated driver.
class SimulatedGpu {
 public:
  /// `dir` must not exist. `machine_file` says how fast it is. `gpus`: that many alike.
  static Result<SimulatedGpu> Up(const Layout& layout, const std::string& dir,
                                 uint64_t memory_bytes, const std::string& machine_file,
                                 unsigned gpus = 1);
  SimulatedGpu(SimulatedGpu&& other) noexcept;
  SimulatedGpu& operator=(SimulatedGpu&&) = delete;
  ~SimulatedGpu();

  /// The environment of a program that is to use this GPU.
  Environment Select(Environment environment) const;
  /// Of the GPU with this number.
  Result<GpuStats> Stats(unsigned gpu = 0) const;

 private:
  SimulatedGpu(Layout layout, std::string dir) : layout_(std::move(layout)), dir_(std::move(dir)) {}

  Layout layout_;
  std::string dir_;
};

}  // namespace sluice::cli
