// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "noderuntime/cli/environment.h"

namespace sluice::mps {

/// The control daemon of one GPU.
struct Control {
  std::string program;  // NVIDIA's, a path
  std::string dir;      // common/mps_folder.h
  std::string gpu;      // UUID as NVML writes it
  bool v3 = false;      // common/mps_version.h
};

/// A program with its arguments and all of its environment.
struct Command {
  std::vector<std::string> argv;
  cli::Environment environment;
};

/// What is to be run, as nvidia-cuda-mps-control(1) and NVIDIA's manual (mpsv3-interface) describe
/// it. `base` is the environment of who runs it; nothing of it chooses another GPU or another
/// folder. Pure.
Command StartCommand(const Control& control, cli::Environment base);

/// The same program as a client of the one that runs. Legacy: it passes on what it reads, here
/// kQuit.
Command QuitCommand(const Control& control, cli::Environment base);
inline constexpr char kQuit[] = "quit\n";

/// With v3: one of its commands (namespace_plan.h).
Command ControlCommand(const Control& control, const std::vector<std::string>& arguments,
                       cli::Environment base);

}  // namespace sluice::mps
