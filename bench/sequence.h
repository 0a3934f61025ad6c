// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::bench {

/// One step of a training iteration as the driver would see it.
struct BlockStep {
  enum Kind : uint8_t { kAlloc, kFree, kLaunch };
  Kind kind;
  uint32_t number;  // of the block, 0 .. blocks - 1, allocated once and freed once; of the operator
  uint64_t bytes;   // of an allocation
};

struct BlockSequence {
  std::string name;
  std::vector<BlockStep> steps;
  uint32_t blocks = 0;
  uint32_t launches = 0;
};

/// Reads bench/data/<name>.blocks. Ends the program with a reason when it cannot.
BlockSequence ReadSequence(const std::string& name);

}  // namespace sluice::bench
