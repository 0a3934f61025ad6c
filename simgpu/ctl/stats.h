// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "simgpu/sharing/gpu_state.h"

namespace sluice::simgpu {

/// The counters of a GPU, as one JSON object or as text for people.
std::string StatsJson(GpuState* gpu);
std::string StatsText(GpuState* gpu);

}  // namespace sluice::simgpu
