// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <set>
#include <string>
#include <vector>

#include "common/grant/record.h"
#include "deviceplugin/granule/device_ids.h"

namespace sluice::deviceplugin {

/// Ids of drained GPUs (UUIDs) that no grant has: nobody may be given them. Those of running
/// containers stay healthy, or kubelet would not start one of them again. Pure.
std::set<std::string> Drained(const DeviceIds& ids, const std::set<std::string>& gpus,
                              const std::vector<GrantRecord>& grants);

}  // namespace sluice::deviceplugin
