// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <climits>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/graph_state.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

bool GoodCount(unsigned count) { return count > 0 && count <= INT_MAX; }

}  // namespace

CUresult cuUserObjectCreate(CUuserObject* object, void* ptr, CUhostFn destroy, unsigned references,
                            unsigned flags) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (object == nullptr || destroy == nullptr || !GoodCount(references) ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *object = call->store.users.Create(ptr, destroy, references);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(object) || !GoodCount(count)) return CUDA_ERROR_INVALID_VALUE;
  call->store.users.Retain(object, count);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(object) || !GoodCount(count)) return CUDA_ERROR_INVALID_VALUE;
  call->store.users.Release(object, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count,
                                 unsigned flags) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(graph) || !IsLive(object) || !GoodCount(count) || flags > CU_GRAPH_USER_OBJECT_MOVE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) call->store.users.Retain(object, count);
  graph->user_objects[object] += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(graph) || !IsLive(object) || !GoodCount(count)) return CUDA_ERROR_INVALID_VALUE;
  const auto held = graph->user_objects.find(object);
  if (held == graph->user_objects.end() || held->second < count) return CUDA_ERROR_INVALID_VALUE;
  held->second -= count;
  if (held->second == 0) graph->user_objects.erase(held);
  call->store.users.Release(object, count);
  return CUDA_SUCCESS;
}
