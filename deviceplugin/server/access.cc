// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/server/access.h"

#include "common/grant/store.h"
#include "common/mps_folder.h"

namespace sluice::deviceplugin {

Access AccessTo(const GrantRecord& grant, const std::string& folder, const Delivery& delivery) {
  Access access;
  access.environment["SLUICE_SOCKET"] =
      std::string(kGrantInContainer) + "/" + std::string(kGrantSocket);
  // Read-only: a socket is connected to all the same, and nobody puts another one in its place.
  access.mounts.push_back({folder, kGrantInContainer, true});
  if (!delivery.library.empty()) {
    // The dynamic loader puts the platform's folder for $LIB; where it finds nothing, or is musl's,
    // it says so and goes on, and the program is detected as one that uses the GPU unseen.
    access.environment["LD_PRELOAD"] = std::string(kLibraryInContainer) + "/$LIB/libsluice.so";
    access.mounts.push_back({delivery.library, kLibraryInContainer, true});
  }
  if (delivery.visible_devices) access.environment["NVIDIA_VISIBLE_DEVICES"] = grant.gpu;
  if (const auto most = delivery.driver_limit_mib.find(grant.gpu);
      most != delivery.driver_limit_mib.end()) {
    // Read by NVIDIA's container runtime, before the first program starts, and not by us. Without a
    // request the limit would be one, too: memory that the driver keeps from everybody else.
    access.environment["NVIDIA_GPU_MEMORY_LIMIT"] = std::to_string(most->second);
    access.environment["NVIDIA_GPU_MEMORY_REQUEST"] = "0";
  }
  if (!delivery.mps_dir.empty()) {
    access.environment["CUDA_MPS_PIPE_DIRECTORY"] = kMpsInContainer;
    const std::string pipes = delivery.mps_v3 ? MpsJobFolder(delivery.mps_dir, grant.id)
                                              : MpsPipeFolder(delivery.mps_dir, grant.gpu);
    access.mounts.push_back({pipes, kMpsInContainer, false});
  }
  for (const auto& [name, value] : delivery.environment) access.environment[name] = value;
  access.mounts.insert(access.mounts.end(), delivery.mounts.begin(), delivery.mounts.end());
  return access;
}

}  // namespace sluice::deviceplugin
