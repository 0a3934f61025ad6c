// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/daemon/node_offer.h"

#include "common/bytes.h"
#include "common/reserve.h"

namespace sluice::deviceplugin {

Result<DeviceIds> IdsOfNode(const std::vector<Nvml::Gpu>& gpus, uint64_t granule_bytes,
                            std::optional<uint64_t> reserve_bytes) {
  std::vector<Gpu> shared;
  for (const Nvml::Gpu& gpu : gpus) {
    const uint64_t reserve = reserve_bytes.value_or(DefaultReserve(gpu.bytes));
    if (reserve >= gpu.bytes) {
      return Status(StatusCode::kInvalidArgument,
                    "--reserve " + FormatBytes(reserve) + ": allowed: less than " +
                        FormatBytes(gpu.bytes) + ", which " + gpu.uuid + " has");
    }
    shared.push_back({gpu.uuid, gpu.bytes - reserve});
  }
  const Result<uint64_t> granule = GranuleBytes(shared, granule_bytes);
  if (!granule.ok()) return granule.status();
  return DeviceIds::Make(std::move(shared), *granule);
}

}  // namespace sluice::deviceplugin
