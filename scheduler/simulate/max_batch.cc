// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/max_batch.h"

#include <algorithm>
#include <cmath>

namespace sluice::scheduler::simulate {

std::optional<uint64_t> LargestBatch(uint64_t most, const BatchTest& holds) {
  uint64_t low = 0;
  uint64_t high = most;
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (holds(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  if (low == 0) return std::nullopt;
  return low;
}

std::optional<uint64_t> LargestBatchFromAbove(uint64_t most, const BatchTest& holds) {
  constexpr uint64_t kSteps = 48;
  const uint64_t step = std::max<uint64_t>(1, most / kSteps);
  for (uint64_t samples = most; samples > 0; samples -= std::min(step, samples)) {
    if (holds(samples)) return samples;
  }
  return std::nullopt;
}

std::vector<uint64_t> BatchesAt(const std::vector<uint64_t>& alone, uint64_t first) {
  std::vector<uint64_t> batches;
  for (const uint64_t most : alone) {
    const double part = static_cast<double>(first) / static_cast<double>(alone.front());
    // What rounding takes from a whole number is given back.
    const double samples = std::floor(part * static_cast<double>(most) + 1e-9);
    batches.push_back(std::max<uint64_t>(1, static_cast<uint64_t>(samples)));
  }
  return batches;
}

}  // namespace sluice::scheduler::simulate
