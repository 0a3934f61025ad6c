// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "scheduler/place/offline/buffers.h"

namespace sluice::scheduler {

/// `count` buffers of up to `most_bytes` that live within `times` points in time.
inline std::vector<Buffer> RandomBuffers(std::mt19937_64& random, size_t count, uint64_t times,
                                         uint64_t most_bytes) {
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t lower = random() % times;
    buffers.push_back({lower, lower + 1 + random() % (times - lower), 1 + random() % most_bytes});
  }
  return buffers;
}

}  // namespace sluice::scheduler
