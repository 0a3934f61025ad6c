// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/graph/graph.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace sluice::simgpu {
namespace {

Links::iterator FindLink(Links& links, CUgraphNode node) {
  return std::find_if(links.begin(), links.end(), [&](const Link& l) { return l.node == node; });
}

void Connect(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData& data) {
  to->dependencies.push_back({from, data});
  from->dependents.push_back({to, data});
}

void Disconnect(CUgraphNode from, CUgraphNode to) {
  to->dependencies.erase(FindLink(to->dependencies, from));
  from->dependents.erase(FindLink(from->dependents, to));
}

/// Only kernels have other ports than "all of it is over" (CUgraphEdgeData).
bool GoodEdge(CUgraphNode from, const NodeWork& to, const CUgraphEdgeData& data) {
  if (data.to_port != 0) return false;
  for (const unsigned char byte : data.reserved) {
    if (byte != 0) return false;
  }
  if (PlainEdge(data)) return true;
  constexpr unsigned char kLastKernelPort = 2;
  const bool kernels =
      std::holds_alternative<KernelWork>(from->work) && std::holds_alternative<KernelWork>(to);
  return kernels && data.from_port <= kLastKernelPort &&
         (data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT
              ? data.from_port == 0
              : data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data.from_port != 0);
}

}  // namespace

