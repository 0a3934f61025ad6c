// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/graph/memory_nodes.h"

#include <map>

namespace sluice::simgpu {
namespace {

struct Uses {
  int allocations = 0;
  int frees = 0;
};

void Count(CUgraph graph, std::map<CUdeviceptr, Uses>* uses) {
  for (const CUgraphNode node : graph->nodes) {
    if (const auto* child = std::get_if<ChildWork>(&node->work)) Count(child->graph, uses);
    if (const auto* alloc = std::get_if<AllocWork>(&node->work)) {
      ++(*uses)[alloc->params.dptr].allocations;
    }
    if (const auto* freed = std::get_if<FreeWork>(&node->work)) ++(*uses)[freed->address].frees;
  }
}

}  // namespace

CUgraph Root(CUgraph graph) {
  while (graph->parent != nullptr) graph = graph->parent->graph;
  return graph;
}

MemoryEffects EffectsOf(CUgraph graph) {
  std::map<CUdeviceptr, Uses> uses;
  Count(graph, &uses);
  MemoryEffects effects;
  for (const auto& [address, use] : uses) {
    if (use.allocations > 0) effects.blocks.insert(address);
    if (use.allocations > use.frees) effects.left.insert(address);
    if (use.allocations == 0) effects.foreign.insert(address);
  }
  return effects;
}

bool MayFree(CUgraph graph, CUdeviceptr address) {
  std::map<CUdeviceptr, Uses> uses;
  Count(Root(graph), &uses);
  const Uses use = uses[address];
  return use.allocations == 0 ? use.frees == 0 : use.frees < use.allocations;
}

std::optional<CUdeviceptr> ReusableBlock(CUgraph graph, const Links& dependencies, uint64_t bytes) {
  std::map<CUdeviceptr, Uses> uses;
  std::map<CUdeviceptr, uint64_t> sizes;
  std::map<CUdeviceptr, bool> behind;  // whether all frees of it come before
  for (const CUgraphNode node : graph->nodes) {
    if (const auto* alloc = std::get_if<AllocWork>(&node->work)) {
      ++uses[alloc->params.dptr].allocations;
      // Of several allocations at one address the first one, whose size the block has.
      sizes.try_emplace(alloc->params.dptr, alloc->params.bytesize);
    }
    if (const auto* freed = std::get_if<FreeWork>(&node->work)) {
      ++uses[freed->address].frees;
      const auto entry = behind.try_emplace(freed->address, true).first;
      entry->second = entry->second && IsBefore(node, dependencies);
    }
  }
  std::optional<CUdeviceptr> best;
  for (const auto& [address, size] : sizes) {
    const Uses use = uses[address];
    if (size < bytes || use.allocations != use.frees || !behind[address]) continue;
    if (!best || size < sizes[*best]) best = address;
  }
  return best;
}

}  // namespace sluice::simgpu
