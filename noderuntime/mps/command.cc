// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/mps/command.h"

#include <utility>

#include "common/mps_folder.h"

namespace sluice::mps {

Command StartCommand(const Control& control, cli::Environment base) {
  base.Set("CUDA_MPS_PIPE_DIRECTORY", MpsPipeFolder(control.dir, control.gpu));
  base.Set("CUDA_MPS_LOG_DIRECTORY", MpsLogFolder(control.dir, control.gpu));
  // Its servers make their context on this GPU only, and it is their clients' number 0.
  base.Set("CUDA_VISIBLE_DEVICES", control.gpu);
  // Goes before the option, and before what the node's environment may have.
  base.Set("CUDA_MPS_PROTOCOL_VERSION", control.v3 ? "3" : "2");
  // In the foreground: one that puts itself in the background could not be waited for.
  if (!control.v3) return {{control.program, "-f"}, std::move(base)};
  // For many users: a server is then root's and serves all of them, whatever a container runs as.
  return {{control.program, "-f", "-m", "-p", "3"}, std::move(base)};
}

Command QuitCommand(const Control& control, cli::Environment base) {
  Command command = StartCommand(control, std::move(base));
  command.argv = {control.program};
  if (control.v3) command.argv.emplace_back("-q");
  return command;
}

Command ControlCommand(const Control& control, const std::vector<std::string>& arguments,
                       cli::Environment base) {
  Command command = StartCommand(control, std::move(base));
  command.argv = {control.program};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace sluice::mps
