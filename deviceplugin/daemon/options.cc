// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/daemon/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "common/grant/store.h"
#include "common/host_name.h"
#include "common/metrics/address.h"
#include "common/mps_folder.h"
#include "deviceplugin/daemon/ceilings_file.h"
#include "deviceplugin/metrics/plugin_metrics.h"

namespace sluice::deviceplugin {
namespace {

/// What stands on the command line, before it is checked: CLI11's own checks do not say what is
/// allowed.
struct Raw {
  std::string gpus = "all";
  std::string granule = "auto";
  std::string reserve;
  std::string packing = "pack";
  std::string visible_devices = "on";
  std::string compute = "timeslice";
  std::string mps_dir = std::string(kDefaultMpsDir);
  std::string mps_version = "auto";
  std::string probation = "600";
  std::string unseen = "120";
  std::string annotations = "off";
  std::string foreign_gpus = "refuse";
  std::string driver_limit = "auto";
  std::string driver_charges = "mapped";
  std::string trust = "namespace";
  std::string namespaces;
  std::vector<std::string> environment;
  std::vector<std::string> mounts;
  std::vector<std::string> overlooked;
};

class Faults {
 public:
  void Add(const std::string& text) { all_ += (all_.empty() ? "" : "\n") + text; }
  void Check(bool good, const std::string& text) {
    if (!good) Add(text);
  }
  bool none() const { return all_.empty(); }
  Status status() const { return Status(StatusCode::kInvalidArgument, all_); }

