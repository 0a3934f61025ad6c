// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/collect/stale.h"

#include <algorithm>
#include <map>

namespace sluice::deviceplugin {

std::vector<std::string> StaleBook::Judge(const std::vector<GrantRecord>& grants,
                                          const std::optional<std::set<std::string>>& listed) {
  std::map<std::string, uint64_t> latest;  // by id: when it was allocated last
  for (const GrantRecord& grant : grants) {
    for (const std::string& device : grant.devices) {
      uint64_t& at = latest[device];
      at = std::max(at, grant.created_ns);
    }
  }
  const bool says = listed.has_value() && !listed->empty();
  std::map<std::string, unsigned> missed;
  std::vector<std::string> stale;
  for (const GrantRecord& grant : grants) {
    const auto any = [&grant](auto holds) {
      return std::any_of(grant.devices.begin(), grant.devices.end(), holds);
    };
    const auto before = missed_.find(grant.id);
    if (says && any([&](const std::string& device) { return listed->contains(device); })) {
      missed[grant.id] = 0;
    } else if (before != missed_.end()) {
      missed[grant.id] = before->second + (says ? 1 : 0);
    }
    const bool again = any([&](const std::string& device) {
      return latest.at(device) - grant.created_ns > kOneAdmissionNs;
    });
    const auto now = missed.find(grant.id);
    if (again || (now != missed.end() && now->second >= kAnswers)) stale.push_back(grant.id);
  }
  missed_ = std::move(missed);
  return stale;
}

}  // namespace sluice::deviceplugin
