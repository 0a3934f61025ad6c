// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/graph_state.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// Fills the caller's array of `*count` entries, clears those too many, and says how many there
/// are; without an array only that.
template <typename T, typename Get>
void Answer(T* array, size_t* count, size_t number, Get get) {
  for (size_t i = 0; array != nullptr && i < *count; ++i) array[i] = i < number ? get(i) : T{};
  *count = array == nullptr ? number : std::min(*count, number);
}

CUresult AnswerNodes(const std::vector<CUgraphNode>& found, CUgraphNode* nodes, size_t* count) {
  Answer(nodes, count, found.size(), [&](size_t i) { return found[i]; });
  return CUDA_SUCCESS;
}

/// `lossy`: the caller's form of the call has no place for the data of edges.
CUresult AnswerLinks(const Links& links, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count,
                     bool lossy) {
  const bool plain =
      std::all_of(links.begin(), links.end(), [](const Link& l) { return PlainEdge(l.data); });
  if (nodes != nullptr && lossy && !plain) return CUDA_ERROR_LOSSY_QUERY;
  if (data != nullptr && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  size_t capacity = *count;
  Answer(data, &capacity, links.size(), [&](size_t i) { return links[i].data; });
  Answer(nodes, count, links.size(), [&](size_t i) { return links[i].node; });
  return CUDA_SUCCESS;
}

CUresult NodeLinks(CUgraphNode node, Links CUgraphNode_st::*links, CUgraphNode* nodes,
                   CUgraphEdgeData* data, size_t* count, bool lossy) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(node) || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AnswerLinks(node->*links, nodes, data, count, lossy || data == nullptr);
}

CUresult Edges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
               size_t* count) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(graph) || count == nullptr || (from == nullptr) != (to == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Links sources;
  std::vector<CUgraphNode> targets;
  for (const CUgraphNode node : graph->nodes) {
    for (const Link& link : node->dependencies) {
      sources.push_back(link);
      targets.push_back(node);
    }
  }
  size_t capacity = *count;
  const CUresult result = AnswerLinks(sources, from, data, count, data == nullptr);
  if (result != CUDA_SUCCESS) return result;
  Answer(to, &capacity, targets.size(), [&](size_t i) { return targets[i]; });
  return CUDA_SUCCESS;
}

CUresult ChangeEdges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                     const CUgraphEdgeData* data, size_t count, bool add) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(graph) || (count > 0 && (from == nullptr || to == nullptr))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    const CUgraphEdgeData edge = data == nullptr ? CUgraphEdgeData{} : data[i];
    const CUresult result = add ? call->store.AddEdge(graph, from[i], to[i], edge)
                                : call->store.RemoveEdge(graph, from[i], to[i]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *graph = call->store.NewGraph();
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  // An embedded graph goes with its node, one under capture with the end of the capture.
  if (!IsLive(graph) || graph->parent != nullptr || graph->capturing) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  call->store.Destroy(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* clone, CUgraph original) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (clone == nullptr || !IsLive(original)) return CUDA_ERROR_INVALID_VALUE;
  if (original->memory_nodes > 0) return CUDA_ERROR_NOT_SUPPORTED;
  *clone = call->store.Clone(original);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (node == nullptr || !IsLive(original) || !IsLive(clone)) return CUDA_ERROR_INVALID_VALUE;
  *node = GraphStore::FindCopy(clone, original);
  return *node == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(node) || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = TypeOf(node->work);
  return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(node) || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* child = std::get_if<ChildWork>(&node->work);
  if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = child->graph;
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(graph) || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AnswerNodes(graph->nodes, nodes, count);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(graph) || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AnswerNodes(Roots(graph), nodes, count);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return Edges(graph, from, to, nullptr, count);
}
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, size_t* count) {
  return Edges(graph, from, to, data, count);
}
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* dependencies, size_t* count) {
  return NodeLinks(node, &CUgraphNode_st::dependencies, dependencies, nullptr, count, true);
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* dependencies,
                                       CUgraphEdgeData* data, size_t* count) {
  return NodeLinks(node, &CUgraphNode_st::dependencies, dependencies, data, count, false);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* dependents, size_t* count) {
  return NodeLinks(node, &CUgraphNode_st::dependents, dependents, nullptr, count, true);
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* dependents,
                                         CUgraphEdgeData* data, size_t* count) {
  return NodeLinks(node, &CUgraphNode_st::dependents, dependents, data, count, false);
}
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t count) {
  return ChangeEdges(graph, from, to, nullptr, count, true);
}
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* data, size_t count) {
  return ChangeEdges(graph, from, to, data, count, true);
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
  return ChangeEdges(graph, from, to, nullptr, count, false);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* data, size_t count) {
  return ChangeEdges(graph, from, to, data, count, false);
}

CUresult cuGraphDestroyNode(CUgraphNode node) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(node) || node->graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  return call->store.Remove(node);
}
