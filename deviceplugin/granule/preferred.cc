// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/granule/preferred.h"

#include <algorithm>
#include <set>

#include "common/bytes.h"

namespace sluice::deviceplugin {

namespace {

using ByGpu = std::vector<std::set<uint32_t>>;  // numbers of granules

Status Invalid(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

Result<ByGpu> Sorted(const DeviceIds& ids, const std::vector<std::string>& names) {
  ByGpu by_gpu(ids.gpus().size());
  for (const std::string& name : names) {
    const auto place = ids.Find(name);
    if (!place) return Invalid("device id '" + name + "': no GPU of this node has it");
    if (!by_gpu[place->gpu].insert(place->number).second) {
      return Invalid("device id '" + name + "' comes twice");
    }
  }
  return by_gpu;
}

std::string Amount(const DeviceIds& ids, size_t granules) {
  return std::to_string(granules) + " granules (" + FormatBytes(granules * ids.granule_bytes()) +
         ")";
}

}  // namespace

Result<std::vector<std::string>> PreferredIds(const DeviceIds& ids,
                                              const std::vector<std::string>& available,
                                              const std::vector<std::string>& must_have,
                                              size_t size, const Preference& preference) {
  Result<ByGpu> free = Sorted(ids, available);
  if (!free.ok()) return free.status();
  const Result<ByGpu> must = Sorted(ids, must_have);
  if (!must.ok()) return must.status();
  if (must_have.size() > size) {
    return Invalid(Amount(ids, must_have.size()) + " must be among " + Amount(ids, size));
  }
  std::optional<uint32_t> bound;
  for (uint32_t gpu = 0; gpu < must->size(); ++gpu) {
    if ((*must)[gpu].empty()) continue;
    if (bound) return Invalid("ids that the container must have lie on two GPUs");
    bound = gpu;
    (*free)[gpu].insert((*must)[gpu].begin(), (*must)[gpu].end());
  }
  const bool pack = preference.packing == Packing::kPack;
  const size_t wanted = preference.room ? preference.room(size) : size;
  std::optional<uint32_t> best;
  size_t most = 0;
  for (uint32_t gpu = 0; gpu < free->size(); ++gpu) {
    const size_t room = (*free)[gpu].size();
    if (bound && gpu != *bound) continue;
    most = std::max(most, room);
    if (room < size) continue;
    const size_t before = best ? (*free)[*best].size() : 0;
    const bool larger = (room >= wanted) != (before >= wanted) ? room > before
                        : pack                                 ? room < before
                                                               : room > before;
    if (!best || larger) best = gpu;
  }
  if (!best) {
    return Status(StatusCode::kResourceExhausted, "no single GPU has " + Amount(ids, size) +
                                                      " free; the most is " + Amount(ids, most));
  }
  std::vector<std::string> chosen = must_have;
  for (const uint32_t number : (*free)[*best]) {
    if (chosen.size() == size) break;
    if (!(*must)[*best].contains(number)) chosen.push_back(ids.IdOf({*best, number}));
  }
  return chosen;
}

Result<uint32_t> GpuOf(const DeviceIds& ids, const std::vector<std::string>& allocated) {
  const Result<ByGpu> by_gpu = Sorted(ids, allocated);
  if (!by_gpu.ok()) return by_gpu.status();
  std::optional<uint32_t> gpu;
  for (uint32_t i = 0; i < by_gpu->size(); ++i) {
    if ((*by_gpu)[i].empty()) continue;
    if (gpu) {
      return Status(StatusCode::kResourceExhausted,
                    Amount(ids, allocated.size()) +
                        " are free on this node, but on no single GPU; a container's memory is on "
                        "one");
    }
    gpu = i;
  }
  if (!gpu) return Invalid("no device ids");
  return *gpu;
}

}  // namespace sluice::deviceplugin
