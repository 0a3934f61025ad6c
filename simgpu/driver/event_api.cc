// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <time.h>

#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/capture.h"
#include "simgpu/driver/driver.h"
#include "simgpu/driver/graph_state.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// The event's context if the handle is good and the context alive.
CUresult Check(CUevent event, Context** out) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!IsLive(event)) return CUDA_ERROR_INVALID_HANDLE;
  *out = event->context;
  if ((*out)->destroyed()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return (*out)->queue().error();
}

/// An event that other processes may record too: its last record counts, whoever made it.
bool SharedReached(Context* context, CUevent event) {
  const EventBoard* board = context->driver()->Events();
  return !board->Exists(event->shared) ||
         board->Reached(event->shared.index, board->LastRecord(event->shared.index));
}

/// There is nothing to wake up a process when another one's work is over.
CUresult WaitForShared(Context* context, CUevent event) {
  const timespec pause{0, 50'000};
  VirtualHost* virtual_time = context->driver()->virtual_time.get();
  const WaitCost cost(virtual_time);
  while (!SharedReached(context, event)) {
    if (context->queue().error() != CUDA_SUCCESS) return context->queue().error();
    if (virtual_time != nullptr) {
      virtual_time->AwaitProgress();
    } else {
      nanosleep(&pause, nullptr);
    }
  }
  return CUDA_SUCCESS;
}

bool Reached(Context* context, uint64_t mark) {
  return mark == 0 || context->queue().Done(MarkStream(mark), MarkId(mark));
}

CUresult Record(CUevent event, CUstream handle, unsigned flags, bool per_thread) {
  Context* context = nullptr;
  CUresult result = ContextOfStream(handle, &context);
  if (result != CUDA_SUCCESS) return result;
  if (!IsLive(event) || event->context != context) return CUDA_ERROR_INVALID_HANDLE;
  if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  EventBoard* board = event->is_shared() ? context->driver()->Events() : nullptr;
  CommandQueue::Lock lock(context->mutex);
  CUstream stream = nullptr;
  bool capturing = false;
  result = context->ResolveToCapture(handle, per_thread, &stream, &capturing);
  if (result != CUDA_SUCCESS) return result;
  if (capturing) {
    lock.unlock();
    if (flags == CU_EVENT_RECORD_EXTERNAL) return CaptureNode(stream, RecordWork{event});
    context->driver()->graphs->captures.Record(stream->capture, &event->capture);
    return CUDA_SUCCESS;
  }
  if (flags != 0) return CUDA_ERROR_ILLEGAL_STATE;
  Command command{};
  command.kind = CommandKind::kRecordEvent;
  command.event.slot = event->slot;
  if (event->is_shared()) {
    if (!board->Exists(event->shared)) return CUDA_ERROR_INVALID_HANDLE;
    command.event.shared = event->shared.index + 1;
    command.event.record = board->BeginRecord(event->shared.index, SelfProcess());
  }
  const uint64_t id = context->Issue(stream, &command, lock);
  if (id == 0) return context->queue().error();
  event->capture.session.store(0);
  event->mark.store(PackMark(stream->slot, id));
  return CUDA_SUCCESS;
}

/// Whether the state of the event may be asked for.
CUresult MayAsk(Context* context, CUevent event) {
  const CUresult result = context->driver()->graphs->captures.QueryEvent(event->capture);
  return result == CUDA_SUCCESS ? UnsafeInCapture() : result;
}

}  // namespace

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  constexpr unsigned kKnown =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (event == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  EventBoard::Name shared;
  if ((flags & CU_EVENT_INTERPROCESS) != 0) {
    if ((flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
    EventBoard* board = context->driver()->Events();
    const auto name = board == nullptr ? std::nullopt : board->New();
    if (!name) return CUDA_ERROR_OUT_OF_MEMORY;
    shared = *name;
  }
  const std::lock_guard lock(context->mutex);
  const CUresult made = context->NewEvent(event, flags);
  if (made == CUDA_SUCCESS) (*event)->shared = shared;
  return made;
}

CUresult cuEventDestroy_v2(CUevent event) {
  Context* context = nullptr;
  const CUresult result = Check(event, &context);
  if (result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_INVALID_HANDLE ||
      result == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    return result;
  }
  // The one who made it takes it from the others too.
  if (event->is_shared() && (event->flags & CU_EVENT_INTERPROCESS) != 0) {
    context->driver()->Events()->Delete(event->shared);
  }
  const std::lock_guard lock(context->mutex);
  context->DeleteEvent(event);
  return result;
}

CUresult cuEventRecord(CUevent event, CUstream stream) { return Record(event, stream, 0, false); }
CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
  return Record(event, stream, 0, true);
}
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return Record(event, stream, flags, false);
}
CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags) {
  return Record(event, stream, flags, true);
}