 private:
  std::string all_;
};

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() <= 7 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void TakeBytes(const std::string& text, const std::string& field, uint64_t* out, Faults* faults) {
  const Result<uint64_t> bytes = ParseBytes(text, field);
  if (bytes.ok()) {
    *out = *bytes;
  } else {
    faults->Add(bytes.status().message());
  }
}

/// As in the API: a name of a domain and one behind it.
bool IsResource(const std::string& name) {
  const size_t slash = name.find('/');
  const auto good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
  };
  return slash != std::string::npos && slash > 0 && slash + 1 < name.size() &&
         name.find('/', slash + 1) == std::string::npos && name.find('.') < slash &&
         std::all_of(name.begin(), name.end(), [&](char c) { return c == '/' || good(c); });
}

/// As the API has the names of nodes.
bool IsLabel(const std::string& name) {
  return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

bool IsAbsolute(const std::string& path) { return path.starts_with('/'); }

void TakeEnvironment(const Raw& raw, Options* options, Faults* faults) {
  for (const std::string& text : raw.environment) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      faults->Add("--env '" + text + "': allowed: NAME=VALUE");
      continue;
    }
    options->delivery.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
}

void TakeMounts(const Raw& raw, Options* options, Faults* faults) {
  for (const std::string& text : raw.mounts) {
    std::string rest = text;
    Mount mount;
    for (const char* mode : {":rw", ":ro"}) {
      if (!rest.ends_with(mode)) continue;
      mount.read_only = mode[2] == 'o';
      rest.resize(rest.size() - 3);
      break;
    }
    const size_t colon = rest.find(':');
    mount.host = rest.substr(0, colon);
    mount.container = colon == std::string::npos ? "" : rest.substr(colon + 1);
    if (!IsAbsolute(mount.host) || !IsAbsolute(mount.container)) {
      faults->Add("--mount '" + text +
                  "': allowed: /HOST/PATH:/CONTAINER/PATH, with :rw or :ro behind it");
      continue;
    }
    options->delivery.mounts.push_back(std::move(mount));
  }
}

void TakeDriverLimit(const Raw& raw, Options* options, Faults* faults) {
  faults->Check(raw.driver_limit == "auto" || raw.driver_limit == "on" || raw.driver_limit == "off",
                "--driver-limit '" + raw.driver_limit + "': allowed: auto, on, off");
  options->driver_limit = raw.driver_limit == "on"    ? DriverLimitMode::kOn
                          : raw.driver_limit == "off" ? DriverLimitMode::kOff
                                                      : DriverLimitMode::kAuto;
  faults->Check(raw.driver_charges == "mapped" || raw.driver_charges == "made",
                "--driver-charges '" + raw.driver_charges + "': allowed: mapped, made");
  options->driver_charges =
      raw.driver_charges == "made" ? DriverCharges::kMade : DriverCharges::kMapped;
}

Result<Options> Checked(const Raw& raw, Options options) {
  Faults faults;
  Result<GpuNumbers> gpus = ParseGpuNumbers(raw.gpus, "--gpus");
  if (gpus.ok()) {
    options.gpus = std::move(*gpus);
  } else {
    faults.Add(gpus.status().message());
  }
  if (raw.granule != "auto") TakeBytes(raw.granule, "--granule", &options.granule_bytes, &faults);
  if (!raw.reserve.empty())
    TakeBytes(raw.reserve, "--reserve", &options.reserve_bytes.emplace(), &faults);
  faults.Check(raw.packing == "pack" || raw.packing == "spread",
               "--packing '" + raw.packing + "': allowed: pack, spread");
  options.packing = raw.packing == "spread" ? Packing::kSpread : Packing::kPack;
  faults.Check(raw.visible_devices == "on" || raw.visible_devices == "off",
               "--visible-devices '" + raw.visible_devices + "': allowed: on, off");
  options.delivery.visible_devices = raw.visible_devices == "on";
  faults.Check(raw.foreign_gpus == "refuse" || raw.foreign_gpus == "share",
               "--foreign-gpus '" + raw.foreign_gpus + "': allowed: refuse, share");
  options.refuse_foreign_gpus = raw.foreign_gpus == "refuse";
  TakeDriverLimit(raw, &options, &faults);
  faults.Check(raw.compute == "timeslice" || raw.compute == "mps",
               "--compute '" + raw.compute + "': allowed: timeslice, mps");
  faults.Check(IsAbsolute(raw.mps_dir) && raw.mps_dir.size() <= kMaxMpsDir,
               "--mps-dir '" + raw.mps_dir + "': allowed: an absolute path of at most " +
                   std::to_string(kMaxMpsDir) + " characters");
  if (raw.compute == "mps") options.delivery.mps_dir = raw.mps_dir;
  const Result<MpsChoice> version = ParseMpsChoice(raw.mps_version);
  if (version.ok()) {
    options.mps_version = *version;
  } else {
    faults.Add(version.status().message());
  }
  faults.Check(raw.annotations == "on" || raw.annotations == "off",
               "--annotations '" + raw.annotations + "': allowed: on, off");
  options.annotations = raw.annotations == "on";
  faults.Check(!options.annotations || IsLabel(options.node),
               "--node '" + options.node +
                   "': allowed: with --annotations on, the name of this node in the cluster");
  faults.Check(
      options.metrics == kOff || metrics::IsAddress(options.metrics),
      "--metrics '" + options.metrics +
          "': allowed: ADDRESS:PORT with a port up to 65535 ([ADDRESS]:PORT for IPv6), or off");
  if (options.node.empty()) options.node = HostName();
  faults.Check(raw.trust == "namespace" || raw.trust == "node",
               "--trust '" + raw.trust + "': allowed: namespace, node");
  options.trust = raw.trust == "node" ? pods::Trust::kNode : pods::Trust::kNamespace;
  if (!raw.namespaces.empty()) {
    Result<pods::Ceilings> ceilings = ReadCeilings(raw.namespaces);
    if (!ceilings.ok()) faults.Add("--namespaces: " + ceilings.status().message());
    if (ceilings.ok()) options.ceilings = std::move(*ceilings);
  }
  faults.Check(IsNumber(raw.probation),
               "--probation '" + raw.probation + "': allowed: 0 to 9999999 seconds");
  if (IsNumber(raw.probation))
    options.health.probation_ns = std::stoull(raw.probation) * 1'000'000'000;
  faults.Check(IsNumber(raw.unseen) && std::stoull(raw.unseen) > 0,
               "--unseen '" + raw.unseen + "': allowed: 1 to 9999999 seconds");
  if (IsNumber(raw.unseen)) options.unseen_s = std::stoull(raw.unseen);
  for (const std::string& xid : raw.overlooked) {
    faults.Check(IsNumber(xid), "--ignore-xid '" + xid + "': allowed: a number");
    if (IsNumber(xid)) options.health.overlooked.insert(std::stoull(xid));
  }
  faults.Check(IsResource(options.resource),
               "--resource '" + options.resource +
                   "': allowed: DOMAIN/NAME, for example sluice.dev/gpu-memory");
  faults.Check(options.root.size() <= kMaxGrantRoot,
               "--root '" + options.root + "': allowed: a path of at most " +
                   std::to_string(kMaxGrantRoot) + " characters");
  const std::pair<const char*, const std::string*> paths[] = {
      {"--kubelet-dir", &options.kubelet_dir},
      {"--pod-resources", &options.pod_resources},
      {"--cgroups", &options.cgroups},
      {"--service-account", &options.service_account},
      {"--root", &options.root}};
  for (const auto& [name, path] : paths) {
    faults.Check(IsAbsolute(*path),
                 std::string(name) + " '" + *path + "': allowed: an absolute path");
  }
  faults.Check(options.delivery.library.empty() || IsAbsolute(options.delivery.library),
               "--library '" + options.delivery.library + "': allowed: an absolute path");
  faults.Check(options.ready_file.empty() || IsAbsolute(options.ready_file),
               "--ready-file '" + options.ready_file + "': allowed: an absolute path");
  TakeEnvironment(raw, &options, &faults);
  TakeMounts(raw, &options, &faults);
  if (!faults.none()) return faults.status();
  return options;
}

}  // namespace

