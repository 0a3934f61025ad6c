// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/writers.h"

#include <algorithm>

namespace sluice::replay {
namespace {

/// The finaliser of MurmurHash3 for 64 bits (Austin Appleby, public domain).
constexpr uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdu;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53u;
  return value ^ (value >> 33);
}

}  // namespace

uint32_t PatternSeed(BlockId block, uint64_t iteration, uint32_t launch) {
  const uint64_t place = uint64_t{block} << 32 | launch;
  return static_cast<uint32_t>(Mix(Mix(place) + iteration) >> 32) | 1;
}

Writers::Work Writers::Next(const Use& use, uint64_t iteration, uint32_t launch) {
  uint32_t& seed = seeds_[use.block];
  Work work;
  work.check = use.reads ? seed : 0;
  work.initial = use.reads && seed == 0;
  if (use.writes || work.initial) work.write = seed = PatternSeed(use.block, iteration, launch);
  return work;
}

bool EverChecked(const Plan& plan, BlockId block, uint64_t iterations) {
  Writers writers(plan.block_bytes.size());
  // What the second iteration finds, all later ones find.
  for (uint64_t i = 0; i < std::min<uint64_t>(iterations, 2); ++i) {
    for (const auto& event : plan.events) {
      if (event.kind == scheduler::trace::EventKind::kAlloc) writers.Allocated(event.index);
      if (event.kind != scheduler::trace::EventKind::kOperator) continue;
      for (const Use& use : plan.launches[event.index].uses) {
        if (use.block == block && writers.Next(use, i, event.index).check != 0) return true;
      }
    }
  }
  return false;
}

}  // namespace sluice::replay
