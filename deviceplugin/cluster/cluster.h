// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "common/grant/store.h"
#include "deviceplugin/cluster/api_server.h"
#include "deviceplugin/cluster/event_queue.h"
#include "deviceplugin/cluster/pod_watch.h"
#include "deviceplugin/cluster/terms_keeper.h"
#include "deviceplugin/metrics/figures.h"

namespace sluice::deviceplugin {

/// What the plugin does with the API server while it lives: follows the node's pods, keeps the
/// terms of their grants, and puts warnings on them.
class Cluster {
 public:
  struct Names {
    std::string node;
    std::string resource;
    pods::Trust trust = pods::Trust::kNamespace;
    pods::Ceilings ceilings;
    uint64_t unseen_ns = kUnseenNs;  // pods::OverGrants
  };
  using Owners = std::function<Result<std::vector<pods::Owned>>()>;
  using Hold = std::function<void(const std::vector<Holding>&)>;

  /// Needs no answer of the API server yet. Errors: TermsKeeper::Start. Store and figures outlive
  /// it.
  static Result<std::unique_ptr<Cluster>> Join(ApiAccess access, Names names, Owners owners,
                                               Hold hold, const GrantStore* store,
                                               Figures* figures);
  ~Cluster();

  /// The pods of this node; none before the API server has answered. For several threads.
  std::vector<pods::Pod> Pods() const { return watch_->Pods().value_or(pods::NodePods()).pods; }
  /// Puts a warning on this node. For several threads.
  void WarnOnNode(const std::string& reason, const std::string& text);

 private:
  Cluster(ApiAccess access, Names names, Figures* figures);
  void Wake();
  void Warn(const pods::Pod& pod, const std::string& reason, const std::string& text);

  const ApiServer api_;
  const Names names_;
  EventQueue events_;
  std::mutex mutex_;
  std::unique_ptr<TermsKeeper> keeper_;  // under mutex_: the watch's thread wakes it
  std::unique_ptr<PodWatch> watch_;
};

}  // namespace sluice::deviceplugin
