// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/nvml.h"
#include "deviceplugin/granule/device_ids.h"

namespace sluice::deviceplugin {

/// The ids of a node with these GPUs, of which each keeps a reserve back. kInvalidArgument: the
/// reserve leaves nothing of a GPU, or GranuleBytes and DeviceIds say why.
Result<DeviceIds> IdsOfNode(const std::vector<Nvml::Gpu>& gpus, uint64_t granule_bytes,
                            std::optional<uint64_t> reserve_bytes);

}  // namespace sluice::deviceplugin
