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
  // In the foreground: one that puts itself in the background could not be waited for.
  return {{control.program, "-f"}, std::move(base)};
}

Command QuitCommand(const Control& control, cli::Environment base) {
  Command command = StartCommand(control, std::move(base));
  command.argv = {control.program};
  return command;
}

}  // namespace sluice::mps
