// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <vector>

#include "tools/replay/plan.h"

namespace sluice::replay {

/// What decides the words that an operation writes into a block; never 0.
uint32_t PatternSeed(BlockId block, uint64_t iteration, uint32_t launch);

/// Which pattern each block holds, followed along the replay in program order.
class Writers {
 public:
  explicit Writers(size_t blocks) : seeds_(blocks, 0) {}

  /// A new block holds nobody's words.
  void Allocated(BlockId block) { seeds_[block] = 0; }

  /// What a launch does to one block; seeds of patterns, 0 for none.
  struct Work {
    uint32_t check = 0;    // the last writer's
    uint32_t write = 0;    // this launch's
    bool initial = false;  // it reads what nobody wrote, and so writes what later ones find
  };
  Work Next(const Use& use, uint64_t iteration, uint32_t launch);

 private:
  std::vector<uint32_t> seeds_;
};

/// Whether `iterations` of the plan ever check what a launch wrote into `block`.
bool EverChecked(const Plan& plan, BlockId block, uint64_t iterations);

/// How many words of a block are looked at when one is in every `stride`: the first of each and
/// the last word. All of them for a stride of 1. kernels.cu has the same formula.
constexpr uint64_t PlacesOf(uint64_t words, uint64_t stride) {
  return (words - 1 + stride - 1) / stride + 1;
}

}  // namespace sluice::replay
