// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/daemon/node_offer.h"

#include <algorithm>
#include <utility>

#include "common/bytes.h"
#include "common/reserve.h"

namespace sluice::deviceplugin {

Result<std::vector<Nvml::Gpu>> GpusMeant(Nvml::Listed listed, const GpuNumbers& numbers) {
  if (!numbers.has_value()) return std::move(listed.gpus);
  for (const uint32_t number : *numbers) {
    if (number >= listed.count) {
      return Status(StatusCode::kInvalidArgument,
                    "--gpus " + std::to_string(number) + ": allowed: numbers below " +
                        std::to_string(listed.count) + ", which is how many GPUs this node has");
    }
  }
  std::erase_if(listed.gpus, [&numbers](const Nvml::Gpu& gpu) {
    return std::find(numbers->begin(), numbers->end(), gpu.index) == numbers->end();
  });
  if (listed.gpus.empty() && !numbers->empty()) {
    return Status(StatusCode::kUnavailable, "--gpus: none of these GPUs answers");
  }
  return std::move(listed.gpus);
}

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
