// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "simgpu/driver/slab.h"
#include "simgpu/graph/node.h"
#include "simgpu/graph/user_objects.h"

namespace sluice::simgpu {

/// All graphs of a process: nodes, edges and copies, by the rules of cuda.h. Knows nothing of what
/// nodes do. The caller locks.
class GraphStore {
 public:
  CUgraph NewGraph();
  /// With all its nodes and embedded graphs.
  void Destroy(CUgraph graph);

  /// A node behind `dependencies`, which must be different nodes of `graph`.
  CUresult Add(CUgraph graph, std::span<const Link> dependencies, NodeWork work, CUgraphNode* out);
  /// Also severs its edges.
  CUresult Remove(CUgraphNode node);
  CUresult AddEdge(CUgraph graph, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData& data);
  /// Whatever its data are, as on a real driver.
  CUresult RemoveEdge(CUgraph graph, CUgraphNode from, CUgraphNode to);

  /// A copy whose nodes know which they were copied from. Embedded graphs are copied too.
  CUgraph Clone(CUgraph graph);
  /// The copy of `original` in `clone` (not in graphs embedded there), null if there is none.
  static CUgraphNode FindCopy(CUgraph clone, CUgraphNode original);
  /// The same, embedded graphs included.
  static CUgraphNode FindCopyDeep(CUgraph clone, CUgraphNode original);

  /// Puts `child` itself, not a copy, into a node's hands.
  void Adopt(CUgraphNode node, CUgraph child);

  UserObjects users;
  /// Told of each graph with memory nodes before it goes.
  std::function<void(CUgraph)> before_destroy;

 private:
  void DeleteNode(CUgraphNode node);
  static void CountMemoryNodes(CUgraph graph, uint32_t count);

  Slab<CUgraph_st> graphs_;
  Slab<CUgraphNode_st> nodes_;
  uint64_t next_serial_ = 1;
};

/// The nodes so that each comes behind those it depends on, otherwise in the order of their making;
/// nothing if there is a cycle, of which `*in_cycle` is then a node.
std::optional<std::vector<CUgraphNode>> TopologicalOrder(CUgraph graph, CUgraphNode* in_cycle);

/// Whether `node` is one of `of` or comes before one of them.
bool IsBefore(CUgraphNode node, std::span<const Link> of);

std::vector<CUgraphNode> Roots(CUgraph graph);
std::vector<CUgraphNode> Leaves(CUgraph graph);

}  // namespace sluice::simgpu
