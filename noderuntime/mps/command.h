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
};

/// A program with its arguments and all of its environment.
struct Command {
  std::vector<std::string> argv;
  cli::Environment environment;
};

/// What is to be run, as nvidia-cuda-mps-control(1) describes it. `base` is the environment of who
/// runs it; nothing of it chooses another GPU or another folder. Pure.
Command StartCommand(const Control& control, cli::Environment base);

/// The same program as a client of the one that runs: it passes on what it reads, here kQuit.
Command QuitCommand(const Control& control, cli::Environment base);
inline constexpr char kQuit[] = "quit\n";

}  // namespace sluice::mps
