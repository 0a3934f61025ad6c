// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/granule/device_ids.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "deviceplugin/granule/hash.h"

namespace sluice::deviceplugin {

namespace {

std::string Base36(uint32_t value) {
  std::array<char, 8> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, 36).ptr;
  return {text.data(), end};
}

/// Half of the hash, or all of it where two GPUs have the same half.
std::vector<std::string> Prefixes(const std::vector<Gpu>& gpus) {
  constexpr size_t kShort = 8;
  constexpr size_t kLong = 16;
  std::vector<std::string> prefixes;
  for (const Gpu& gpu : gpus) prefixes.push_back(Hex(Hash(gpu.uuid), kShort));
  const std::set<std::string> different(prefixes.begin(), prefixes.end());
  if (different.size() == gpus.size()) return prefixes;
  for (size_t i = 0; i < gpus.size(); ++i) prefixes[i] = Hex(Hash(gpus[i].uuid), kLong);
  return prefixes;
}

}  // namespace

Result<DeviceIds> DeviceIds::Make(std::vector<Gpu> gpus, uint64_t granule_bytes) {
  DeviceIds ids;
  ids.gpus_ = std::move(gpus);
  ids.granule_bytes_ = granule_bytes;
  ids.prefixes_ = Prefixes(ids.gpus_);
  for (uint32_t gpu = 0; gpu < ids.gpus_.size(); ++gpu) {
    for (uint32_t number = 0; number < GranulesOf(ids.gpus_[gpu], granule_bytes); ++number) {
      const DevicePlace place{gpu, number};
      ids.all_.push_back(ids.IdOf(place));
      if (!ids.places_.emplace(ids.all_.back(), place).second) {
        return Status(StatusCode::kInvalidArgument,
                      "two GPUs have the UUID " + ids.gpus_[gpu].uuid);
      }
    }
  }
  return ids;
}

std::optional<DevicePlace> DeviceIds::Find(std::string_view id) const {
  const auto found = places_.find(std::string(id));
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

std::string DeviceIds::IdOf(const DevicePlace& place) const {
  return prefixes_[place.gpu] + "-" + Base36(place.number);
}

}  // namespace sluice::deviceplugin
