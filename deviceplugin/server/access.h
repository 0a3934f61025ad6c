// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/grant/record.h"

namespace sluice::deviceplugin {

struct Mount {
  std::string host;
  std::string container;
  bool read_only = true;
  friend bool operator==(const Mount&, const Mount&) = default;
};

/// How containers of this node come to the GPU and to the library, from the plugin's command line.
struct Delivery {
  /// Folder on the host with the library of this version, never overwritten; empty: containers have
  /// it themselves.
  std::string library = {};
  /// The container's runtime (NVIDIA's) is told by its environment which GPU to show.
  bool visible_devices = true;
  /// Folder with the MPS control daemons' pipes (common/mps_folder.h); empty: `--compute
  /// timeslice`.
  std::string mps_dir = {};
  /// MPS v3: a container gets a folder of its own there, and not its GPU's.
  bool mps_v3 = false;
  std::map<std::string, std::string> environment = {};  // further variables
  std::vector<Mount> mounts = {};                       // further files and folders
  /// The driver's own limit of a container, in MiB, by the UUID of its GPU (inventory/
  /// driver_limit.h); none: it gets none.
  std::map<std::string, uint64_t> driver_limit_mib = {};
};

/// What a container gets of a grant.
struct Access {
  std::map<std::string, std::string> environment;
  std::vector<Mount> mounts;
};

/// Where a container finds the library and its socket.
inline constexpr char kLibraryInContainer[] = "/opt/sluice";
inline constexpr char kGrantInContainer[] = "/run/sluice";
inline constexpr char kMpsInContainer[] = "/run/sluice-mps";

/// `folder`: the grant's on the host. Nothing in the environment is a limit: the socket that lies
/// in the mounted folder is the grant, and the daemon that listens there has the record.
Access AccessTo(const GrantRecord& grant, const std::string& folder, const Delivery& delivery);

}  // namespace sluice::deviceplugin
