// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/cluster.h"

#include <utility>

#include "deviceplugin/cluster/pod_json.h"
#include "deviceplugin/daemon/clock.h"

namespace sluice::deviceplugin {

Cluster::Cluster(ApiAccess access, Names names, Figures* figures)
    : api_(std::move(access)),
      names_(std::move(names)),
      events_(
          [this](const EventQueue::Event& event, const std::function<bool()>& stopped) {
            return api_.Post("/api/v1/namespaces/" + event.space + "/events", event.json, stopped);
          },
          figures) {}

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
  world.resource = self->names_.resource;
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

void Cluster::Warn(const pods::Pod& pod, const std::string& reason, const std::string& text) {
  events_.Add({pod.space, WarningOn(pod, reason, text, names_.node, Since1970Ns()),
               pod.space + "/" + pod.name});
}

void Cluster::WarnOnNode(const std::string& reason, const std::string& text) {
  events_.Add(
      {"default", WarningOnNode(names_.node, reason, text, Since1970Ns()), "node " + names_.node});
}

}  // namespace sluice::deviceplugin
