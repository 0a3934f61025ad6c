// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <istream>
#include <string>

#include "noderuntime/doctor/facts.h"

namespace sluice::doctor {

/// What the configuration of NVIDIA's container toolkit (config.toml) says, or its default.
Facts::GivesGpus GivesGpus(std::istream& config);

/// Everything that needs neither the driver nor the layout of the programs. `mps_folder` is what
/// CUDA_MPS_PIPE_DIRECTORY says, or the default; `plugin_folder` is kubelet's.
void ProbeMachine(const std::string& mps_folder, const std::string& plugin_folder, Facts* facts);

}  // namespace sluice::doctor
