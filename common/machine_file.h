// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/machine.h"

namespace sluice {

/// A machine file by its path or, without a slash in it, by the name of one that came with this
/// program (`v100-32`): DIR/v100-32.machine, DIR being `shipped` (SimulatedGpuFolder). Errors say
/// which there are.
Result<std::string> ReadMachineText(const std::string& name, const std::string& shipped);
/// The same as a machine that is to be calculated with: kInvalidArgument also for an empty file.
Result<Machine> ReadNamedMachine(const std::string& name, const std::string& shipped);
/// An empty file is a machine that is in all as by default.
Result<Machine> ReadMachineFile(const std::string& path);

}  // namespace sluice
