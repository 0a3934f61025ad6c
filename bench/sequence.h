// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::bench {

/// One step of a training iteration as its allocator sees it.
struct BlockStep {
  bool alloc;
  uint32_t block;  // 0 .. blocks - 1; allocated once, freed once
  uint64_t bytes;  // of an allocation
};

struct BlockSequence {
  std::string name;
  std::vector<BlockStep> steps;
  uint32_t blocks = 0;
};

/// Reads bench/data/<name>.blocks. Ends the program with a reason when it cannot.
BlockSequence ReadSequence(const std::string& name);

}  // namespace sluice::bench
