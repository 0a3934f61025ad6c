// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/nvml.h"
#include "common/status.h"
#include "deviceplugin/granule/device_ids.h"

/// The driver's own limit on a container's memory: a backstop for programs that get around the
/// library. Pure values; nothing here synchronises.
namespace sluice::deviceplugin {

/// The first driver that has it.
inline constexpr uint32_t kDriverWithLimits = 615;

enum class DriverLimitMode : uint8_t {
  kAuto,  // where the driver and the node can
  kOn,    // everywhere; a node that cannot is an error
  kOff,
};

/// What the driver counts against a container.
enum class DriverCharges : uint8_t {
  kMapped,  // all that is mapped in it, the pool among it: the careful end
  kMade,    // what its own programs have made: the pool is the daemon's
};

/// Whether containers get one. kInvalidArgument: it has to be, and this node cannot; the text names
/// what it has and what is allowed. `version` as NVML has it, empty if that does not say;
/// `cgroup2`: the node's control groups are of version 2.
Result<bool> DriverLimitWanted(DriverLimitMode mode, std::string_view version, bool cgroup2);

/// The limit of a container on each GPU, in MiB by UUID. It is set before its first program starts
/// and never again, so it is no less than what any container may ever come to have there: each of
/// them maps the whole pool, whatever its own limit is or will be, and what it has beside the pool
/// comes out of the reserve. `gpus` have all memory, `shared` what of it is the pool's.
std::map<std::string, uint64_t> DriverLimitsMiB(const std::vector<Nvml::Gpu>& gpus,
                                                const std::vector<Gpu>& shared,
                                                DriverCharges charges);

}  // namespace sluice::deviceplugin
