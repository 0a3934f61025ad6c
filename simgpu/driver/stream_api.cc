// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/capture.h"
#include "simgpu/driver/driver.h"
#include "simgpu/driver/event_wait.h"
#include "simgpu/driver/graph_state.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

bool IsCreated(CUstream handle) { return handle > CU_STREAM_PER_THREAD && IsLive(handle); }

/// Its green context is gone.
bool IsDetached(CUstream stream) {
  return stream->green != nullptr && stream->green->destroyed.load();
}

/// The current context and the stream that `handle` means in it, with the driver lock held.
struct StreamCall {
  using Resolve = CUresult (Context::*)(CUstream, bool, CUstream*);
  StreamCall(CUstream handle, bool per_thread, Resolve resolve) {
    result = CurrentContext(&context);
    Enter(handle, per_thread, resolve);
  }
  /// Whichever context is current, a stream is waited for in its own.
  StreamCall(CUstream handle, bool per_thread) {
    result = ContextOfStream(handle, &context);
    Enter(handle, per_thread, &Context::Resolve);
  }
  void Enter(CUstream handle, bool per_thread, Resolve resolve) {
    if (result != CUDA_SUCCESS) return;
    lock = CommandQueue::Lock(context->mutex);
    result = (context->*resolve)(handle, per_thread, &stream);
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
  const CUresult made = context->NewStream(stream, (flags & CU_STREAM_NON_BLOCKING) == 0,
                                           std::clamp(priority, kGreatestPriority, kLeastPriority));
  if (made == CUDA_SUCCESS) (*stream)->green = ContextStack().back().green;
  return made;
}

CUresult Priority(CUstream handle, bool per_thread, int* priority) {
  const StreamCall call(handle, per_thread, &Context::Lookup);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = call.stream->priority;
  return CUDA_SUCCESS;
}

CUresult Synchronize(CUstream handle, bool per_thread) {
  StreamCall call(handle, per_thread);
  if (call.result == CUDA_SUCCESS) call.result = UnsafeInCapture();
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
  if (IsCreated(handle)) {
    Context* context = nullptr;
    CUresult result = ContextOfStream(handle, &context);
    if (result != CUDA_SUCCESS) return result;
    if (IsDetached(handle)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (handle->capture.session.load() != 0) {
      result = context->driver()->graphs->captures.Refuse(handle->capture);
    }
    if (result == CUDA_SUCCESS) result = UnsafeInCapture();
    if (result != CUDA_SUCCESS) return result;
    AskDevice(*context->driver());
    return context->queue().Done(handle->slot, handle->last.load()) ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_NOT_READY;
  }
  StreamCall call(handle, per_thread);
  if (call.result == CUDA_SUCCESS) call.result = UnsafeInCapture();
  if (call.result != CUDA_SUCCESS) return call.result;
  AskDevice(*call.context->driver());
  return call.context->Reached(call.context->MarksOf(call.stream)) ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_NOT_READY;
}

/// The event or the stream belongs to a capture: a dependency in a graph. The lock is let go.
CUresult WaitInCapture(StreamCall& call, CUevent event, bool capturing, unsigned flags) {
  call.lock.unlock();
  Captures& captures = call.context->driver()->graphs->captures;
  if (event->capture.session.load() != 0) {
    return captures.Join(&call.stream->capture, event->capture, call.stream->slot == kLegacyStream);
  }
  if (!capturing) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags == CU_EVENT_WAIT_EXTERNAL) return CaptureNode(call.stream, WaitWork{event});
  // Work outside the capture cannot come before a node inside it.
  return event->mark.load() == 0 ? CUDA_SUCCESS : captures.Isolate(call.stream->capture);
}

CUresult WaitEvent(CUstream handle, CUevent event, unsigned flags, bool per_thread) {
  StreamCall call(handle, per_thread, &Context::Lookup);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (!IsLive(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  bool capturing = false;
  if (event->capture.session.load() == 0) {
    call.result = call.context->ResolveToCapture(handle, per_thread, &call.stream, &capturing);
    if (call.result != CUDA_SUCCESS) return call.result;
  }
  if (capturing || flags != 0 || event->capture.session.load() != 0) {
    return WaitInCapture(call, event, capturing, flags);
  }
  call.lock.unlock();
  Command command{};
  const CUresult result = WaitCommand(call.context, event, &command);
  if (result != CUDA_SUCCESS || command.kind == CommandKind::kNothing) return result;
  call.lock.lock();
  if (call.context->Issue(call.stream, &command, call.lock) == 0) {
    return call.context->queue().error();
  }
  const auto& wait = command.wait_event;
  if (wait.peer != 0 || wait.shared != 0) return CUDA_SUCCESS;
  uint64_t& follows = call.stream->follows[wait.stream];
  follows = std::max(follows, wait.id);
  return CUDA_SUCCESS;
}

/// What a stream tells of itself.
template <typename T, typename Get>
CUresult Tell(CUstream handle, bool per_thread, T* out, Get get) {
  const StreamCall call(handle, per_thread, &Context::Lookup);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = get(call.stream);
  return CUDA_SUCCESS;
}

unsigned FlagsOf(CUstream stream) {
  return stream->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
}
CUcontext ContextOf(CUstream stream) {
  return stream->green != nullptr ? reinterpret_cast<CUcontext>(stream->green)
                                  : reinterpret_cast<CUcontext>(stream->context);
}
CUdevice DeviceOf(CUstream stream) { return stream->context->device()->ordinal(); }

/// Where a stream is. That is asked to find the context which to make current, so it need not be.
template <typename T, typename Get>
CUresult TellWhere(CUstream handle, bool per_thread, T* out, Get get) {
  if (!IsCreated(handle) || Driver::Get() == nullptr || InHostFunction()) {
    return Tell(handle, per_thread, out, get);
  }
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (IsDetached(handle)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *out = get(handle);
  return CUDA_SUCCESS;
}

CUresult GetId(CUstream handle, unsigned long long* id, bool per_thread) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Asking breaks the capture, on a real driver too.
  const StreamCall call(handle, per_thread);
  if (call.result != CUDA_SUCCESS) return call.result;
  *id = call.stream->number;
  return CUDA_SUCCESS;
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
  {
    // A capture that began there ends with it.
    GraphState* graphs = owner->driver()->graphs;
    const std::lock_guard lock(graphs->mutex);
    graphs->captures.Abandon(&graphs->store, &stream->capture);
  }
  const std::lock_guard lock(owner->mutex);
  const bool detached = IsDetached(stream);
  owner->DeleteStream(stream);
  return detached ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
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

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return Tell(stream, false, flags, FlagsOf);
}
CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned* flags) {
  return Tell(stream, true, flags, FlagsOf);
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* ctx) {
  return TellWhere(stream, false, ctx, ContextOf);
}
CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext* ctx) {
  return TellWhere(stream, true, ctx, ContextOf);
}
CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx* green) {
  return Tell(stream, false, green, [](CUstream of) { return of->green; });
}
CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  return TellWhere(stream, false, device, DeviceOf);
}
CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice* device) {
  return TellWhere(stream, true, device, DeviceOf);
}
