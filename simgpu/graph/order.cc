// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <map>
#include <queue>
#include <set>

#include "simgpu/graph/graph.h"

namespace sluice::simgpu {

std::optional<std::vector<CUgraphNode>> TopologicalOrder(CUgraph graph, CUgraphNode* in_cycle) {
  const auto later = [](CUgraphNode a, CUgraphNode b) { return a->serial > b->serial; };
  std::priority_queue<CUgraphNode, std::vector<CUgraphNode>, decltype(later)> ready(later);
  std::map<CUgraphNode, size_t> missing;
  for (const CUgraphNode node : graph->nodes) {
    missing[node] = node->dependencies.size();
    if (node->dependencies.empty()) ready.push(node);
  }
  std::vector<CUgraphNode> order;
  while (!ready.empty()) {
    const CUgraphNode node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const Link& link : node->dependents) {
      if (--missing.at(link.node) == 0) ready.push(link.node);
    }
  }
  if (order.size() == graph->nodes.size()) return order;
  // Behind a cycle nodes are missing something too: walk back until a node comes twice.
  CUgraphNode node = nullptr;
  for (const auto& [candidate, count] : missing) {
    if (count > 0) node = candidate;
  }
  std::set<CUgraphNode> seen;
  while (seen.insert(node).second) {
    for (const Link& link : node->dependencies) {
      if (missing.at(link.node) > 0) node = link.node;
    }
  }
  *in_cycle = node;
  return std::nullopt;
}

bool IsBefore(CUgraphNode node, std::span<const Link> of) {
  std::set<CUgraphNode> seen;
  std::vector<CUgraphNode> open;
  for (const Link& link : of) open.push_back(link.node);
  while (!open.empty()) {
    const CUgraphNode next = open.back();
    open.pop_back();
    if (next == node) return true;
    if (!seen.insert(next).second) continue;
    for (const Link& link : next->dependencies) open.push_back(link.node);
  }
  return false;
}

std::vector<CUgraphNode> Roots(CUgraph graph) {
  std::vector<CUgraphNode> roots;
  for (const CUgraphNode node : graph->nodes) {
    if (node->dependencies.empty()) roots.push_back(node);
  }
  return roots;
}

std::vector<CUgraphNode> Leaves(CUgraph graph) {
  std::vector<CUgraphNode> leaves;
  for (const CUgraphNode node : graph->nodes) {
    if (node->dependents.empty()) leaves.push_back(node);
  }
  return leaves;
}

}  // namespace sluice::simgpu
