// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/match.h"

#include <algorithm>

namespace sluice::pods {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

/// The one container that is listed with all of these ids.
std::string OwnerOf(const GrantRecord& grant, const std::map<std::string, std::string>& owners) {
  std::string owner;
  for (const std::string& id : grant.devices) {
    const auto found = owners.find(id);
    if (found == owners.end() || (!owner.empty() && owner != found->second)) return "";
    owner = found->second;
  }
  return owner;
}

const Pod* FindPod(const std::vector<Pod>& pods, const std::string& owner) {
  for (const Pod& pod : pods) {
    if (owner.starts_with(pod.space + "/" + pod.name + "/")) return &pod;
  }
  return nullptr;
}

std::string PartOf(const std::string& owner) { return owner.substr(owner.rfind('/') + 1); }

const Pod::Part* InitAsking(const Pod& pod, uint64_t granules) {
  for (const Pod::Part& part : pod.parts) {
    if (part.init && part.granules == granules) return &part;
  }
  return nullptr;
}

bool AsksOnlyAtFirst(const Pod& pod) {
  return std::none_of(pod.parts.begin(), pod.parts.end(),
                      [](const Pod::Part& part) { return !part.init && part.granules > 0; });
}

}  // namespace

std::map<std::string, Match> MatchGrants(const std::vector<GrantRecord>& grants,
                                         const std::map<std::string, std::string>& owners,
                                         const std::vector<Pod>& pods) {
  std::vector<const GrantRecord*> newest_first;
  for (const GrantRecord& grant : grants) newest_first.push_back(&grant);
  std::sort(newest_first.begin(), newest_first.end(),
            [](const auto* a, const auto* b) { return a->created_ns > b->created_ns; });
  std::map<std::string, Match> matches;
  std::map<std::string, const GrantRecord*> taken;  // by container
  for (const GrantRecord* grant : newest_first) {
    const std::string owner = OwnerOf(*grant, owners);
    const Pod* pod = FindPod(pods, owner);
    if (pod == nullptr) continue;
    if (taken.try_emplace(owner, grant).second) {
      matches[grant->id] = {pod->uid, PartOf(owner)};
      continue;
    }
    const Pod::Part* init = InitAsking(*pod, grant->devices.size());
    // Kubelet admits a pod after it was made, by clocks that agree to a second.
    if (init == nullptr || grant->created_ns < (pod->created_s - 1) * kSecondNs) continue;
    matches[grant->id] = {pod->uid, init->name};
  }
  for (const GrantRecord* grant : newest_first) {
    const bool listed = std::any_of(grant->devices.begin(), grant->devices.end(),
                                    [&](const auto& id) { return owners.contains(id); });
    if (listed || matches.contains(grant->id)) continue;
    std::vector<Match> candidates;
    for (const Pod& pod : pods) {
      if (pod.over || !AsksOnlyAtFirst(pod)) continue;
      if (grant->created_ns < (pod.created_s - 1) * kSecondNs) continue;
      const Pod::Part* init = InitAsking(pod, grant->devices.size());
      if (init != nullptr) candidates.push_back({pod.uid, init->name});
    }
    if (candidates.size() == 1) matches[grant->id] = candidates.front();
  }
  return matches;
}

}  // namespace sluice::pods
