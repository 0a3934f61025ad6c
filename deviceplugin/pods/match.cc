// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/match.h"

#include <algorithm>
#include <set>
#include <utility>

namespace sluice::pods {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

std::set<std::string> IdsOf(const std::vector<std::string>& ids) {
  return {ids.begin(), ids.end()};
}

/// Kubelet admits a pod after it was made, by clocks that agree to a second.
bool MayBeOf(const GrantRecord& grant, const Pod& pod) {
  return !pod.over && grant.created_ns + kSecondNs >= pod.created_s * kSecondNs;
}

std::string PartOf(const std::string& owner) { return owner.substr(owner.rfind('/') + 1); }

/// Which containers have their grants already: each has one, however often it is restarted.
using Taken = std::set<std::pair<std::string, std::string>>;  // pod's UID, container

struct Owner {
  const Pod* pod = nullptr;
  std::string part;
  bool has_its_grant = false;
};

/// The container that kubelet lists with these ids and no others. Kubelet gives names, and a pod
/// may have that of one before it: of several pods that it can be, the youngest.
Owner OwnerOf(const GrantRecord& grant, const std::vector<Owned>& owners,
              const std::vector<Pod>& pods, const Taken& taken) {
  Owner best;
  const std::set<std::string> ids = IdsOf(grant.devices);
  for (const Owned& owned : owners) {
    if (IdsOf(owned.ids) != ids) continue;
    for (const Pod& pod : pods) {
      const std::string part = PartOf(owned.container);
      if (owned.container != pod.space + "/" + pod.name + "/" + part) continue;
      if (!MayBeOf(grant, pod)) continue;
      if (best.pod != nullptr && pod.created_s < best.pod->created_s) continue;
      best = {&pod, part, taken.contains({pod.uid, part})};
    }
  }
  return best;
}

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
                                         const std::vector<Owned>& owners,
                                         const std::vector<Pod>& pods,
                                         std::map<std::string, Match> matches) {
  std::vector<const GrantRecord*> newest_first;
  for (const GrantRecord& grant : grants) {
    if (!matches.contains(grant.id)) newest_first.push_back(&grant);
  }
  std::sort(newest_first.begin(), newest_first.end(),
            [](const auto* a, const auto* b) { return a->created_ns > b->created_ns; });
  Taken taken;
  for (const auto& [id, match] : matches) taken.insert({match.pod, match.part});
  const auto give = [&](const GrantRecord& grant, const Pod& pod, const std::string& part) {
    if (taken.insert({pod.uid, part}).second) matches[grant.id] = {pod.uid, part};
  };
  for (const GrantRecord* grant : newest_first) {
    const Owner owner = OwnerOf(*grant, owners, pods, taken);
    if (owner.pod == nullptr) continue;
    if (!owner.has_its_grant) {
      give(*grant, *owner.pod, owner.part);
    } else if (const auto* init = InitAsking(*owner.pod, grant->devices.size())) {
      give(*grant, *owner.pod, init->name);
    }
  }
  for (const GrantRecord* grant : newest_first) {
    if (matches.contains(grant->id)) continue;
    if (OwnerOf(*grant, owners, pods, taken).pod != nullptr) continue;
    std::vector<std::pair<const Pod*, const Pod::Part*>> candidates;
    for (const Pod& pod : pods) {
      if (!MayBeOf(*grant, pod) || !AsksOnlyAtFirst(pod)) continue;
      const Pod::Part* init = InitAsking(pod, grant->devices.size());
      if (init != nullptr) candidates.emplace_back(&pod, init);
    }
    if (candidates.size() == 1) give(*grant, *candidates[0].first, candidates[0].second->name);
  }
  return matches;
}

}  // namespace sluice::pods
