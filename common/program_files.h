// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"

/// Where the parts of an installed or built Sluice lie beside its programs.
namespace sluice {

/// The folder of the running executable.
Result<std::string> ProgramFolder();

/// The simulated driver, and the machine files that came with it (common/machine_file.h), where
/// the programs lie in `bin`. Absent when it was not built.
std::string SimulatedGpuFolder(const std::string& bin);

}  // namespace sluice
