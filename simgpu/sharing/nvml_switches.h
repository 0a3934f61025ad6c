// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"

namespace sluice::simgpu {

/// What NVML says of the MIG mode of the GPU in folder `dir`: a file DIR/mig is on. Nothing else of
/// MIG is simulated; such a GPU has no parts, and programs use it as before.
bool InMigMode(const std::string& dir);
/// Errors are the system's.
Status SetMigMode(const std::string& dir, bool on);

/// Whether NVML counts the GPU but cannot reach it, as one that fell off the bus: a file DIR/lost.
/// Programs that use it do not notice.
bool IsLost(const std::string& dir);
/// Errors are the system's.
Status SetLost(const std::string& dir, bool lost);

}  // namespace sluice::simgpu
