// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/granule/granule.h"

#include <algorithm>

#include "common/bytes.h"

namespace sluice::deviceplugin {

namespace {

constexpr uint64_t kLeast = kMiB;
constexpr uint64_t kUsual = kGiB;
constexpr uint32_t kLeastPerGpu = 16;

Status Invalid(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

uint64_t IdsWith(const std::vector<Gpu>& gpus, uint64_t granule) {
  uint64_t sum = 0;
  for (const Gpu& gpu : gpus) sum += gpu.bytes / granule;
  return sum;
}

}  // namespace

Result<uint64_t> GranuleBytes(const std::vector<Gpu>& gpus, uint64_t wanted) {
  if (gpus.empty()) return Invalid("granule: the node has no GPU whose memory can be shared");
  const Gpu& smallest = *std::min_element(
      gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.bytes < b.bytes; });
  if (smallest.bytes < kLeast) {
    return Invalid("granule: " + smallest.uuid + " has " + FormatBytes(smallest.bytes) +
                   " to share; allowed: from " + FormatBytes(kLeast));
  }
  uint64_t least = kLeast;
  while (IdsWith(gpus, least) > kMaxIds) least *= 2;
  if (wanted == 0) {
    uint64_t granule = kUsual;
    while (granule > kLeast && smallest.bytes / granule < kLeastPerGpu) granule /= 2;
    return std::max(granule, least);
  }
  const bool fits = wanted <= smallest.bytes && IdsWith(gpus, wanted) <= kMaxIds;
  if (wanted % kMiB == 0 && fits) return wanted;
  return Invalid("granule " + FormatBytes(wanted) + ": allowed: whole MiB, " + FormatBytes(least) +
                 " (at most " + std::to_string(kMaxIds) + " device ids) to " +
                 FormatBytes(smallest.bytes) + " (the smallest GPU)");
}

uint32_t GranulesOf(const Gpu& gpu, uint64_t granule_bytes) {
  return static_cast<uint32_t>(gpu.bytes / granule_bytes);
}

}  // namespace sluice::deviceplugin
