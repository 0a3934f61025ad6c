// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/granule/headroom.h"

#include <algorithm>

namespace sluice::deviceplugin {

std::set<std::string> Withheld(const DeviceIds& ids, const std::vector<Holding>& holdings) {
  std::set<std::string> allocated;
  for (const Holding& holding : holdings) {
    allocated.insert(holding.devices.begin(), holding.devices.end());
  }
  std::set<std::string> withheld;
  for (uint32_t gpu = 0; gpu < ids.gpus().size(); ++gpu) {
    uint64_t burst = 0;
    for (const Holding& holding : holdings) {
      if (holding.gpu != ids.gpus()[gpu].uuid) continue;
      burst = std::max(burst,
                       holding.limit_bytes - std::min(holding.limit_bytes, holding.granted_bytes));
    }
    uint64_t left = (burst + ids.granule_bytes() - 1) / ids.granule_bytes();
    // From the end, so that the same ones stay withheld while others come and go.
    for (uint64_t number = GranulesOf(ids.gpus()[gpu], ids.granule_bytes()); number > 0 && left > 0;
         --number) {
      std::string id = ids.IdOf({gpu, static_cast<uint32_t>(number - 1)});
      if (allocated.contains(id)) continue;
      withheld.insert(std::move(id));
      --left;
    }
  }
  return withheld;
}

}  // namespace sluice::deviceplugin
