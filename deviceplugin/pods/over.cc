// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/over.h"

#include <algorithm>
#include <set>

namespace sluice::pods {
namespace {

using Ids = std::set<std::string>;

bool AnyOf(const std::vector<std::string>& devices, const Ids& ids) {
  return std::any_of(devices.begin(), devices.end(),
                     [&ids](const std::string& id) { return ids.contains(id); });
}

/// Of grants made after it that are not the same pod's.
Ids GivenAgain(const GrantRecord& grant, const std::string& pod,
               const std::vector<GrantRecord>& grants, const Matches& matches) {
  Ids ids;
  for (const GrantRecord& other : grants) {
    const auto match = matches.find(other.id);
    const bool same = match != matches.end() && match->second.pod == pod;
    if (same || other.created_ns <= grant.created_ns) continue;
    ids.insert(other.devices.begin(), other.devices.end());
  }
  return ids;
}

}  // namespace

std::vector<std::string> OverGrants(const std::vector<GrantRecord>& grants, const Signs& signs,
                                    const NodePods& pods, const Matches& matches,
                                    uint64_t unseen_ns) {
  Ids listed;
  for (const Owned& owned : signs.listed) listed.insert(owned.ids.begin(), owned.ids.end());
  std::vector<std::string> over;
  for (const GrantRecord& grant : grants) {
    const auto match = matches.find(grant.id);
    const auto first = signs.first_pods.find(grant.id);
    if (match != matches.end()) {
      if (IsThere(pods.pods, match->second.pod)) continue;
      if (AnyOf(grant.devices, listed) &&
          !AnyOf(grant.devices, GivenAgain(grant, match->second.pod, grants, matches))) {
        continue;
      }
    } else {
      if (pods.as_of_ns < grant.created_ns + unseen_ns) continue;
      if (first != signs.first_pods.end() && IsThere(pods.pods, first->second)) continue;
      if (AnyOf(grant.devices, listed) || !CandidatesFor(grant, pods.pods, matches).empty()) {
        continue;
      }
    }
    over.push_back(grant.id);
  }
  return over;
}

}  // namespace sluice::pods
