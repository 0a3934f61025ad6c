// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "scheduler/place/offline/buffers.h"

namespace sluice::scheduler {

/// What a recurrent network leaves (data/traces/gnmt.trace): `small` activations, freed from the
/// last to the first; and as many `layers` whose weights are copied on the way there and, at the
/// peak, one after the other give way to a temporary and to a gradient that stays to the end, in
/// two sizes of which one is half of the other.
inline std::vector<Buffer> LargeTakeTurns(std::mt19937_64& random, size_t small, uint64_t layers) {
  std::vector<Buffer> buffers;
  const uint64_t peak = 2 * small;
  const uint64_t end = 2 * peak + 1;
  for (uint64_t i = 0; i < small; ++i) {
    buffers.push_back({2 * i + random() % 2, end - 1 - 2 * i - random() % 2, 1 + random() % 8});
  }
  const uint64_t unit = 16 * (1 + random() % 4);
  for (uint64_t layer = 0; layer < layers; ++layer) {
    const uint64_t copied = peak - 2 * (layers - layer);
    uint64_t turn = peak + 12 * layer;
    for (const uint64_t size : {unit, 2 * unit}) {
      buffers.push_back({copied, turn + 4, size});
      buffers.push_back({turn, turn + 5, size});
      buffers.push_back({turn + 3, end, size});
      turn += 6;
    }
  }
  return buffers;
}

}  // namespace sluice::scheduler
