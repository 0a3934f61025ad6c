// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/grant/store.h"
#include "common/status.h"
#include "deviceplugin/pods/match.h"
#include "deviceplugin/pods/pod.h"

namespace sluice::deviceplugin {

/// Knows whose each grant is, from look to look: what a plugin before this one found out stands in
/// the terms. For one thread. The store outlives it.
class GrantOwners {
 public:
  struct World {
    std::function<Result<std::vector<pods::Owned>>()> listed;  // by kubelet
    /// None: they are not known yet.
    std::function<std::optional<pods::NodePods>()> pods;
    /// Has the pods listed anew: one that should be among them is not. Returns at once.
    std::function<void()> renew;
  };

  GrantOwners(const GrantStore* store, World world, uint64_t unseen_ns)
      : store_(store), world_(std::move(world)), unseen_ns_(unseen_ns) {}

  struct Found {
    std::vector<GrantRecord> grants;  // all that are there
    std::optional<pods::NodePods> pods;
    pods::Matches matches;
    std::vector<std::string> over;  // ids
    bool soon = false;              // more will be known in a moment
  };
  /// Asks kubelet only where that can show something: its answer is as long as the node has pods.
  Found Look();

 private:
  void TakeOver(const std::vector<GrantRecord>& grants);
  void Forget(const std::vector<GrantRecord>& grants);
  bool IsClear(const Found& found) const;
  void CountMisses(const std::vector<GrantRecord>& grants, const std::string& where);

  const GrantStore* store_;
  const World world_;
  const uint64_t unseen_ns_;
  bool took_over_ = false;
  pods::Signs signs_;
  pods::Matches matches_;
  std::map<std::string, unsigned> misses_;  // looks without a match, by grant
};

}  // namespace sluice::deviceplugin
