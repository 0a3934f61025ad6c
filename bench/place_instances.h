// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "scheduler/place/offline/buffers.h"

namespace sluice::bench {

/// What is placed, and how well and how soon it has to be.
struct PlaceInstance {
  std::string name;
  std::vector<scheduler::Buffer> buffers;
  std::optional<uint64_t> capacity;  // that of MiniMalloc's paper
  double most_over_bound = 0;        // goal; 0: the capacity is one
  double most_seconds = 0;           // goal
};

/// MiniMalloc's A to F, idealloc's S_1, and each trace at some small batches and at the largest
/// that a card of 28 GiB holds (docs/results says which). An error names the file.
Result<std::vector<PlaceInstance>> ReadPlaceInstances();

}  // namespace sluice::bench
