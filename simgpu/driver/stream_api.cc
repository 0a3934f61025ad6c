// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <utility>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// The current context and the stream that `handle` means in it, with the driver lock held.
struct StreamCall {
  StreamCall(CUstream handle, bool per_thread) {
    result = CurrentContext(&context);
    if (result != CUDA_SUCCESS) return;
    lock = CommandQueue::Lock(context->mutex);
    result = context->Resolve(handle, per_thread, &stream);
  }
  CUresult result = CUDA_SUCCESS;
  Context* context = nullptr;
  CUstream stream = nullptr;
  CommandQueue::Lock lock;
};

// Lower numbers are greater priorities; what is beyond is clamped, as the header says. They are all
// one to the simulated GPU.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

CUresult Create(CUstream* stream, unsigned flags, int priority) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (stream == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::lock_guard lock(context->mutex);
  return context->NewStream(stream, (flags & CU_STREAM_NON_BLOCKING) == 0,
                            std::clamp(priority, kGreatestPriority, kLeastPriority));
}

CUresult Priority(CUstream handle, bool per_thread, int* priority) {
  const StreamCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = call.stream->priority;
  return CUDA_SUCCESS;
}

CUresult Synchronize(CUstream handle, bool per_thread) {
  StreamCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  const std::vector<uint64_t> marks = call.context->MarksOf(call.stream);
  call.lock.unlock();
  const CUresult result = call.context->WaitFor(marks);
  call.lock.lock();
  if (result == CUDA_SUCCESS) call.context->TrimPools();
  return result;
}

/// Without the driver lock where the stream is given: a query must not stand behind a blocked
/// launch.
CUresult Query(CUstream handle, bool per_thread) {
  if (IsLive(handle > CU_STREAM_PER_THREAD ? handle : nullptr)) {
    Context* context = nullptr;
    const CUresult result = CurrentContext(&context);
    if (result != CUDA_SUCCESS) return result;
    if (handle->context != context) return CUDA_ERROR_INVALID_CONTEXT;
    return context->queue().Done(handle->slot, handle->last.load()) ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_NOT_READY;
  }
  StreamCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  return call.context->Reached(call.context->MarksOf(call.stream)) ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_NOT_READY;
}

CUresult WaitEvent(CUstream handle, CUevent event, unsigned flags, bool per_thread) {
  StreamCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (!IsLive(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (event->context != call.context) {
    return NotSupported("cuStreamWaitEvent for an event of another context");
  }
  const uint64_t mark = event->mark.load();
  if (mark == 0) return CUDA_SUCCESS;
  Command command{};
  command.kind = CommandKind::kWaitEvent;
  command.wait_event.stream = MarkStream(mark);
  command.wait_event.id = MarkId(mark);
  if (call.context->Issue(call.stream, &command, call.lock) == 0) {
    return call.context->queue().error();
  }
  uint64_t& follows = call.stream->follows[MarkStream(mark)];
  follows = std::max(follows, MarkId(mark));
  return CUDA_SUCCESS;
}

CUresult GetId(CUstream handle, unsigned long long* id, bool per_thread) {
  StreamCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = call.stream->number;
  return CUDA_SUCCESS;
}

CUresult IsCapturing(CUstream handle, CUstreamCaptureStatus* status, bool per_thread) {
  StreamCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult MemoryValue(CommandKind kind, CUstream handle, CUdeviceptr addr, cuuint64_t value,
                     bool equal, bool per_thread) {
  Context* context = nullptr;
  const CUresult current = CurrentContext(&context);
  if (current != CUDA_SUCCESS) return current;
  if (addr % 8 != 0 || (!IsDeviceAddress(addr) && !context->driver()->Pinned(addr, 8))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  StreamCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  Command command{};
  command.kind = kind;
  command.value = {addr, value, equal ? 1u : 0u, 8};
  return call.context->Issue(call.stream, &command, call.lock) != 0 ? CUDA_SUCCESS
                                                                    : call.context->queue().error();
}

CUresult WriteValue(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned flags,
                    bool per_thread) {
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) {
    return NotSupported("cuStreamWriteValue64 with flags");
  }
  return MemoryValue(CommandKind::kWriteValue, stream, addr, value, false, per_thread);
}

CUresult WaitValue(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned flags,
                   bool per_thread) {
  if (flags != CU_STREAM_WAIT_VALUE_GEQ && flags != CU_STREAM_WAIT_VALUE_EQ) {
    return NotSupported("cuStreamWaitValue64 with other flags than GEQ and EQ");
  }
  return MemoryValue(CommandKind::kWaitValue, stream, addr, value, flags == CU_STREAM_WAIT_VALUE_EQ,
                     per_thread);
}

}  // namespace

CUresult cuStreamCreate(CUstream* stream, unsigned flags) { return Create(stream, flags, 0); }
// Priorities are kept out of the model: operations run in the order of issue.
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return Create(stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (stream <= CU_STREAM_PER_THREAD || !IsLive(stream) || stream->slot == kLegacyStream ||
      stream->per_thread) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  Context* owner = stream->context;
  const std::lock_guard lock(owner->mutex);
  owner->DeleteStream(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) { return Synchronize(stream, false); }
CUresult cuStreamSynchronize_ptsz(CUstream stream) { return Synchronize(stream, true); }
CUresult cuStreamQuery(CUstream stream) { return Query(stream, false); }
CUresult cuStreamQuery_ptsz(CUstream stream) { return Query(stream, true); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return WaitEvent(stream, event, flags, false);
}
CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) {
  return WaitEvent(stream, event, flags, true);
}
CUresult cuStreamGetId(CUstream stream, unsigned long long* id) { return GetId(stream, id, false); }
CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long* id) {
  return GetId(stream, id, true);
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return IsCapturing(stream, status, false);
}
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  return IsCapturing(stream, status, true);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  static thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
      *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::swap(*mode, current);
  return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                 unsigned flags) {
  return WriteValue(stream, addr, value, flags, false);
}
CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                      unsigned flags) {
  return WriteValue(stream, addr, value, flags, true);
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                unsigned flags) {
  return WaitValue(stream, addr, value, flags, false);
}
CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                     unsigned flags) {
  return WaitValue(stream, addr, value, flags, true);
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return Priority(stream, false, priority);
}

CUresult cuStreamGetPriority_ptsz(CUstream stream, int* priority) {
  return Priority(stream, true, priority);
}
