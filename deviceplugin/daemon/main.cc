// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <cstdio>

#include "common/grant/store.h"
#include "common/nvml.h"
#include "deviceplugin/cluster/cluster.h"
#include "deviceplugin/collect/collector.h"
#include "deviceplugin/collect/pod_resources.h"
#include "deviceplugin/daemon/node_offer.h"
#include "deviceplugin/daemon/options.h"
#include "deviceplugin/daemon/serving.h"
#include "deviceplugin/granule/headroom.h"
#include "deviceplugin/inventory/drain_watch.h"
#include "deviceplugin/inventory/health_watch.h"

namespace sluice::deviceplugin {
namespace {

/// A grant that is over costs a folder and a socket.
constexpr int kCollectEveryS = 60;

/// Before any thread is made: they inherit what is blocked.
Result<UniqueFd> BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  UniqueFd fd(::sigprocmask(SIG_BLOCK, &signals, nullptr) == 0
                  ? ::signalfd(-1, &signals, SFD_CLOEXEC)
                  : -1);
  if (!fd.valid()) return Status::FromErrno(errno, "signalfd");
  return fd;
}

Result<std::unique_ptr<Cluster>> JoinCluster(const Options& options, const GrantStore* store,
                                             Offer* offer) {
  Result<ApiAccess> access =
      options.api_server.empty() ? ApiAccess::OfThisPod() : ApiAccess{options.api_server, "", ""};
  if (!access.ok()) return access.status();
  return Cluster::Join(
      std::move(*access), {options.node, options.resource, options.trust, options.ceilings},
      [&options] { return OwnersOfIds(options.pod_resources, options.resource); },
      [offer](const std::vector<Holding>& holdings) {
        offer->SetWithheld(Withheld(offer->ids(), holdings));
      },
      store);
}

Status Run(const Options& options) {
  const Result<UniqueFd> stop = BlockSignals();
  if (!stop.ok()) return stop.status();
  Result<std::unique_ptr<Nvml>> nvml = Nvml::Load();
  if (!nvml.ok()) return nvml.status();
  Result<std::vector<Nvml::Gpu>> gpus = (*nvml)->Gpus();
  if (!gpus.ok()) return gpus.status();
  Result<DeviceIds> ids = IdsOfNode(*gpus, options.granule_bytes, options.reserve_bytes);
  if (!ids.ok()) return ids.status();
  const Result<GrantStore> store = GrantStore::Open(options.root);
  if (!store.ok()) return store.status().Annotate("--root");
  for (const Gpu& gpu : ids->gpus()) {
    spdlog::info("{}: {} granules of {}", gpu.uuid, GranulesOf(gpu, ids->granule_bytes()),
                 FormatBytes(ids->granule_bytes()));
  }
  Offer offer(std::move(*ids));
  const Allocator allocator(&offer.ids(), &*store, options.delivery);
  const HealthWatch health(nvml->get(), *gpus, options.health,
                           [&](size_t gpu, bool healthy, const std::string& why) {
                             if (healthy) {
                               spdlog::info("{} is offered again", (*gpus)[gpu].uuid);
                             } else {
                               spdlog::warn("{} is not offered: {}", (*gpus)[gpu].uuid, why);
                             }
                             offer.SetHealthy(gpu, healthy);
                           });
  const auto drains = DrainWatch::Start(
      &*store, &offer.ids(),
      [&offer](std::set<std::string> kept) { offer.SetDrained(std::move(kept)); });
  if (!drains.ok()) return drains.status();
  const Collector collector(
      &*store, [&options] { return OwnersOfIds(options.pod_resources, options.resource); },
      kCollectEveryS);
  std::unique_ptr<Cluster> cluster;
  if (options.annotations) {
    Result<std::unique_ptr<Cluster>> started = JoinCluster(options, &*store, &offer);
    if (!started.ok()) return started.status().Annotate("--annotations on");
    cluster = std::move(*started);
  }
  Serving serving({options.kubelet_dir, options.resource}, [&](const std::string& path) {
    return PluginServer::Start(path, &offer, &allocator, options.packing);
  });
  const Status done = serving.Run(stop->get());
  offer.Close();
  return done;
}

}  // namespace
}  // namespace sluice::deviceplugin

int main(int argc, char** argv) {
  int status = 0;
  auto options = sluice::deviceplugin::ReadCommandLine(argc, argv, &status);
  if (options.ok() && !options->has_value()) return status;
  const sluice::Status done =
      options.ok() ? sluice::deviceplugin::Run(**options) : options.status();
  if (done.ok()) return 0;
  std::fprintf(stderr, "sluice-device-plugin: %s\n", done.message().c_str());
  return options.ok() ? 1 : 2;
}
