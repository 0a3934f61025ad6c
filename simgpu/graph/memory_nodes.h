// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "simgpu/graph/graph.h"

namespace sluice::simgpu {

/// What a graph, with those embedded in it, does about memory.
struct MemoryEffects {
  std::set<CUdeviceptr> blocks;   // allocated here
  std::set<CUdeviceptr> left;     // of those, allocated and not freed again
  std::set<CUdeviceptr> foreign;  // freed here, but allocated elsewhere
};
MemoryEffects EffectsOf(CUgraph graph);

/// The graph that it is, in the end, embedded in.
CUgraph Root(CUgraph graph);

/// Whether the graph may get a node that frees `address`: not more often than it allocates it, and
/// once if another graph allocates it.
bool MayFree(CUgraph graph, CUdeviceptr address);

/// A block of at least `bytes` that the graph has allocated and freed again before `dependencies`:
/// a new allocation there may have the same address. The smallest one.
std::optional<CUdeviceptr> ReusableBlock(CUgraph graph, const Links& dependencies, uint64_t bytes);

}  // namespace sluice::simgpu
