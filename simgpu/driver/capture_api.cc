// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <utility>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/capture.h"
#include "simgpu/driver/graph_params.h"
#include "simgpu/driver/graph_state.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

CUstreamCaptureMode& ThreadMode() {
  static thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

bool Known(CUstreamCaptureMode mode) {
  return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

/// The stream that `handle` means, with the lock of the graphs held.
struct CaptureCall {
  CaptureCall(CUstream handle, bool per_thread) {
    Context* context = nullptr;
    result = StreamsOwnContext(handle, &context);
    if (result != CUDA_SUCCESS) return;
    {
      const CommandQueue::Lock lock(context->mutex);
      result = context->Lookup(handle, per_thread, &stream);
    }
    if (result == CUDA_SUCCESS) lock_ = std::unique_lock<std::mutex>(graphs()->mutex);
  }
  GraphState* graphs() const { return Driver::Get()->graphs; }
  Captures& captures() const { return graphs()->captures; }
  bool legacy() const { return stream->slot == kLegacyStream; }
  CUresult result = CUDA_SUCCESS;
  CUstream stream = nullptr;

 private:
  std::unique_lock<std::mutex> lock_;
};

bool Collect(const CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count, Links* out) {
  if (count > 0 && nodes == nullptr) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!IsLive(nodes[i])) return false;
    out->push_back({nodes[i], data == nullptr ? CUgraphEdgeData{} : data[i]});
  }
  return true;
}

CUresult Begin(CUstream handle, CUstreamCaptureMode mode, bool per_thread) {
  const CaptureCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (!Known(mode)) return CUDA_ERROR_INVALID_VALUE;
  if (call.legacy()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return call.captures().Begin(&call.graphs()->store, &call.stream->capture, mode, nullptr, {});
}

CUresult BeginToGraph(CUstream handle, CUgraph graph, const CUgraphNode* dependencies,
                      const CUgraphEdgeData* data, size_t count, CUstreamCaptureMode mode,
                      bool per_thread) {
  const CaptureCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  Links tips;
  if (!Known(mode) || !IsLive(graph) || graph->capturing || graph->parent != nullptr ||
      !Collect(dependencies, data, count, &tips)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (const Link& tip : tips) {
    if (tip.node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
  }
  if (call.legacy()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return call.captures().Begin(&call.graphs()->store, &call.stream->capture, mode, graph,
                               std::move(tips));
}

CUresult End(CUstream handle, CUgraph* graph, bool per_thread) {
  const CaptureCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return call.captures().End(&call.graphs()->store, &call.stream->capture, graph);
}

struct Info {
  CUstreamCaptureStatus* status;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** dependencies = nullptr;
  const CUgraphEdgeData** data = nullptr;
  size_t* count = nullptr;
};

CUresult GetInfo(CUstream handle, const Info& out, bool per_thread) {
  const CaptureCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (out.status == nullptr || (out.data != nullptr && out.dependencies == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  StreamCapture& capture = call.stream->capture;
  Captures::State state;
  const CUresult result = call.captures().Look(&capture, call.legacy(), &state);
  if (result != CUDA_SUCCESS) return result;
  *out.status = state.status;
  if (state.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (out.id != nullptr) *out.id = state.id;
  if (out.graph != nullptr) *out.graph = state.graph;
  if (out.count != nullptr) *out.count = capture.shown.size();
  if (out.data != nullptr) *out.data = capture.shown_data.data();
  if (out.dependencies == nullptr) return CUDA_SUCCESS;
  *out.dependencies = capture.shown.data();
  for (const CUgraphEdgeData& data : capture.shown_data) {
    if (out.data == nullptr && !PlainEdge(data)) return CUDA_ERROR_LOSSY_QUERY;
  }
  return CUDA_SUCCESS;
}

CUresult Update(CUstream handle, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                size_t count, unsigned flags, bool per_thread) {
  const CaptureCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  Links tips;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || !Collect(dependencies, data, count, &tips)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return call.captures().SetTips(&call.stream->capture, tips,
                                 flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

}  // namespace

namespace sluice::simgpu {

CUresult UnsafeInCapture() { return Driver::Get()->graphs->captures.CheckUnsafeCall(ThreadMode()); }

CUresult CaptureNode(CUstream stream, NodeWork work) {
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  CUgraphNode node = nullptr;
  return call->captures.Add(&call->store, &stream->capture, std::move(work), &node);
}

std::optional<CUresult> CaptureCopy(Context* context, const CUDA_MEMCPY3D_v2& copy, CUstream handle,
                                    bool per_thread, bool wait) {
  CUstream stream = nullptr;
  bool capturing = false;
  {
    const CommandQueue::Lock lock(context->mutex);
    const CUresult result = context->ResolveToCapture(handle, per_thread, &stream, &capturing);
    if (result != CUDA_SUCCESS) return result;
  }
  if (!capturing) return std::nullopt;  // a real driver lets copies pass that end with the call
  if (wait) return context->driver()->graphs->captures.Refuse(stream->capture);
  CopyWork work;
  const CUresult result = CopyFrom(copy, reinterpret_cast<CUcontext>(context), &work);
  return result == CUDA_SUCCESS ? CaptureNode(stream, work) : result;
}

CUresult CaptureMemOps(CUstream stream, std::vector<CUstreamBatchMemOpParams> ops) {
  return CaptureNode(stream, MemOpsWork{stream->context, std::move(ops)});
}

}  // namespace sluice::simgpu

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || !Known(*mode)) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, ThreadMode());
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream) {
  return Begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, false);
}
CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  return Begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, true);
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return Begin(stream, mode, false);
}
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return Begin(stream, mode, true);
}
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                                     size_t count, CUstreamCaptureMode mode) {
  return BeginToGraph(stream, graph, dependencies, data, count, mode, false);
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                          const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* data, size_t count,
                                          CUstreamCaptureMode mode) {
  return BeginToGraph(stream, graph, dependencies, data, count, mode, true);
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) { return End(stream, graph, false); }
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return End(stream, graph, true);
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return GetInfo(stream, {status}, false);
}
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  return GetInfo(stream, {status}, true);
}
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return GetInfo(stream, {status, id}, false);
}
CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus* status,
                                     cuuint64_t* id) {
  return GetInfo(stream, {status, id}, true);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   size_t* count) {
  return GetInfo(stream, {status, id, graph, dependencies, nullptr, count}, false);
}
CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus* status,
                                        cuuint64_t* id, CUgraph* graph,
                                        const CUgraphNode** dependencies, size_t* count) {
  return GetInfo(stream, {status, id, graph, dependencies, nullptr, count}, true);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** data, size_t* count) {
  return GetInfo(stream, {status, id, graph, dependencies, data, count}, false);
}
CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus* status,
                                        cuuint64_t* id, CUgraph* graph,
                                        const CUgraphNode** dependencies,
                                        const CUgraphEdgeData** data, size_t* count) {
  return GetInfo(stream, {status, id, graph, dependencies, data, count}, true);
}
CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count,
                                           unsigned flags) {
  return Update(stream, dependencies, nullptr, count, flags, false);
}
CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode* dependencies,
                                                size_t count, unsigned flags) {
  return Update(stream, dependencies, nullptr, count, flags, true);
}
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* dependencies,
                                              const CUgraphEdgeData* data, size_t count,
                                              unsigned flags) {
  return Update(stream, dependencies, data, count, flags, false);
}
CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream stream, CUgraphNode* dependencies,
                                                   const CUgraphEdgeData* data, size_t count,
                                                   unsigned flags) {
  return Update(stream, dependencies, data, count, flags, true);
}
