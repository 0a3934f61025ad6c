// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/bytes.h"
#include "common/gpu_numbers.h"
#include "common/mps_version.h"
#include "deviceplugin/granule/preferred.h"
#include "deviceplugin/inventory/driver_limit.h"
#include "deviceplugin/inventory/health.h"
#include "deviceplugin/pods/terms.h"
#include "deviceplugin/server/access.h"

namespace sluice::deviceplugin {

inline constexpr char kOff[] = "off";

struct Options {
  std::string resource = "sluice.dev/gpu-memory";
  std::string kubelet_dir = "/var/lib/kubelet/device-plugins";
  std::string pod_resources = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string root = "/run/sluice";       // grants and their sockets
  GpuNumbers gpus;                        // that are offered
  uint64_t granule_bytes = 0;             // 0: derived from the node
  std::optional<uint64_t> reserve_bytes;  // of each GPU, beside the pool; default: DefaultReserve
  Packing packing = Packing::kPack;
  Delivery delivery;
  HealthBook::Options health;
  bool refuse_foreign_gpus = true;  // that somebody else manages, too
  MpsChoice mps_version = MpsChoice::kAuto;
  DriverLimitMode driver_limit = DriverLimitMode::kAuto;
  DriverCharges driver_charges = DriverCharges::kMapped;
  std::string metrics = kOff;              // address and port
  std::string ready_file;                  // empty: none
  std::string cgroups = "/sys/fs/cgroup";  // for tests
  /// The API server's part: whose grants are, and on what terms (annotations).
  bool annotations = false;
  std::string node;  // as the cluster calls it
  pods::Trust trust = pods::Trust::kNamespace;
  pods::Ceilings ceilings;
  bool check = false;       // only ask the plugin that is there whether it answers
  uint64_t unseen_s = 120;  // pods::OverGrants
  std::string api_server;   // URL, for tests; empty: as a pod finds it
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};

/// What the command line says. Nothing: it has been answered (--help, --version,
/// --describe-metrics), and `*status` is the program's. kInvalidArgument: every fault at once, each
/// with its option and what is allowed.
Result<std::optional<Options>> ReadCommandLine(int argc, const char* const* argv, int* status);

}  // namespace sluice::deviceplugin
