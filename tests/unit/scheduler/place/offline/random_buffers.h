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

/// What is free at each time becomes one more buffer: then all of it has to lie in one piece, which
/// is often impossible.
inline void FillUp(uint64_t times, uint64_t capacity, std::vector<Buffer>& buffers) {
  const size_t count = buffers.size();
  for (uint64_t time = 0; time < times; ++time) {
    uint64_t free = capacity;
    for (size_t i = 0; i < count; ++i) {
      if (buffers[i].lower <= time && time < buffers[i].upper) free -= buffers[i].size;
    }
    if (free > 0) buffers.push_back({time, time + 1, free});
  }
}

}  // namespace sluice::scheduler
