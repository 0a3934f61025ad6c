// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "noderuntime/cli/daemon_process.h"
#include "noderuntime/cli/environment.h"
#include "noderuntime/cli/layout.h"
#include "noderuntime/cli/simulated_gpu.h"
#include "noderuntime/cli/work_dir.h"

namespace sluice::bench {

struct BedOptions {
  uint64_t pool_bytes = 48u << 20;
  uint64_t unit_bytes = 256u << 10;
  uint64_t handle_bytes = 2u << 20;
  std::vector<std::string> flags;  // more for the daemon
};

/// A job that this process has registered; it ends with the object.
struct Job {
  UniqueFd registration;
  std::string socket;
};

/// A simulated GPU that costs no time of its own, and a sluice-noded on it; gone with this object.
class Bed {
 public:
  static Result<std::unique_ptr<Bed>> Start(const BedOptions& options);
  Bed(const Bed&) = delete;
  Bed& operator=(const Bed&) = delete;

  std::string runtime_dir() const { return work_.File("run"); }
  std::string Program(const std::string& name) const { return layout_.Program(name); }
  /// The environment of a program that is to use this GPU.
  cli::Environment environment() const;

  /// `limit_bytes` 0: none is given.
  Result<Job> Register(const std::string& name, uint64_t limit_bytes = 0) const;
  /// What `sluice status --json` shows.
  Result<nlohmann::json> FetchStatus() const;
  Result<std::array<uint8_t, 16>> GpuUuid() const;

 private:
  Bed(cli::Layout layout, cli::WorkDir work) : layout_(std::move(layout)), work_(std::move(work)) {}
  Status StartGpu(uint64_t memory_bytes);
  Status StartDaemon(const BedOptions& options);

  // In the order in which they need each other.
  cli::Layout layout_;
  cli::WorkDir work_;
  std::optional<cli::SimulatedGpu> gpu_;
  std::optional<cli::DaemonProcess> daemon_;
};

}  // namespace sluice::bench
