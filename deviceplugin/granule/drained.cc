// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/granule/drained.h"

namespace sluice::deviceplugin {

std::set<std::string> Drained(const DeviceIds& ids, const std::set<std::string>& gpus,
                              const std::vector<GrantRecord>& grants) {
  std::set<std::string> drained;
  if (gpus.empty()) return drained;
  for (const std::string& id : ids.all()) {
    if (gpus.contains(ids.gpus()[ids.Find(id)->gpu].uuid)) drained.insert(id);
  }
  for (const GrantRecord& grant : grants) {
    for (const std::string& id : grant.devices) drained.erase(id);
  }
  return drained;
}

}  // namespace sluice::deviceplugin
