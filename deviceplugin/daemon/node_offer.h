// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/gpu_numbers.h"
#include "common/nvml.h"
#include "deviceplugin/granule/device_ids.h"

namespace sluice::deviceplugin {

/// Those of a node's GPUs, in the driver's order, that are meant and answer. kInvalidArgument: one
/// of the numbers is none of theirs. kUnavailable: none of the meant ones answers.
Result<std::vector<Nvml::Gpu>> GpusMeant(Nvml::Listed listed, const GpuNumbers& numbers);

/// The ids of a node with these GPUs, of which each keeps a reserve back. kInvalidArgument: the
/// reserve leaves nothing of a GPU, or GranuleBytes and DeviceIds say why.
Result<DeviceIds> IdsOfNode(const std::vector<Nvml::Gpu>& gpus, uint64_t granule_bytes,
                            std::optional<uint64_t> reserve_bytes);

}  // namespace sluice::deviceplugin
