// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/gpu_numbers.h"
#include "common/mps_folder.h"
#include "common/mps_version.h"
#include "common/status.h"

namespace sluice::supervisor {

struct Options {
  /// kServe: start the daemons. The others look at a supervisor that runs: whether all of its
  /// daemons serve, and whether it turns.
  enum class What { kServe, kCheck, kCheckAlive };
  What what = What::kServe;
  std::string runtime_dir;
  GpuNumbers gpus;
  std::string noded;                   // program
  std::vector<std::string> arguments;  // for each daemon, as they are
  /// Beside each daemon NVIDIA's MPS control daemon of its GPU (noderuntime/mps).
  bool mps = false;
  std::string mps_control = "/usr/bin/nvidia-cuda-mps-control";  // program
  std::string mps_dir = std::string(kDefaultMpsDir);
  MpsChoice mps_version = MpsChoice::kAuto;
  /// With MPS v3: the folder of the grants whose namespaces are made, and whether one waits for its
  /// terms. As the daemons have them.
  std::string grants = "/run/sluice";
  bool wait_for_terms = false;
};

/// What the command line says. Nothing: it has been answered (--help, --version), and `*status` is
/// the program's. kInvalidArgument: what is wrong, with its option and what is allowed.
Result<std::optional<Options>> ReadCommandLine(int argc, const char* const* argv, int* status);

}  // namespace sluice::supervisor