CUgraphNodeType TypeOf(const NodeWork& work) {
  static constexpr CUgraphNodeType kTypes[] = {
      CU_GRAPH_NODE_TYPE_KERNEL,       CU_GRAPH_NODE_TYPE_MEMCPY,      CU_GRAPH_NODE_TYPE_MEMSET,
      CU_GRAPH_NODE_TYPE_HOST,         CU_GRAPH_NODE_TYPE_GRAPH,       CU_GRAPH_NODE_TYPE_EMPTY,
      CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT,  CU_GRAPH_NODE_TYPE_MEM_ALLOC,
      CU_GRAPH_NODE_TYPE_MEM_FREE,     CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
  static_assert(std::variant_size_v<NodeWork> == std::size(kTypes));
  return kTypes[work.index()];
}

void AssignWork(NodeWork* target, const NodeWork& source) {
  *target = source;
  auto* kernel = std::get_if<KernelWork>(target);
  if (kernel == nullptr) return;
  const unsigned char* from = std::get<KernelWork>(source).args.data();
  for (void*& p : kernel->params) {
    p = kernel->args.data() + (static_cast<unsigned char*>(p) - from);
  }
}

CUgraph GraphStore::NewGraph() {
  CUgraph graph = graphs_.New();
  graph->nodes.clear();
  graph->parent = nullptr;
  graph->capturing = false;
  graph->copied_from = 0;
  graph->serial = next_serial_++;
  graph->memory_nodes = 0;
  graph->exec = nullptr;
  graph->user_objects.clear();
  return graph;
}

void GraphStore::Destroy(CUgraph graph) {
  if (graph->memory_nodes > 0 && before_destroy) before_destroy(graph);
  for (const CUgraphNode node : graph->nodes) DeleteNode(node);
  graph->nodes.clear();
  users.Release(graph->user_objects);
  graph->user_objects.clear();
  graphs_.Delete(graph);
}

void GraphStore::DeleteNode(CUgraphNode node) {
  if (const auto* child = std::get_if<ChildWork>(&node->work)) Destroy(child->graph);
  node->work = EmptyWork{};
  node->dependencies.clear();
  node->dependents.clear();
  nodes_.Delete(node);
}

void GraphStore::CountMemoryNodes(CUgraph graph, uint32_t count) {
  for (CUgraph g = graph; g != nullptr; g = g->parent == nullptr ? nullptr : g->parent->graph) {
    g->memory_nodes += count;
  }
}

CUresult GraphStore::Add(CUgraph graph, std::span<const Link> dependencies, NodeWork work,
                         CUgraphNode* out) {
  for (size_t i = 0; i < dependencies.size(); ++i) {
    const Link& link = dependencies[i];
    if (!IsLive(link.node) || link.node->graph != graph || !GoodEdge(link.node, work, link.data)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t j = 0; j < i; ++j) {
      if (dependencies[j].node == link.node) return CUDA_ERROR_INVALID_VALUE;
    }
  }
  CUgraphNode node = nodes_.New();
  node->graph = graph;
  node->serial = next_serial_++;
  node->original = 0;
  node->enabled = true;
  node->work = std::move(work);
  node->dependencies.clear();
  node->dependents.clear();
  for (const Link& link : dependencies) Connect(link.node, node, link.data);
  graph->nodes.push_back(node);
  if (OwnsMemory(node->work)) CountMemoryNodes(graph, 1);
  *out = node;
  return CUDA_SUCCESS;
}

CUresult GraphStore::Remove(CUgraphNode node) {
  CUgraph graph = node->graph;
  if (graph->memory_nodes > 0) return CUDA_ERROR_NOT_SUPPORTED;
  while (!node->dependencies.empty()) Disconnect(node->dependencies.back().node, node);
  while (!node->dependents.empty()) Disconnect(node, node->dependents.back().node);
  std::erase(graph->nodes, node);
  DeleteNode(node);
  return CUDA_SUCCESS;
}

CUresult GraphStore::AddEdge(CUgraph graph, CUgraphNode from, CUgraphNode to,
                             const CUgraphEdgeData& data) {
  if (!IsLive(from) || !IsLive(to) || from->graph != graph || to->graph != graph || from == to ||
      FindLink(to->dependencies, from) != to->dependencies.end() ||
      !GoodEdge(from, to->work, data)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Connect(from, to, data);
  return CUDA_SUCCESS;
}

CUresult GraphStore::RemoveEdge(CUgraph graph, CUgraphNode from, CUgraphNode to) {
  if (!IsLive(from) || !IsLive(to) || from->graph != graph || to->graph != graph ||
      graph->memory_nodes > 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto found = FindLink(to->dependencies, from);
  if (found == to->dependencies.end()) return CUDA_ERROR_INVALID_VALUE;
  Disconnect(from, to);
  return CUDA_SUCCESS;
}

CUgraph GraphStore::Clone(CUgraph graph) {
  CUgraph clone = NewGraph();
  clone->copied_from = graph->serial;
  clone->user_objects = graph->user_objects;
  users.Retain(clone->user_objects);
  std::map<CUgraphNode, CUgraphNode> copies;
  for (const CUgraphNode node : graph->nodes) {
    NodeWork work;
    AssignWork(&work, node->work);
    const auto* child = std::get_if<ChildWork>(&node->work);
    CUgraph embedded = child == nullptr ? nullptr : Clone(child->graph);
    CUgraphNode copy = nullptr;
    static_cast<void>(Add(clone, {}, std::move(work), &copy));
    if (embedded != nullptr) Adopt(copy, embedded);
    copy->original = node->serial;
    copy->enabled = node->enabled;
    copies[node] = copy;
  }
  for (const CUgraphNode node : graph->nodes) {
    for (const Link& link : node->dependencies) {
      Connect(copies.at(link.node), copies.at(node), link.data);
    }
  }
  return clone;
}

void GraphStore::Adopt(CUgraphNode node, CUgraph child) {
  child->parent = node;
  node->work = ChildWork{child};
  CountMemoryNodes(node->graph, child->memory_nodes);
}

CUgraphNode GraphStore::FindCopy(CUgraph clone, CUgraphNode original) {
  for (const CUgraphNode node : clone->nodes) {
    if (node->original == original->serial) return node;
  }
  return nullptr;
}

CUgraphNode GraphStore::FindCopyDeep(CUgraph clone, CUgraphNode original) {
  if (const CUgraphNode found = FindCopy(clone, original)) return found;
  for (const CUgraphNode node : clone->nodes) {
    const auto* child = std::get_if<ChildWork>(&node->work);
    if (child == nullptr) continue;
    if (const CUgraphNode found = FindCopyDeep(child->graph, original)) return found;
  }
  return nullptr;
}

}  // namespace sluice::simgpu
