// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "noderuntime/doctor/facts.h"

namespace sluice::doctor {

/// Everything that needs neither the driver nor the layout of the programs. `mps_folder` is what
/// CUDA_MPS_PIPE_DIRECTORY says, or the default.
void ProbeMachine(const std::string& mps_folder, const std::string& plugin_folder, Facts* facts);

}  // namespace sluice::doctor
