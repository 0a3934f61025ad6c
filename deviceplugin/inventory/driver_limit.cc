// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/inventory/driver_limit.h"

#include <algorithm>

#include "common/bytes.h"
#include "common/driver_version.h"

namespace sluice::deviceplugin {

Result<bool> DriverLimitWanted(DriverLimitMode mode, std::string_view version, bool cgroup2) {
  if (mode == DriverLimitMode::kOff) return false;
  const bool able = MajorOfDriver(version) >= kDriverWithLimits;
  if (mode == DriverLimitMode::kAuto || (able && cgroup2)) return able && cgroup2;
  const std::string has =
      able ? "this node has control groups of version 1"
           : "the driver is " + (version.empty() ? "of no version" : std::string(version));
  return Status(StatusCode::kInvalidArgument, "--driver-limit on: " + has +
                                                  "; allowed: on with a driver from " +
                                                  std::to_string(kDriverWithLimits) +
                                                  " and control groups of version 2, or auto, off");
}

std::map<std::string, uint64_t> DriverLimitsMiB(const std::vector<Nvml::Gpu>& gpus,
                                                const std::vector<Gpu>& shared,
                                                DriverCharges charges) {
  std::map<std::string, uint64_t> limits;
  for (const Nvml::Gpu& gpu : gpus) {
    const auto pool = std::find_if(shared.begin(), shared.end(),
                                   [&](const Gpu& each) { return each.uuid == gpu.uuid; });
    if (pool == shared.end()) continue;
    const uint64_t reserve = gpu.bytes - std::min(gpu.bytes, pool->bytes);
    const uint64_t most = charges == DriverCharges::kMapped ? gpu.bytes : reserve;
    // Rounded up: it must not be less.
    limits[gpu.uuid] = (most + kMiB - 1) / kMiB;
  }
  return limits;
}

}  // namespace sluice::deviceplugin
