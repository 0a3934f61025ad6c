// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/grant_owners.h"

#include <algorithm>
#include <bit>
#include <set>

#include "common/log/log.h"
#include "deviceplugin/pods/over.h"

namespace sluice::deviceplugin {
namespace {

constexpr unsigned kManyLooks = 15;
/// After so many a grant is nobody's that shows by itself: it shows when somebody comes to it.
constexpr unsigned kTooManyLooks = 60;

/// For whoever looks for the reason.
std::string WhatIsThere(const std::vector<pods::Owned>& listed,
                        const std::vector<pods::Pod>& pods) {
  constexpr size_t kMost = 20;
  std::string text =
      "kubelet lists " + std::to_string(listed.size()) + " containers with the resource";
  for (size_t i = 0; i < std::min(listed.size(), kMost); ++i) {
    const pods::Owned& owned = listed[i];
    text += (i == 0 ? ": " : ", ") + owned.container + " (" + std::to_string(owned.ids.size()) +
            " ids" + (owned.ids.empty() ? "" : " from " + owned.ids.front()) + ")";
  }
  text += "; the API server " + std::to_string(pods.size()) + " pods of this node";
  for (size_t i = 0; i < std::min(pods.size(), kMost); ++i) {
    text += (i == 0 ? ": " : ", ") + pods[i].space + "/" + pods[i].name +
            (pods[i].over ? " (over)" : "");
  }
  return text;
}

}  // namespace

GrantOwners::Found GrantOwners::Look() {
  Found found;
  const auto read = [&] {
    const Result<GrantStore::Listed> listed = store_->List();
    if (listed.ok()) found.grants = listed->grants;
    signs_.first_pods.clear();
    for (const GrantRecord& grant : found.grants) {
      std::string first = store_->FirstPodOf(grant.id);
      if (!first.empty()) signs_.first_pods[grant.id] = std::move(first);
    }
    return listed.ok();
  };
  if (!read()) return found;
  found.pods = world_.pods();
  if (!took_over_) TakeOver(found.grants);
  Forget(found.grants);
  if (!found.pods.has_value() || IsClear(found)) {
    found.matches = matches_;
    return found;
  }
  Result<std::vector<pods::Owned>> listed = world_.listed();
  // Again: whoever is listed has a grant that is there by now, and no older one is taken for it.
  if (!read()) return found;
  Forget(found.grants);
  const std::string where =
      listed.ok() ? WhatIsThere(*listed, found.pods->pods) : listed.status().message();
  signs_.listed = listed.ok() ? std::move(*listed) : std::vector<pods::Owned>();
  const pods::Matches before = matches_;
  matches_ = pods::MatchGrants(found.grants, signs_, found.pods->pods, std::move(matches_));
  for (const auto& [id, match] : matches_) {
    const auto same = before.find(id);
    if (same != before.end() && same->second == match) continue;
    logging::Info("grant {}: container {} of pod {}", id, match.part, match.pod);
  }
  // What kubelet does not say is not the end of anybody.
  if (listed.ok()) {
    found.over = pods::OverGrants(found.grants, signs_, *found.pods, matches_, unseen_ns_);
  }
  CountMisses(found.grants, where);
  for (const GrantRecord& grant : found.grants) {
    const auto match = matches_.find(grant.id);
    found.soon = found.soon ||
                 (match == matches_.end() ? misses_[grant.id] < kTooManyLooks
                                          : !pods::IsThere(found.pods->pods, match->second.pod));
  }
  found.matches = matches_;
  return found;
}

/// Of the plugin before this one.
void GrantOwners::TakeOver(const std::vector<GrantRecord>& grants) {
  took_over_ = true;
  for (const GrantRecord& grant : grants) {
    const Result<GrantTerms> last = store_->TermsOf(grant.id);
    if (last.ok()) matches_[grant.id] = {last->pod, last->job.substr(last->job.rfind('/') + 1)};
  }
}

void GrantOwners::Forget(const std::vector<GrantRecord>& grants) {
  std::set<std::string> there;
  for (const GrantRecord& grant : grants) there.insert(grant.id);
  const auto gone = [&there](const auto& entry) { return !there.contains(entry.first); };
  std::erase_if(matches_, gone);
  std::erase_if(misses_, gone);
}

/// Everybody's, and nobody's end is to be looked into.
bool GrantOwners::IsClear(const Found& found) const {
  return std::all_of(found.grants.begin(), found.grants.end(), [&](const GrantRecord& grant) {
    const auto match = matches_.find(grant.id);
    if (match == matches_.end() || !pods::IsThere(found.pods->pods, match->second.pod)) {
      return false;
    }
    const auto first = signs_.first_pods.find(grant.id);
    return first == signs_.first_pods.end() || first->second == match->second.pod;
  });
}

/// When it has taken long a program may be waiting for it. It is said once; and pods are listed
/// anew, ever more seldom, because a watch on which nothing comes looks like a quiet cluster.
void GrantOwners::CountMisses(const std::vector<GrantRecord>& grants, const std::string& where) {
  for (const GrantRecord& grant : grants) {
    if (matches_.contains(grant.id)) continue;
    const unsigned looks = ++misses_[grant.id];
    if (looks % kManyLooks != 0 || !std::has_single_bit(looks / kManyLooks)) continue;
    world_.renew();
    if (looks != kManyLooks) continue;
    logging::Warn("grant {} of {} ids from {}: nobody is found who has it; {}", grant.id,
                  grant.devices.size(), grant.devices.front(), where);
  }
}

}  // namespace sluice::deviceplugin
