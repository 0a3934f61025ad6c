// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "noderuntime/cli/daemon_process.h"
#include "noderuntime/cli/environment.h"
#include "noderuntime/cli/layout.h"
#include "noderuntime/cli/work_dir.h"

namespace sluice::bench {

/// A simulated GPU that costs no time of its own, and a sluice-noded on it; gone with this object.
class Bed {
 public:
  /// `flags` go to the daemon.
  static Result<std::unique_ptr<Bed>> Start(const std::vector<std::string>& flags);
  Bed(const Bed&) = delete;
  Bed& operator=(const Bed&) = delete;
  ~Bed();

  std::string runtime_dir() const { return work_.File("run"); }
  std::string Program(const std::string& name) const { return layout_.Program(name); }
  /// The environment of a program that is to use this GPU.
  cli::Environment environment() const;

 private:
  Bed(cli::Layout layout, cli::WorkDir work) : layout_(std::move(layout)), work_(std::move(work)) {}
  Status StartGpu();
  Status StartDaemon(const std::vector<std::string>& flags);
  Status Control(std::vector<std::string> arguments) const;

  cli::Layout layout_;
  cli::WorkDir work_;
  bool gpu_is_up_ = false;
  std::optional<cli::DaemonProcess> daemon_;
};

}  // namespace sluice::bench
