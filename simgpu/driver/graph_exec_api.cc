// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/graph_launch.h"
#include "simgpu/driver/graph_state.h"
#include "simgpu/graph/update.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// A cycle in the graph or in one embedded in it, of which `*node` is then part.
bool HasCycle(CUgraph graph, CUgraphNode* node) {
  if (!TopologicalOrder(graph, node)) return true;
  for (const CUgraphNode n : graph->nodes) {
    const auto* child = std::get_if<ChildWork>(&n->work);
    if (child != nullptr && HasCycle(child->graph, node)) return true;
  }
  return false;
}

CUresult Instantiate(CUgraphExec* out, CUgraph graph, uint64_t flags, CUgraphNode* wrong,
                     CUgraphInstantiateResult* why) {
  *wrong = nullptr;
  *why = CUDA_GRAPH_INSTANTIATE_ERROR;
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  constexpr uint64_t kKnown =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (out == nullptr || !IsLive(graph) || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (graph->parent != nullptr) {
    return graph->memory_nodes > 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  }
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    return NotSupported("instantiating a graph for launches from the device");
  }
  if (HasCycle(graph, wrong)) {
    *why = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (graph->memory_nodes > 0 && graph->exec != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUgraphExec exec = call->execs.New();
  exec->graph = call->store.Clone(graph);
  exec->source = graph;
  exec->source_serial = graph->serial;
  exec->flags = flags & ~uint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
  exec->context = nullptr;
  exec->mark = 0;
  if (graph->memory_nodes > 0) {
    graph->exec = exec;
    call->allocations.Hold(exec->graph);
  }
  *out = exec;
  *why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return CUDA_SUCCESS;
}

/// The older calls describe what is wrong in a text, and name no node.
CUresult InstantiateWithLog(CUgraphExec* exec, CUgraph graph, CUgraphNode* wrong, char* log,
                            size_t log_bytes) {
  CUgraphNode node = nullptr;
  CUgraphInstantiateResult why{};
  const CUresult result = Instantiate(exec, graph, 0, &node, &why);
  if (wrong != nullptr) *wrong = nullptr;
  if (log != nullptr && log_bytes > 0) {
    const char* text =
        why == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE ? "the graph has a cycle" : "";
    strncpy(log, text, log_bytes - 1);
    log[log_bytes - 1] = 0;
  }
  return result;
}

CUresult InstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                               CUDA_GRAPH_INSTANTIATE_PARAMS* params, bool per_thread) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result =
      Instantiate(exec, graph, params->flags, &params->hErrNode_out, &params->result_out);
  if (result != CUDA_SUCCESS || (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0) {
    return result;
  }
  return UploadGraph(*exec, params->hUploadStream, per_thread);
}

CUresult Update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  if (!IsLive(exec) || !IsLive(graph) || graph->capturing || graph->parent != nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  NodePairs pairs;
  *info = PairForUpdate(exec->graph, graph, &pairs);
  if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  for (const auto& [ours, theirs] : pairs) {
    if (std::holds_alternative<ChildWork>(ours->work)) continue;  // its nodes are in the list
    AssignWork(&ours->work, theirs->work);
  }
  return CUDA_SUCCESS;
}

bool Over(Context* context, uint64_t mark) {
  const std::lock_guard lock(Driver::Get()->mutex);
  return context == nullptr || context->destroyed() ||
         context->queue().Done(MarkStream(mark), MarkId(mark)) ||
         context->queue().error() != CUDA_SUCCESS;
}

/// A launch under way has its own copy of what the nodes do, but it keeps what the graph refers to.
void DestroyAfterLaunch(GraphState* state, CUgraphExec exec) {
  const CUgraph graph = exec->graph;
  Context* context = exec->context;
  const uint64_t mark = exec->mark;
  if (Over(context, mark)) {
    state->store.Destroy(graph);
    return;
  }
  state->janitor.Until([state, graph, context, mark] {
    if (!Over(context, mark)) return false;
    std::vector<UserObjects::Destructor> due;
    {
      const std::lock_guard lock(state->mutex);
      state->store.Destroy(graph);
      due = state->store.users.TakeDue();
    }
    for (const UserObjects::Destructor& object : due) object.function(object.pointer);
    return true;
  });
}

CUresult Enabled(CUgraphExec exec, CUgraphNode node, bool** out) {
  if (!IsLive(exec) || !IsLive(node)) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNode copy = GraphStore::FindCopyDeep(exec->graph, node);
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeType type = TypeOf(copy->work);
  if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY &&
      type != CU_GRAPH_NODE_TYPE_MEMSET) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = &copy->enabled;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* wrong, char* log,
                            size_t log_bytes) {
  return InstantiateWithLog(exec, graph, wrong, log, log_bytes);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* wrong, char* log,
                               size_t log_bytes) {
  return InstantiateWithLog(exec, graph, wrong, log, log_bytes);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  // Uploading needs a stream, which this call does not have.
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNode node = nullptr;
  CUgraphInstantiateResult why{};
  return Instantiate(exec, graph, flags, &node, &why);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return InstantiateWithParams(exec, graph, params, false);
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return InstantiateWithParams(exec, graph, params, true);
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(exec) || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (!IsLive(exec)) return CUDA_ERROR_INVALID_VALUE;
  if (IsLive(exec->source) && exec->source->serial == exec->source_serial &&
      exec->source->exec == exec) {
    exec->source->exec = nullptr;
  }
  DestroyAfterLaunch(call.state(), exec);
  call->execs.Delete(exec);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* wrong,
                           CUgraphExecUpdateResult* result) {
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  const CUresult answer = Update(exec, graph, &info);
  *result = info.result;
  if (wrong != nullptr) *wrong = info.errorNode;
  return answer;
}
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  return info == nullptr ? CUDA_ERROR_INVALID_VALUE : Update(exec, graph, info);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(exec) || !IsLive(node) || !IsLive(child)) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNode copy = GraphStore::FindCopyDeep(exec->graph, node);
  if (copy == nullptr || !std::holds_alternative<ChildWork>(copy->work)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  NodePairs pairs;
  const CUgraph embedded = std::get<ChildWork>(copy->work).graph;
  if (PairForUpdate(embedded, child, &pairs).result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  for (const auto& [ours, theirs] : pairs) {
    if (!std::holds_alternative<ChildWork>(ours->work)) AssignWork(&ours->work, theirs->work);
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  bool* state = nullptr;
  const CUresult result = Enabled(exec, node, &state);
  if (result == CUDA_SUCCESS) *state = enabled != 0;
  return result;
}
CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool* state = nullptr;
  const CUresult result = Enabled(exec, node, &state);
  if (result == CUDA_SUCCESS) *enabled = *state ? 1 : 0;
  return result;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return LaunchGraph(exec, stream, false);
}
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  return LaunchGraph(exec, stream, true);
}
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return UploadGraph(exec, stream, false);
}
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
  return UploadGraph(exec, stream, true);
}
