// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/graph_memory_calls.h"
#include "simgpu/driver/graph_params.h"
#include "simgpu/driver/graph_state.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// Where a new node goes.
struct Place {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* dependencies;
  const CUgraphEdgeData* data;
  size_t count;
};

CUresult CheckPlace(const Place& place) {
  bool good = place.out != nullptr && IsLive(place.graph) &&
              (place.count == 0 || place.dependencies != nullptr);
  for (size_t i = 0; good && i < place.count; ++i) {
    good = IsLive(place.dependencies[i]) && place.dependencies[i]->graph == place.graph;
  }
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

Links LinksOf(const Place& place) {
  Links links(place.count);
  for (size_t i = 0; i < place.count; ++i) {
    links[i] = {place.dependencies[i], place.data == nullptr ? CUgraphEdgeData{} : place.data[i]};
  }
  return links;
}

CUresult Insert(const GraphCall& call, const Place& place, NodeWork work) {
  return call->store.Add(place.graph, LinksOf(place), std::move(work), place.out);
}

/// `make` fills in the work of the node, or says what is wrong with its parameters.
template <typename Work, typename Make>
CUresult AddNode(const Place& place, Make make) {
  const GraphCall call;
  CUresult result = call.result();
  if (result == CUDA_SUCCESS) result = CheckPlace(place);
  Work work;
  if (result == CUDA_SUCCESS) result = make(&work);
  return result == CUDA_SUCCESS ? Insert(call, place, std::move(work)) : result;
}

CUresult AddChild(const Place& place, CUgraph child, CUgraphChildGraphNodeOwnership ownership) {
  const GraphCall call;
  CUresult result = call.result();
  if (result == CUDA_SUCCESS) result = CheckPlace(place);
  if (result != CUDA_SUCCESS) return result;
  const bool move = ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  if (!IsLive(child) || child == place.graph ||
      (!move && ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (move && (child->parent != nullptr || child->capturing || child->exec != nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!move && child->memory_nodes > 0) return CUDA_ERROR_NOT_SUPPORTED;
  result = Insert(call, place, EmptyWork{});
  if (result == CUDA_SUCCESS)
    call->store.Adopt(*place.out, move ? child : call->store.Clone(child));
  return result;
}

CUresult AddAllocation(const Place& place, CUDA_MEM_ALLOC_NODE_PARAMS_v1* params) {
  const GraphCall call;
  CUresult result = call.result();
  if (result == CUDA_SUCCESS) result = CheckPlace(place);
  AllocWork work;
  if (result == CUDA_SUCCESS) {
    result = PlanAllocation(call.state(), place.graph, LinksOf(place), params, &work);
  }
  return result == CUDA_SUCCESS ? Insert(call, place, std::move(work)) : result;
}

CUresult AddFree(const Place& place, CUdeviceptr address) {
  const GraphCall call;
  CUresult result = call.result();
  if (result == CUDA_SUCCESS) result = CheckPlace(place);
  FreeWork work;
  if (result == CUDA_SUCCESS) result = PlanFree(call.state(), place.graph, address, &work);
  if (result == CUDA_SUCCESS) result = Insert(call, place, work);
  if (result == CUDA_SUCCESS) call->allocations.NoteFree(place.graph, address);
  return result;
}

CUresult AddEvent(const Place& place, CUevent event, bool record) {
  const auto take = [&](auto* work) {
    if (!IsLive(event)) return CUDA_ERROR_INVALID_HANDLE;
    work->event = event;
    return CUDA_SUCCESS;
  };
  return record ? AddNode<RecordWork>(place, take) : AddNode<WaitWork>(place, take);
}

CUresult AddAny(const Place& place, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeParams& p = *params;
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return AddNode<KernelWork>(place, [&](auto* w) { return KernelFrom(p.kernel, w); });
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return AddNode<CopyWork>(
          place, [&](auto* w) { return CopyFrom(p.memcpy.copyParams, p.memcpy.copyCtx, w); });
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return AddNode<MemsetWork>(
          place, [&](auto* w) { return MemsetFrom(Narrowed(p.memset), p.memset.ctx, w); });
    case CU_GRAPH_NODE_TYPE_HOST:
      return AddNode<HostWork>(place, [&](auto* w) { return HostFrom(p.host, w); });
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return AddChild(place, p.graph.graph, p.graph.ownership);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return AddNode<EmptyWork>(place, [](auto*) { return CUDA_SUCCESS; });
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return AddEvent(place, p.eventWait.event, false);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return AddEvent(place, p.eventRecord.event, true);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return AddNode<MemOpsWork>(place, [&](auto* w) { return MemOpsFrom(p.memOp, w); });
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return AddAllocation(place, &params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return AddFree(place, p.free.dptr);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return NotSupported("cuGraphAddNode of this type");
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = Widened(*params);
  return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &wide);
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AddNode<KernelWork>({node, graph, dependencies, nullptr, count},
                             [&](auto* work) { return KernelFrom(*params, work); });
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMCPY3D_v2* params, CUcontext ctx) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AddNode<CopyWork>({node, graph, dependencies, nullptr, count},
                           [&](auto* work) { return CopyFrom(*params, ctx, work); });
}
CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS_v1* params,
                              CUcontext ctx) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AddNode<MemsetWork>({node, graph, dependencies, nullptr, count},
                             [&](auto* work) { return MemsetFrom(*params, ctx, work); });
}
CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AddNode<HostWork>({node, graph, dependencies, nullptr, count},
                           [&](auto* work) { return HostFrom(*params, work); });
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUgraph child) {
  return AddChild({node, graph, dependencies, nullptr, count}, child,
                  CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE);
}
CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count) {
  return AddNode<EmptyWork>({node, graph, dependencies, nullptr, count},
                            [](auto*) { return CUDA_SUCCESS; });
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph,
                                   const CUgraphNode* dependencies, size_t count, CUevent event) {
  return AddEvent({node, graph, dependencies, nullptr, count}, event, true);
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, CUevent event) {
  return AddEvent({node, graph, dependencies, nullptr, count}, event, false);
}
CUresult cuGraphAddBatchMemOpNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AddNode<MemOpsWork>({node, graph, dependencies, nullptr, count},
                             [&](auto* work) { return MemOpsFrom(*params, work); });
}
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        size_t count, CUgraphNodeParams* params) {
  return AddAny({node, graph, dependencies, nullptr, count}, params);
}
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* data, size_t count, CUgraphNodeParams* params) {
  return AddAny({node, graph, dependencies, data, count}, params);
}
