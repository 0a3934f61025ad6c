// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"

namespace sluice::simgpu {

/// Makes a machine of `gpus` simulated GPUs in folder `dir`, each of `bytes` and as `machine_text`
/// says (the text of a machine file). `*enforced` tells whether the kernel enforces the capacity
/// (it does unless mounting is not permitted). All of them come up, or none.
Status BringUp(const std::string& dir, uint32_t gpus, uint64_t bytes,
               const std::string& machine_text, bool* enforced);

/// Unmounts and removes it. Memory that a process still holds lives until that process lets go.
Status BringDown(const std::string& dir);

}  // namespace sluice::simgpu
