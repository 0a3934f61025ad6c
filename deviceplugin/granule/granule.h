// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"

/// What a node advertises to Kubernetes: GPU memory in equal granules, one device id for each. Pure
/// values; nothing here synchronises or throws (but for memory).
namespace sluice::deviceplugin {

/// Kubelet keeps a list of all ids and writes those of a pod into its status, so they are few.
inline constexpr uint32_t kMaxIds = 4096;

struct Gpu {
  std::string uuid;    // as NVML has it
  uint64_t bytes = 0;  // that pods may have: its memory less what the driver and the runtime need
};

/// Bytes of one granule. `wanted` 0: the largest power of two up to 1 GiB of which the smallest GPU
/// has at least 16, or a larger one where those would be more than kMaxIds ids in all.
/// kInvalidArgument: no GPU; a granule that is not a whole number of MiB, larger than a GPU, or of
/// which there are more than kMaxIds. The text names the field `granule` and what is allowed.
Result<uint64_t> GranuleBytes(const std::vector<Gpu>& gpus, uint64_t wanted = 0);

/// How many whole ones a GPU has.
uint32_t GranulesOf(const Gpu& gpu, uint64_t granule_bytes);

}  // namespace sluice::deviceplugin
