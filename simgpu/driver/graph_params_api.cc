// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/graph_params.h"
#include "simgpu/driver/graph_state.h"
#include "simgpu/graph/update.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// Gives `change` the work of a node: in its graph, or, with `exec`, in that executable graph, of
/// which future launches only are meant.
template <typename Work, typename Change>
CUresult ChangeNode(CUgraphExec exec, CUgraphNode node, Change change) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(node)) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNode target = node;
  if (exec != nullptr) {
    if (!IsLive(exec)) return CUDA_ERROR_INVALID_VALUE;
    target = GraphStore::FindCopyDeep(exec->graph, node);
    if (target == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  auto* work = std::get_if<Work>(&target->work);
  return work == nullptr ? CUDA_ERROR_INVALID_VALUE : change(work);
}

template <typename Work, typename Params, typename Get>
CUresult GetParams(CUgraphNode node, Params* params, Get get) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return ChangeNode<Work>(nullptr, node, [&](Work* work) {
    *params = get(*work);
    return CUDA_SUCCESS;
  });
}

CUresult SetKernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2& params) {
  return ChangeNode<KernelWork>(exec, node, [&](KernelWork* work) {
    KernelWork changed;
    const CUresult result = KernelFrom(params, &changed);
    if (result != CUDA_SUCCESS) return result;
    if (exec != nullptr && changed.context != work->context) return CUDA_ERROR_INVALID_VALUE;
    changed.priority = work->priority;
    *work = std::move(changed);
    return CUDA_SUCCESS;
  });
}

/// An executable graph takes only copies of one row for others of one row.
CUresult SetCopy(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D_v2& params,
                 CUcontext ctx) {
  return ChangeNode<CopyWork>(exec, node, [&](CopyWork* work) {
    CopyWork changed;
    const CUresult result = CopyFrom(
        params, exec == nullptr ? reinterpret_cast<CUcontext>(work->context) : ctx, &changed);
    if (result != CUDA_SUCCESS) return result;
    if (exec != nullptr && !CopyMayBecome(*work, changed)) return CUDA_ERROR_INVALID_VALUE;
    *work = changed;
    return CUDA_SUCCESS;
  });
}

CUresult SetMemset(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1& params,
                   CUcontext ctx) {
  return ChangeNode<MemsetWork>(exec, node, [&](MemsetWork* work) {
    MemsetWork changed;
    const CUresult result = MemsetFrom(
        params, exec == nullptr ? reinterpret_cast<CUcontext>(work->context) : ctx, &changed);
    if (result != CUDA_SUCCESS) return result;
    if (exec != nullptr && !MemsetMayBecome(*work, changed)) return CUDA_ERROR_INVALID_VALUE;
    *work = changed;
    return CUDA_SUCCESS;
  });
}

CUresult SetHost(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1& params) {
  return ChangeNode<HostWork>(exec, node, [&](auto* work) { return HostFrom(params, work); });
}

CUresult SetMemOps(CUgraphExec exec, CUgraphNode node,
                   const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& params) {
  return ChangeNode<MemOpsWork>(exec, node, [&](MemOpsWork* work) {
    // How many and which operations there are is settled at instantiation.
    if (exec != nullptr && params.count != work->ops.size()) return CUDA_ERROR_INVALID_VALUE;
    return MemOpsFrom(params, work);
  });
}

template <typename Work>
CUresult SetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  if (!IsLive(event)) return CUDA_ERROR_INVALID_HANDLE;
  return ChangeNode<Work>(exec, node, [&](Work* work) {
    work->event = event;
    return CUDA_SUCCESS;
  });
}

CUDA_KERNEL_NODE_PARAMS_v1 NarrowedKernel(const CUDA_KERNEL_NODE_PARAMS_v2& p) {
  return {p.func,      p.gridDimX,  p.gridDimY,       p.gridDimZ,     p.blockDimX,
          p.blockDimY, p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra};
}

CUresult SetAny(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeParams& p = *params;
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return SetKernel(exec, node, p.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return SetCopy(exec, node, p.memcpy.copyParams, p.memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return SetMemset(exec, node, Narrowed(p.memset), p.memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
      return SetHost(exec, node, p.host);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return SetEvent<WaitWork>(exec, node, p.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return SetEvent<RecordWork>(exec, node, p.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return SetMemOps(exec, node, p.memOp);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return GetParams<KernelWork>(node, params,
                               [](KernelWork& work) { return NarrowedKernel(KernelParams(work)); });
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return GetParams<KernelWork>(node, params, [](KernelWork& work) { return KernelParams(work); });
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D_v2* params) {
  return GetParams<CopyWork>(node, params, [](const CopyWork& work) { return work.box; });
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1* params) {
  return GetParams<MemsetWork>(node, params, [](const MemsetWork& work) { return work.area; });
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS_v1* params) {
  return GetParams<HostWork>(node, params, [](const HostWork& work) {
    return CUDA_HOST_NODE_PARAMS_v1{work.function, work.user_data};
  });
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return GetParams<RecordWork>(node, event, [](const RecordWork& work) { return work.event; });
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return GetParams<WaitWork>(node, event, [](const WaitWork& work) { return work.event; });
}
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node,
                                        CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  return GetParams<MemOpsWork>(node, params, [](MemOpsWork& work) {
    return CUDA_BATCH_MEM_OP_NODE_PARAMS_v1{reinterpret_cast<CUcontext>(work.context),
                                            static_cast<unsigned>(work.ops.size()), work.ops.data(),
                                            0};
  });
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetKernel(nullptr, node, Widened(*params));
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetKernel(nullptr, node, *params);
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D_v2* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetCopy(nullptr, node, *params, nullptr);
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetMemset(nullptr, node, *params, nullptr);
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetHost(nullptr, node, *params);
}
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetMemOps(nullptr, node, *params);
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return SetEvent<RecordWork>(nullptr, node, event);
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return SetEvent<WaitWork>(nullptr, node, event);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (exec == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetKernel(exec, node, Widened(*params));
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  if (exec == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetKernel(exec, node, *params);
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D_v2* params, CUcontext ctx) {
  if (exec == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetCopy(exec, node, *params, ctx);
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext ctx) {
  if (exec == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetMemset(exec, node, *params, ctx);
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS_v1* params) {
  if (exec == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetHost(exec, node, *params);
}
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  if (exec == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetMemOps(exec, node, *params);
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetEvent<RecordWork>(exec, node, event);
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetEvent<WaitWork>(exec, node, event);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return SetAny(nullptr, node, params);
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetAny(exec, node, params);
}
