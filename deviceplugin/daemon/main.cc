// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "common/grant/store.h"
#include "common/log/log.h"
#include "common/metrics/exposer.h"
#include "common/nvml.h"
#include "common/printable.h"
#include "deviceplugin/cluster/cluster.h"
#include "deviceplugin/cluster/server_address.h"
#include "deviceplugin/collect/collector.h"
#include "deviceplugin/collect/pod_resources.h"
#include "deviceplugin/collect/sweeper.h"
#include "deviceplugin/daemon/node_offer.h"
#include "deviceplugin/daemon/options.h"
#include "deviceplugin/daemon/serving.h"
#include "deviceplugin/granule/headroom.h"
#include "deviceplugin/inventory/drain_watch.h"
#include "deviceplugin/inventory/foreign_watch.h"
#include "deviceplugin/inventory/health_watch.h"
#include "deviceplugin/metrics/plugin_metrics.h"
#include "deviceplugin/pods/room.h"
#include "deviceplugin/registrar/alive.h"

namespace sluice::deviceplugin {
namespace {

/// So long a GPU may be offered by two.
constexpr int kLookForOthersEveryS = 5;

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
                                             Offer* offer, Figures* figures) {
  Result<ApiAccess> access = options.api_server.empty()
                                 ? ApiAccess::OfThisPod(options.service_account)
                                 : ApiAccess::At(options.api_server, options.service_account);
  if (!access.ok()) return access.status();
  if (const auto address = ServerAddress::Parse(access->url); !address.ok()) {
    return address.status().Annotate("--api-server");
  }
  return Cluster::Join(
      std::move(*access),
      {options.node, options.resource, options.trust, options.ceilings,
       options.unseen_s * uint64_t{1'000'000'000}},
      [&options] { return OwnersOfIds(options.pod_resources, options.resource); },
      [offer](const std::vector<Holding>& holdings) {
        offer->SetWithheld(Withheld(offer->ids(), holdings));
      },
      store, figures);
}

/// The driver's own limit on each GPU, for who gets a grant there; none where there is none.
Status SetDriverLimits(Nvml* nvml, const std::vector<Nvml::Gpu>& gpus, const DeviceIds& ids,
                       Options* options) {
  const Result<std::string> version = nvml->DriverVersion();
  const Result<bool> wanted =
      DriverLimitWanted(options->driver_limit, version.ok() ? *version : "",
                        std::filesystem::exists(options->cgroups + "/cgroup.controllers"));
  if (!wanted.ok()) return wanted.status();
  if (!*wanted) return {};
  options->delivery.driver_limit_mib = DriverLimitsMiB(gpus, ids.gpus(), options->driver_charges);
  for (const auto& [uuid, mib] : options->delivery.driver_limit_mib) {
    logging::Info("{}: the driver {} limits each container to {} MiB", uuid, *version, mib);
  }
  return {};
}

Status SetMpsVersion(Nvml* nvml, Options* options) {
  if (options->delivery.mps_dir.empty()) return {};
  const Result<std::string> driver = nvml->DriverVersion();
  const Result<bool> v3 =
      MpsV3Wanted(options->mps_version, driver.ok() ? *driver : "", options->delivery.mps_dir);
  if (!v3.ok()) return v3.status();
  options->delivery.mps_v3 = *v3;
  return {};
}

/// A plugin that is started anew has not reset any GPU.
HealthWatch::Lasting LastingErrors(const GrantStore* store) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return {store->BrokenGpus(boot), [store, boot](const std::string& uuid, uint64_t xid) {
            const Status kept = store->SetBroken(uuid, xid, boot);
            if (!kept.ok()) logging::Error("{}: {}", uuid, kept.message());
          }};
}

/// `cluster` null where there is none. That a GPU is well again shows in what the node can
/// allocate.
void TellHealth(const std::string& uuid, bool healthy, const std::string& why, Cluster* cluster) {
  if (healthy) {
    logging::Info("{} is offered again", uuid);
    return;
  }
  const std::string text = uuid + " is not offered: " + why;
  logging::Warn("{}", text);
  if (cluster != nullptr) cluster->WarnOnNode("SluiceGpuUnhealthy", text);
}

/// For the thread of ForeignWatch; `nvml` is its own, `cluster` null where there is none.
Result<ForeignView> LookForOthers(const Options& options, Nvml* nvml, const Cluster* cluster) {
  if (!options.refuse_foreign_gpus) return ForeignView();
  Result<std::vector<ForeignDevice>> devices =
      DevicesOfOthers(options.pod_resources, options.resource);
  if (!devices.ok()) return devices.status();
  ForeignView view;
  if (cluster != nullptr) view.pods = cluster->Pods();
  for (const ForeignDevice& device : *devices) {
    if (!device.id.starts_with("MIG-")) continue;
    const std::string part = device.id.substr(0, device.id.find("::"));
    if (view.parents.contains(part)) continue;
    const Result<std::string> whole = nvml->ParentOfMig(part);
    if (whole.ok()) view.parents[part] = *whole;
  }
  view.devices = std::move(*devices);
  return view;
}

std::unique_ptr<ForeignWatch> WatchOthers(const Options& options, Nvml* nvml, Cluster* cluster,
                                          Offer* offer) {
  std::vector<std::string> uuids;
  for (const Gpu& gpu : offer->ids().gpus()) uuids.push_back(gpu.uuid);
  const auto tell = [offer, cluster](size_t gpu, const std::string& manager) {
    const std::string& uuid = offer->ids().gpus()[gpu].uuid;
    const std::string why = manager.empty() ? "" : ForeignRefusal(uuid, manager);
    offer->SetRefused(gpu, why);
    if (why.empty()) {
      logging::Info("{} is offered again: it is in one piece and nobody else manages it", uuid);
      return;
    }
    logging::Warn("{}", why);
    if (cluster != nullptr) cluster->WarnOnNode("SluiceGpuRefused", why);
  };
  return std::make_unique<ForeignWatch>(
      std::move(uuids), [&options, nvml, cluster] { return LookForOthers(options, nvml, cluster); },
      [nvml](const std::string& uuid) {
        // One that does not answer is broken, which HealthWatch sees to.
        const Result<bool> in_parts = nvml->InMigMode(uuid);
        return in_parts.ok() && *in_parts;
      },
      tell, kLookForOthersEveryS);
}

/// All four outlive it.
Result<std::unique_ptr<metrics::Exposer>> ServeMetrics(const Options& options,
                                                       const Figures& figures, const Offer& offer,
                                                       const GrantStore& store) {
  return metrics::Exposer::Start(options.metrics, [&] {
    NodeCounts counts = {offer.ids().gpus(), offer.CountsByGpu(), std::nullopt};
    if (const auto listed = store.List(); listed.ok()) counts.grants = listed->grants.size();
    return MetricsOf(options.node, figures, counts);
  });
}

Status Run(Options options) {
  if (options.check) return AskPlugin(options.kubelet_dir + "/" + kEndpoint);
  const Result<UniqueFd> stop = BlockSignals();
  if (!stop.ok()) return stop.status();
  Result<std::unique_ptr<Nvml>> nvml = Nvml::Load();
  if (!nvml.ok()) return nvml.status();
  Result<Nvml::Listed> all = (*nvml)->Gpus();
  if (!all.ok()) return all.status();
  for (const Nvml::Silent& gpu : all->silent) {
    logging::Error("GPU {} is left out: {}", gpu.index, gpu.why);
  }
  const Result<std::vector<Nvml::Gpu>> gpus = GpusMeant(std::move(*all), options.gpus);
  if (!gpus.ok()) return gpus.status();
  Result<DeviceIds> ids = IdsOfNode(*gpus, options.granule_bytes, options.reserve_bytes);
  if (!ids.ok()) return ids.status();
  const Result<GrantStore> store = GrantStore::Open(options.root);
  if (!store.ok()) return store.status().Annotate("--root");
  for (const Gpu& gpu : ids->gpus()) {
    logging::Info("{}: {} granules of {}", gpu.uuid, GranulesOf(gpu, ids->granule_bytes()),
                  FormatBytes(ids->granule_bytes()));
  }
  if (Status s = SetDriverLimits(nvml->get(), *gpus, *ids, &options); !s.ok()) return s;
  if (Status s = SetMpsVersion(nvml->get(), &options); !s.ok()) return s;
  Figures figures;
  Offer offer(std::move(*ids));
  std::unique_ptr<metrics::Exposer> exposer;
  if (options.metrics != kOff) {
    auto started = ServeMetrics(options, figures, offer, *store);
    if (!started.ok()) return started.status();
    exposer = std::move(*started);
    logging::Info("metrics at port {}", exposer->port());
  }
  const Sweeper sweeper(&*store);
  const Allocator allocator(&offer.ids(), &*store, options.delivery);
  const auto drains = DrainWatch::Start(
      &*store, &offer.ids(),
      [&offer](std::set<std::string> kept) { offer.SetDrained(std::move(kept)); });
  if (!drains.ok()) return drains.status();
  std::optional<Collector> collector;
  std::unique_ptr<Cluster> cluster;
  if (options.annotations) {
    Result<std::unique_ptr<Cluster>> started = JoinCluster(options, &*store, &offer, &figures);
    if (!started.ok()) return started.status().Annotate("--annotations on");
    cluster = std::move(*started);
  } else {
    collector.emplace(
        &*store, [&options] { return OwnersOfIds(options.pod_resources, options.resource); },
        std::max(1, static_cast<int>(options.unseen_s / 2)));
  }
  const HealthWatch health(nvml->get(), *gpus, options.health, LastingErrors(&*store),
                           [&](size_t gpu, bool healthy, const std::string& why) {
                             TellHealth((*gpus)[gpu].uuid, healthy, why, cluster.get());
                             offer.SetHealthy(gpu, healthy);
                           });
  const Result<std::unique_ptr<Nvml>> nvml_of_watch = Nvml::Load();
  if (!nvml_of_watch.ok()) return nvml_of_watch.status();
  const std::unique_ptr<ForeignWatch> others =
      WatchOthers(options, nvml_of_watch->get(), cluster.get(), &offer);
  Preference preference = {options.packing};
  if (cluster != nullptr) {
    preference.room = [&cluster](uint64_t granules) {
      return pods::RoomFor(granules, cluster->Pods());
    };
  }
  Serving serving(
      {options.kubelet_dir, options.resource, options.ready_file},
      [&](const std::string& path) {
        return PluginServer::Start(path, &offer, &allocator, preference, &figures);
      },
      &figures);
  const Status done = serving.Run(stop->get());
  offer.Close();
  return done;
}

}  // namespace
}  // namespace sluice::deviceplugin

int main(int argc, char** argv) {
  sluice::logging::SetUp();
  int status = 0;
  auto options = sluice::deviceplugin::ReadCommandLine(argc, argv, &status);
  if (options.ok() && !options->has_value()) return status;
  const sluice::Status done =
      options.ok() ? sluice::deviceplugin::Run(std::move(**options)) : options.status();
  if (done.ok()) return 0;
  std::fprintf(stderr, "sluice-device-plugin: %s\n",
               sluice::PrintableLines(done.message()).c_str());
  return options.ok() ? 1 : 2;
}
