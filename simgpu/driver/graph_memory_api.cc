// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/graph_memory_calls.h"
#include "simgpu/driver/graph_state.h"
#include "simgpu/graph/memory_nodes.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

CUresult CheckParams(const CUDA_MEM_ALLOC_NODE_PARAMS_v1& params) {
  const CUmemPoolProps& props = params.poolProps;
  constexpr size_t kDevices = 1;
  if (params.bytesize == 0 || props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      props.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
      props.location.type != CU_MEM_LOCATION_TYPE_DEVICE || params.accessDescCount > kDevices ||
      (params.accessDescCount > 0 && params.accessDescs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (Driver::Get()->FindDevice(props.location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (params.accessDescCount > 0 && params.accessDescs[0].location.id != props.location.id) {
    return NotSupported("an allocation node that another GPU has access to");
  }
  return CUDA_SUCCESS;
}

AllocWork WorkOf(const CUDA_MEM_ALLOC_NODE_PARAMS_v1& params) {
  AllocWork work;
  work.params = params;
  if (params.accessDescs != nullptr) {
    work.access.assign(params.accessDescs, params.accessDescs + params.accessDescCount);
  }
  work.params.accessDescs = nullptr;
  return work;
}

}  // namespace

namespace sluice::simgpu {

CUresult PlanAllocation(GraphState* state, CUgraph graph, const Links& dependencies,
                        CUDA_MEM_ALLOC_NODE_PARAMS_v1* params, AllocWork* out) {
  // A graph that went into another one gets no more nodes of this kind.
  if (graph->parent != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUresult result = CheckParams(*params);
  if (result != CUDA_SUCCESS) return result;
  result = state->allocations.New(graph, dependencies, params->poolProps.location.id,
                                  params->bytesize, &params->dptr);
  if (result == CUDA_SUCCESS) *out = WorkOf(*params);
  return result;
}

CUresult PlanFree(GraphState* state, CUgraph graph, CUdeviceptr address, FreeWork* out) {
  if (graph->parent != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  out->address = address;
  return state->allocations.AllowFree(graph, address);
}

CUresult CaptureAlloc(CUstream stream, size_t bytes, CUdeviceptr* out) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  Captures::State state;
  call->captures.Look(&stream->capture, false, &state);
  if (state.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, stream->context->device()->ordinal()};
  params.bytesize = bytes;
  AllocWork work;
  CUresult result = PlanAllocation(call.state(), state.graph, stream->capture.tips, &params, &work);
  if (result != CUDA_SUCCESS) return result;
  CUgraphNode node = nullptr;
  result = call->captures.Add(&call->store, &stream->capture, std::move(work), &node);
  if (result == CUDA_SUCCESS) *out = params.dptr;
  return result;
}

CUresult CaptureFree(CUstream stream, CUdeviceptr address) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  Captures::State state;
  call->captures.Look(&stream->capture, false, &state);
  if (state.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  FreeWork work;
  CUresult result = PlanFree(call.state(), state.graph, address, &work);
  if (result != CUDA_SUCCESS) return result;
  CUgraphNode node = nullptr;
  result = call->captures.Add(&call->store, &stream->capture, work, &node);
  if (result == CUDA_SUCCESS) call->allocations.NoteFree(state.graph, address);
  return result;
}

CUresult FreeGraphMemory(Context* context, CUdeviceptr address,
                         const std::vector<uint64_t>& marks) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  return call->allocations.Free(address, context, marks);
}

}  // namespace sluice::simgpu

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams any{};
  any.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  any.alloc = *params;
  const CUresult result = cuGraphAddNode(node, graph, dependencies, count, &any);
  if (result == CUDA_SUCCESS) params->dptr = any.alloc.dptr;
  return result;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               size_t count, CUdeviceptr dptr) {
  CUgraphNodeParams any{};
  any.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  any.free.dptr = dptr;
  return cuGraphAddNode(node, graph, dependencies, count, &any);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS_v1* params) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  const auto* work = IsLive(node) ? std::get_if<AllocWork>(&node->work) : nullptr;
  if (work == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = work->params;
  params->accessDescs = work->access.empty() ? nullptr : work->access.data();
  return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* dptr) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  const auto* work = IsLive(node) ? std::get_if<FreeWork>(&node->work) : nullptr;
  if (work == nullptr || dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *dptr = work->address;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice dev) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result == CUDA_SUCCESS) call->allocations.Trim(device);
  return result;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void* value) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call->allocations.Sweep();
  const std::lock_guard lock(Driver::Get()->mutex);
  const GraphMemory& memory = *device->graph_memory;
  auto* bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      *bytes = memory.used();
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      *bytes = memory.used_high();
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      *bytes = memory.reserved();
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      *bytes = memory.reserved_high();
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void* value) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  // Only the high marks, and they only to zero.
  if (value == nullptr || *static_cast<const cuuint64_t*>(value) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::lock_guard lock(Driver::Get()->mutex);
  GraphMemory& memory = *device->graph_memory;
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
    memory.ResetUsedHigh();
  } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    memory.ResetReservedHigh();
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