CUresult cuEventQuery(CUevent event) {
  Context* context = nullptr;
  CUresult result = Check(event, &context);
  if (result == CUDA_SUCCESS) result = MayAsk(context, event);
  if (result != CUDA_SUCCESS) return result;
  AskDevice(*context->driver());
  const bool reached =
      event->is_shared() ? SharedReached(context, event) : Reached(context, event->mark.load());
  return reached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event) {
  Context* context = nullptr;
  CUresult result = Check(event, &context);
  if (result == CUDA_SUCCESS) result = MayAsk(context, event);
  if (result != CUDA_SUCCESS) return result;
  const uint64_t mark = event->mark.load();
  if (event->is_shared()) {
    result = WaitForShared(context, event);
  } else if (mark == 0) {
    return CUDA_SUCCESS;
  } else {
    result = context->WaitFor({mark});
  }
  const std::lock_guard lock(context->mutex);
  if (result == CUDA_SUCCESS) context->TrimPools();
  return result;
}

CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  Context* context = nullptr;
  Context* other = nullptr;
  CUresult result = Check(start, &context);
  if (result == CUDA_SUCCESS) result = Check(end, &other);
  if (result != CUDA_SUCCESS) return result;
  if (ms == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Each GPU has a clock of its own.
  if (context->device() != other->device()) return CUDA_ERROR_INVALID_HANDLE;
  if (start->capture.session.load() != 0 || end->capture.session.load() != 0) {
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  const uint64_t from = start->mark.load();
  const uint64_t to = end->mark.load();
  if (from == 0 || to == 0 || start->slot >= kEventSlots || end->slot >= kEventSlots) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  AskDevice(*context->driver());
  if (!Reached(context, from) || !Reached(other, to)) return CUDA_ERROR_NOT_READY;
  const uint64_t a = context->queue().channel()->event_ns[start->slot].load();
  const uint64_t b = other->queue().channel()->event_ns[end->slot].load();
  *ms = static_cast<float>(static_cast<double>(static_cast<int64_t>(b - a)) / 1e6);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float* ms, CUevent start, CUevent end) {
  return cuEventElapsedTime(ms, start, end);
}

namespace {

/// What a CUipcEventHandle holds.
struct SharedEvent {
  uint64_t magic;
  unsigned char gpu[16];
  uint64_t index;
  uint64_t generation;
};
constexpr uint64_t kSharedEventMagic = 0x54564553494d4743u;
static_assert(sizeof(SharedEvent) <= sizeof(CUipcEventHandle));

}  // namespace

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  Context* context = nullptr;
  const CUresult result = Check(event, &context);
  if (result != CUDA_SUCCESS) return result;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((event->flags & CU_EVENT_INTERPROCESS) == 0) return CUDA_ERROR_INVALID_HANDLE;
  SharedEvent contents{kSharedEventMagic, {}, event->shared.index, event->shared.generation};
  memcpy(contents.gpu, context->driver()->gpus.front()->page()->uuid, sizeof contents.gpu);
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &contents, sizeof contents);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SharedEvent contents{};
  memcpy(&contents, &handle, sizeof contents);
  const EventBoard* board = context->driver()->Events();
  if (board == nullptr) return CUDA_ERROR_MAP_FAILED;
  const EventBoard::Name name{static_cast<uint32_t>(contents.index), contents.generation};
  if (contents.magic != kSharedEventMagic || contents.index >= EventBoard::kEvents ||
      memcmp(contents.gpu, context->driver()->gpus.front()->page()->uuid, sizeof contents.gpu) !=
          0 ||
      !board->Exists(name)) {
    return CUDA_ERROR_MAP_FAILED;
  }
  const std::lock_guard lock(context->mutex);
  const CUresult made = context->NewEvent(event, CU_EVENT_DISABLE_TIMING);
  if (made == CUDA_SUCCESS) (*event)->shared = name;
  return made;
}
