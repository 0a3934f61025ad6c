// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "deviceplugin/granule/granule.h"

namespace sluice::deviceplugin {

/// Where a device id is.
struct DevicePlace {
  uint32_t gpu = 0;     // index into the list of GPUs
  uint32_t number = 0;  // of the granule on it
  friend bool operator==(const DevicePlace&, const DevicePlace&) = default;
};

/// One device id per granule: a short hash of the GPU's UUID and the granule's number, as in
/// "5f3a0c1e-2s". The same GPU has the same ids after every restart and in whatever order GPUs are
/// listed. At most 20 characters: each pod's status carries its ids.
class DeviceIds {
 public:
  /// kInvalidArgument: two GPUs have one UUID.
  static Result<DeviceIds> Make(std::vector<Gpu> gpus, uint64_t granule_bytes);

  const std::vector<Gpu>& gpus() const { return gpus_; }
  uint64_t granule_bytes() const { return granule_bytes_; }
  /// By GPU, then by number.
  const std::vector<std::string>& all() const { return all_; }
  std::optional<DevicePlace> Find(std::string_view id) const;
  std::string IdOf(const DevicePlace& place) const;

 private:
  std::vector<Gpu> gpus_;
  std::vector<std::string> prefixes_;
  uint64_t granule_bytes_ = 0;
  std::vector<std::string> all_;
  std::unordered_map<std::string, DevicePlace> places_;
};

}  // namespace sluice::deviceplugin