Result<std::optional<Options>> ReadCommandLine(int argc, const char* const* argv, int* status) {
  Options options;
  Raw raw;
  bool describe = false;
  CLI::App app("Offers the memory of this node's GPUs to Kubernetes, in granules of one GPU each.",
               "sluice-device-plugin");
  app.set_version_flag("--version", SLUICE_VERSION);
  app.add_option("--resource", options.resource, "Name of the resource that pods ask for")
      ->capture_default_str();
  app.add_option("--kubelet-dir", options.kubelet_dir, "Kubelet's folder for device plugins")
      ->capture_default_str();
  app.add_option(
         "--pod-resources", options.pod_resources,
         "Kubelet's socket that lists which container has which ids; shows which grants are over")
      ->capture_default_str();
  app.add_option("--ready-file", options.ready_file,
                 "A file that is there while kubelet knows the plugin, for a readiness probe");
  app.add_flag(
      "--check", options.check,
      "Only ask the plugin of this --kubelet-dir whether it answers, for a liveness probe");
  app.add_option("--metrics", options.metrics,
                 "Where Prometheus finds /metrics, ADDRESS:PORT, or off")
      ->capture_default_str();
  app.add_flag("--describe-metrics", describe, "Print what /metrics has, in Markdown, and end");
  app.add_option("--root", options.root,
                 "Folder for grants and their sockets, shared with sluice-noded")
      ->capture_default_str();
  app.add_option("--gpus", raw.gpus,
                 "Those that have a daemon: all, or numbers such as 0,1, as sluice-node has them")
      ->capture_default_str();
  app.add_option("--granule", raw.granule,
                 "Memory of one granule: auto (1 GiB, less on small GPUs, more where there would "
                 "be over 4096), or whole MiB")
      ->capture_default_str();
  app.add_option("--reserve", raw.reserve,
                 "Memory of each GPU that is not offered (an eighth of it, at most 2 GiB)");
  app.add_option("--packing", raw.packing,
                 "Which GPU a container gets: pack (least room that suffices), spread (most room)")
      ->capture_default_str();
  app.add_option("--library", options.delivery.library,
                 "Folder on the host with the library, mounted into containers at /opt/sluice");
  app.add_option("--visible-devices", raw.visible_devices,
                 "Set NVIDIA_VISIBLE_DEVICES in containers: on, off")
      ->capture_default_str();
  app.add_option(
         "--compute", raw.compute,
         "How kernels of several jobs come onto a GPU: timeslice (in turn), mps (containers "
         "get the pipes of their GPU's MPS control daemon)")
      ->capture_default_str();
  app.add_option("--mps-dir", raw.mps_dir,
                 "Folder on the host with those pipes, shared with sluice-node")
      ->capture_default_str();
  app.add_option("--mps-version", raw.mps_version,
                 "MPS of this node, as sluice-node has it: legacy, 3 (a container gets its own "
                 "namespace; driver 615), auto (3 where the driver has it)")
      ->capture_default_str();
  app.add_option("--env", raw.environment,
                 "NAME=VALUE for every container that gets a grant (repeatable)");
  app.add_option("--mount", raw.mounts,
                 "/HOST:/CONTAINER[:ro|:rw] for every container that gets a grant (repeatable)");
  app.add_option("--foreign-gpus", raw.foreign_gpus,
                 "A GPU that another plugin or NVIDIA's GPU fractions manage, too: refuse (it is "
                 "not offered until they no longer do), share (its memory is promised twice)")
      ->capture_default_str();
  app.add_option("--driver-limit", raw.driver_limit,
                 "Have the driver limit containers, too: auto (with a driver from 615 and control "
                 "groups of version 2), on (do not start without these), off")
      ->capture_default_str();
  app.add_option("--driver-charges", raw.driver_charges,
                 "What the driver counts against a container: mapped (also the pool that it has "
                 "mapped), made (only what its programs made); how high its limit must be")
      ->capture_default_str();
  app.add_option("--cgroups", options.cgroups, "Where control groups are mounted")
      ->capture_default_str();
  app.add_option("--annotations", raw.annotations,
                 "Find out whose each grant is and serve it on the terms of its pod's annotations: "
                 "on, off (a grant is worth its granules)")
      ->capture_default_str();
  app.add_option("--node", options.node,
                 "Name of this node in the cluster (for metrics alone: this machine's)");
  app.add_option(
         "--trust", raw.trust,
         "Whose jobs may have memory of each other's: namespace (those of one namespace, or "
         "of one sluice.dev/share-group in it), node (all)")
      ->capture_default_str();
  app.add_option("--namespaces", raw.namespaces,
                 "File with most that pods' annotations may say, by namespace (YAML)");
  app.add_option("--api-server", options.api_server,
                 "URL of the API server (as every pod finds it)");
  app.add_option("--service-account", options.service_account,
                 "Folder with the token and the CA of the API server")
      ->capture_default_str();
  app.add_option("--unseen", raw.unseen,
                 "Seconds after which a grant is over whose container nobody knows of")
      ->capture_default_str();
  app.add_option("--probation", raw.probation,
                 "Seconds without a further error after which a GPU is offered again")
      ->capture_default_str();
  app.add_option("--ignore-xid", raw.overlooked,
                 "An XID error that says nothing about a GPU (repeatable)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      *status = app.exit(error);
      return std::optional<Options>();
    }
    return Status(StatusCode::kInvalidArgument, error.what());
  }
  if (describe) {
    std::fputs(metrics::Describe(MetricGroups()).c_str(), stdout);
    *status = 0;
    return std::optional<Options>();
  }
  Result<Options> checked = Checked(raw, std::move(options));
  if (!checked.ok()) return checked.status();
  return std::optional<Options>(std::move(*checked));
}

}  // namespace sluice::deviceplugin
