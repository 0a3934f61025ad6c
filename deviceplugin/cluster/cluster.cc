// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/cluster.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "deviceplugin/cluster/pod_json.h"
#include "deviceplugin/daemon/clock.h"

namespace sluice::deviceplugin {

Result<std::unique_ptr<Cluster>> Cluster::Join(ApiAccess access, Names names, Owners owners,
                                               Hold hold, const GrantStore* store,
                                               Figures* figures) {
  std::unique_ptr<Cluster> cluster(new Cluster(std::move(access), std::move(names), figures));
  Cluster* const self = cluster.get();
  cluster->watch_ = std::make_unique<PodWatch>(&cluster->api_, self->names_.node,
                                               self->names_.resource, [self] { self->Wake(); });
  TermsKeeper::World world;
  world.owners = {std::move(owners), [self] { return self->watch_->Pods(); },
                  [self] { self->watch_->Renew(); }};
  world.warn = [self](const pods::Pod& pod, const std::string& reason, const std::string& text) {
    self->Warn(pod, reason, text);
  };
  world.hold = std::move(hold);
  world.trust = self->names_.trust;
  world.ceilings = self->names_.ceilings;
  world.unseen_ns = self->names_.unseen_ns;
  Result<std::unique_ptr<TermsKeeper>> keeper = TermsKeeper::Start(store, std::move(world));
  if (!keeper.ok()) return keeper.status();
  const std::lock_guard lock(cluster->mutex_);
  cluster->keeper_ = std::move(*keeper);
  return cluster;
}

Cluster::~Cluster() {
  // The keeper asks the watch, and the watch wakes the keeper: from here on it finds none.
  std::unique_ptr<TermsKeeper> keeper;
  const std::lock_guard lock(mutex_);
  keeper = std::move(keeper_);
}

void Cluster::Wake() {
  const std::lock_guard lock(mutex_);
  if (keeper_ != nullptr) keeper_->Wake();
}

void Cluster::Warn(const pods::Pod& pod, const std::string& reason, const std::string& text) const {
  Tell(pod.space, WarningOn(pod, reason, text, names_.node, Since1970Ns()),
       pod.space + "/" + pod.name);
}

void Cluster::WarnOnNode(const std::string& reason, const std::string& text) const {
  Tell("default", WarningOnNode(names_.node, reason, text, Since1970Ns()), "node " + names_.node);
}

void Cluster::Tell(const std::string& space, const std::string& event,
                   const std::string& whom) const {
  const Status told = api_.Post("/api/v1/namespaces/" + space + "/events", event);
  ++(told.ok() ? figures_->events_written : figures_->events_failed);
  if (!told.ok()) spdlog::warn("event on {}: {}", whom, told.message());
}

}  // namespace sluice::deviceplugin
