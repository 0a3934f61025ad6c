// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/collect/stale.h"

#include <algorithm>
#include <map>

namespace sluice::deviceplugin {

std::vector<std::string> StaleGrants(const std::vector<GrantRecord>& grants,
                                     const std::set<std::string>* in_use, uint64_t now_ns) {
  std::map<std::string, uint64_t> latest;  // by id: when it was allocated last
  for (const GrantRecord& grant : grants) {
    for (const std::string& device : grant.devices) {
      uint64_t& at = latest[device];
      at = std::max(at, grant.created_ns);
    }
  }
  std::vector<std::string> stale;
  for (const GrantRecord& grant : grants) {
    const auto any = [&grant](auto says) {
      return std::any_of(grant.devices.begin(), grant.devices.end(), says);
    };
    const bool again = any([&](const std::string& device) {
      return latest.at(device) - grant.created_ns > kOneAdmissionNs;
    });
    const bool old = now_ns > grant.created_ns && now_ns - grant.created_ns > kUnseenNs;
    const bool unused = in_use != nullptr && old &&
                        !any([&](const std::string& device) { return in_use->contains(device); });
    if (again || unused) stale.push_back(grant.id);
  }
  return stale;
}

}  // namespace sluice::deviceplugin
