// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/client.h"
#include "intercept/streams/known_streams.h"

namespace sluice {
namespace {

// A drain that takes longer is given up: a stream may wait for something that only this thread can
// do.
constexpr uint64_t kDrainLimitNs = 10'000'000'000;
// The driver has long come to a synchronisation that is under way for longer; what that waits for
// may be the thread that captures.
constexpr uint64_t kSynchronisedNs = 1'000'000'000;
// The id of no stream.
constexpr unsigned long long kLegacyBesideCapture = ~0ull;  // NOLINT(google-runtime-int)

}  // namespace

// Another one may be current: what its streams are done with says nothing of this stream.
CUcontext Client::ContextOf(CUstream stream) const {
  CUcontext own = nullptr;
  if (!IsDefault(stream) && driver_->cuStreamGetCtx != nullptr &&
      driver_->cuStreamGetCtx(stream, &own) == CUDA_SUCCESS && own != nullptr) {
    return own;
  }
  return CurrentContext();
}

// Null: that is current, or the stream is the current context's.
CUcontext Client::ElsewhereOf(CUstream stream) const {
  if (IsDefault(stream)) return nullptr;
  const CUcontext own = ContextOf(stream);
  return own == CurrentContext() ? nullptr : own;
}

// kNoDevice: it cannot be made current. A stream may outlive its green context, and then belongs to
// none that can be waited for.
CUdevice Client::DeviceOf(CUcontext context) const {
  if (context == nullptr || driver_->cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) return kNoDevice;
  CUdevice device = kNoDevice;
  if (driver_->cuCtxGetDevice(&device) != CUDA_SUCCESS) device = kNoDevice;
  CUcontext popped = nullptr;
  static_cast<void>(driver_->cuCtxPopCurrent_v2(&popped));
  return device;
}

// Of a stream that this thread has not used lately.
CUresult Client::FindSlot(CUstream stream, uint32_t* slot) {
  // Drivers may tell of a stream only where a context is current.
  const ContextScope inside(*driver_, CurrentContext() == nullptr ? ElsewhereOf(stream) : nullptr);
  const bool per_thread = stream == CU_STREAM_PER_THREAD;
  unsigned long long id = 0;  // NOLINT(google-runtime-int): the driver's type
  if (stream == CU_STREAM_LEGACY && Capturing(stream)) {
    // A session begins beside a capture in a stream that this one waits for. Asking a capturing
    // stream for its id breaks the capture, and this one stands behind those. It has another name
    // when it is asked later.
    id = kLegacyBesideCapture;
  } else if (driver_->cuStreamGetId != nullptr) {
    const CUresult result = driver_->cuStreamGetId(stream, &id);
    if (result != CUDA_SUCCESS) return result;
  } else {
    // Drivers before 12.0: the handle, which a destroy retires, stands for the stream.
    id = reinterpret_cast<uintptr_t>(stream) ^ (per_thread ? ThreadNumber() << 32 : 0);
  }
  const CUcontext context = ContextOf(stream);
  const bool own = context == context_.load();
  const CUdevice device = own ? session_.device() : DeviceOf(context);
  // Not marked: what it says would go through a page that ends with the session's context, and the
  // program may end that one while this GPU works on. So it is waited for with its context.
  const bool elsewhere = device != session_.device() && device != kNoDevice;
  const LockGuard guard(state_lock_);
  *slot = elsewhere ? uint32_t{kNoSlot} : streams_.Find({id, context});
  if (*slot == kNoSlot && !own && device != kNoDevice) KeepContext(context, false);
  if (*slot == kNoSlot && !elsewhere) {
    const uint32_t pinned =
        matcher_.following() ? matcher_.profile()->pacing_slot : uint32_t{kNoSlot};
    *slot = streams_.Acquire(
        id, stream, context, per_thread ? ThreadNumber() : 0, pinned, session_.marks(),
        [this](uint32_t i) { return arena_.HasUnsynced(i) || arena_.MovesFor(i); });
    // A slot may have changed hands: what other threads remember is void.
    if (*slot != kNoSlot) stream_generation_.fetch_add(1, std::memory_order_release);
  }
  if (*slot != kNoSlot || elsewhere) {
    PlaceOfKnown(stream) = {.owner = this,
                            .generation = stream_generation_.load(std::memory_order_relaxed),
                            .handle = stream,
                            .name = {id, context},
                            .slot = *slot,
                            .served = false};
  }
  return CUDA_SUCCESS;
}

// Queues the slot's next mark behind what is on the stream. Frees that were covered by it before
// this call are behind it in the stream's order, too, because they were made before. False when the
// stream cannot be marked from here, or (not required) when another thread is just doing it.
bool Client::Mark(uint32_t slot, bool required) {
  if (slot >= kNoSlot) return false;
  Lock& lock = mark_locks_[slot];
  if (required) {
    lock.Acquire();
  } else if (!lock.TryAcquire()) {
    return false;
  }
  CUstream handle = nullptr;
  CUcontext context = nullptr;
  uint64_t value = 0;
  const auto issue = [&] {
    value = streams_.Issue(slot);
    if (matcher_.following() && matcher_.profile()->pacing_slot == slot) credit_.OnMark(value);
  };
  bool possible = false;
  {
    const LockGuard guard(state_lock_);
    const StreamSlot& entry = streams_[slot];
    // Without the session's context, the page of marks is no driver's any more.
    possible = entry.active && (entry.thread == 0 || entry.thread == ThreadNumber()) &&
               !context_gone_ && !marks_held_.load(std::memory_order_relaxed);
    handle = entry.handle;
    context = entry.context;
    // The usual case has nothing to ask the driver. Else the slot has to be this stream's still
    // when it has answered. The stream is: who destroys it waits for its mark lock.
    if (possible && !IsDefault(handle) && captures_.load() == 0) {
      issue();
    } else if (possible) {
      streams_.Keep(slot);
    }
  }
  if (possible && value == 0) {
    possible = (!IsDefault(handle) || CurrentContext() == context) && !Capturing(handle);
    const LockGuard guard(state_lock_);
    possible ? issue() : streams_.NotQueued(slot);
  }
  if (possible) {
    const RelaxedCapture relaxed(*driver_);
    possible = driver_->cuStreamWriteValue64_v2(handle, session_.MarkAddress(slot), value,
                                                CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
    const LockGuard guard(state_lock_);
    if (!possible) {
      streams_.NotQueued(slot);
    } else {
      streams_.Queued(slot, value);
      marked_ = true;
      // What the GPU has passed by now becomes synced before newer frees are merged into it: a
      // merged block waits for its newest mark, and on a stream that keeps freeing that would be
      // for ever. A stream that nobody waits for has no use for two kinds of space; but a job that
      // comes to no trough where it gives all back, fenced, has to have it in time.
      const bool trough_comes = matcher_.following() && !Unbounded();
      if (Pressure() || streams_.taking_turns() || !trough_comes) {
        arena_.CollectReached(session_.marks());
      }
    }
  }
  lock.Release();
  return possible;
}

bool Client::WaitForMarks(const uint64_t* targets, uint32_t slots) {
  const uint64_t start = NowNs();
  for (uint32_t slot = 0; slot < slots; ++slot) {
    Backoff backoff;
    while (!protocol::MarkReached(session_.marks().mark[slot].load(std::memory_order_acquire),
                                  targets[slot])) {
      backoff.Pause();
      if (NowNs() - start > kDrainLimitNs) return false;
    }
  }
  return true;
}

// Waits until the GPU has done everything that was freed or issued so far, and makes all of it
// synced. False when that cannot be known.
bool Client::Drain() {
  bool to_mark[protocol::kStreamSlots];
  uint64_t ended[protocol::kStreamSlots];  // the last mark, or 0
  bool whole_context = false;
  uint64_t free_seq = 0;
  uint32_t used = 0;
  {
    const LockGuard guard(state_lock_);
    free_seq = arena_.FreeSeq();
    used = streams_.used();
    whole_context = arena_.HasUnsynced(kNoSlot);
    for (uint32_t slot = 0; slot < used; ++slot) {
      const bool uncovered =
          arena_.HasUnsynced(slot) &&
          !protocol::MarkReached(streams_.queued()[slot], arena_.LatestMark(slot));
      to_mark[slot] = streams_[slot].active && (streams_[slot].dirty || uncovered);
      // Of a green context that was destroyed: nobody says that its marks are still written.
      const uint64_t queued = streams_.queued()[slot];
      const bool gone = !streams_[slot].active && streams_[slot].context == nullptr;
      ended[slot] =
          gone && !protocol::MarkReached(session_.marks().mark[slot].load(), queued) ? queued : 0;
      if ((uncovered && !streams_[slot].active) || ended[slot] != 0) whole_context = true;
    }
  }
  for (uint32_t slot = 0; slot < used; ++slot) {
    if (!to_mark[slot] || Mark(slot, true)) continue;
    CUstream handle = nullptr;
    {
      const LockGuard guard(state_lock_);
      handle = streams_[slot].handle;
    }
    if (Capturing(handle)) return false;
    whole_context = true;
  }
  uint64_t targets[protocol::kStreamSlots];
  {
    const LockGuard guard(state_lock_);
    for (uint32_t slot = 0; slot < used; ++slot) targets[slot] = streams_.queued()[slot];
  }
  if (whole_context) {
    if (!SynchroniseContexts(true)) return false;
    CollectEverything(free_seq);
    const LockGuard guard(state_lock_);
    for (uint32_t slot = 0; slot < used; ++slot) {
      // Unless it was written meanwhile, and the slot has another owner, whose marks are its own,
      // also one that is just being queued.
      if (ended[slot] != 0 && streams_.queued()[slot] == ended[slot] && !streams_[slot].marking) {
        session_.marks().mark[slot].store(ended[slot]);
      }
    }
  }
  if (!WaitForMarks(targets, used)) return false;
  const LockGuard guard(state_lock_);
  arena_.CollectReached(session_.marks());
  return true;
}

// The context was synchronised: what was freed on its streams up to `free_seq` is done, marked or
// not.
void Client::CollectContext(CUcontext context, uint64_t free_seq) {
  for (uint32_t slot = 0; slot < streams_.used(); ++slot) {
    if (streams_[slot].context == context) arena_.CollectThrough(slot, free_seq);
  }
  // Streams without a slot belong to the only context, if there is only one.
  if (!many_contexts_) arena_.CollectThrough(kNoSlot, free_seq);
}

// All work of the process up to `free_seq` is done.
void Client::CollectEverything(uint64_t free_seq) {
  const LockGuard guard(state_lock_);
  for (uint32_t slot = 0; slot < streams_.used(); ++slot) arena_.CollectThrough(slot, free_seq);
  arena_.CollectThrough(kNoSlot, free_seq);
}

// False: that would break captures.
bool Client::SynchroniseCurrent(CUresult* result) {
  if (!captures_.Exclude()) return false;
  *result = driver_->cuCtxSynchronize();
  captures_.Admit();
  return true;
}

bool Client::SynchroniseContext(CUcontext context) {
  CUresult result = CUDA_SUCCESS;
  if (context == CurrentContext()) return SynchroniseCurrent(&result) && result == CUDA_SUCCESS;
  if (driver_->cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) return false;
  const bool done = SynchroniseCurrent(&result);
  CUcontext none = nullptr;
  static_cast<void>(driver_->cuCtxPopCurrent_v2(&none));
  return done && result == CUDA_SUCCESS;
}

// Waits for the work of every context that is known: each may work on what the session has. `own`:
// for that of the session's too, which is there. False when that cannot be known.
bool Client::SynchroniseContexts(bool own) {
  // One that is just ending is waited for here.
  const LockGuard contexts(contexts_lock_);
  const RelaxedCapture relaxed(*driver_);
  // Between its end and the session's nobody uses its handle.
  if (own && (context_gone_.load() || !SynchroniseContext(context_.load()))) return false;
  for (uint64_t next = NextContext(0); next != 0; next = NextContext(next)) {
    if (!SynchroniseContext(reinterpret_cast<CUcontext>(next))) return false;
  }
  return true;
}

// The slot of a stream that other threads may mark, if it has one.
uint32_t Client::SlotByHandle(CUstream stream) {
  const LockGuard guard(state_lock_);
  return IsDefault(stream) ? uint32_t{kNoSlot} : streams_.OfHandle(stream);
}

// A capture is about to begin: a synchronisation that was about to come is not to break it.
void Client::AwaitSynchronised() {
  const uint64_t start = NowNs();
  Backoff backoff;
  while (captures_.excluded() && NowNs() - start < kSynchronisedNs) backoff.Pause();
}

CUresult Client::StreamDestroy(CUstream stream) {
  uint64_t id = 0;
  // The driver tells no id of one that captures.
  const uint32_t slot = has_session() ? SlotByHandle(stream) : uint32_t{kNoSlot};
  if (slot != kNoSlot) {
    bool uncovered = false;
    {
      const LockGuard guard(state_lock_);
      if (streams_[slot].handle == stream) id = streams_[slot].id;
      uncovered = arena_.HasUnsynced(slot) &&
                  !protocol::MarkReached(streams_.queued()[slot], arena_.LatestMark(slot));
    }
    if (uncovered) static_cast<void>(Mark(slot, true));
    // Once the driver may have freed the handle, nobody marks it, and nobody takes a new stream of
    // that handle for this one.
    {
      const LockGuard guard(state_lock_);
      if (streams_[slot].handle == stream) streams_.Retire(slot);  // it is still its own
      stream_generation_.fetch_add(1, std::memory_order_release);
    }
    const LockGuard marking(mark_locks_[slot]);  // one under way is waited for
  }
  const CUcontext context = captures_.load() > 0 ? ContextOf(stream) : nullptr;
  const CUresult result = driver_->cuStreamDestroy_v2(stream);
  if (captures_.load() > 0 && result == CUDA_SUCCESS) captures_.StreamGone(stream, context);
  if (slot != kNoSlot && result != CUDA_SUCCESS) {
    const LockGuard guard(state_lock_);
    streams_.Restore(slot, id);
  }
  return result;
}

CUresult Client::StreamSynchronize(CUstream stream) {
  uint32_t slot = kNoSlot;
  uint64_t free_seq = 0;
  bool collect = has_session() && !Capturing(stream) && SlotOf(stream, &slot) == CUDA_SUCCESS &&
                 slot != kNoSlot;
  if (collect) {
    const LockGuard guard(state_lock_);
    free_seq = arena_.FreeSeq();
    slot = streams_.Still(slot, PlaceOfKnown(stream).name);
    collect = slot != kNoSlot && arena_.HasUnsynced(slot);
  }
  const CUresult result = driver_->cuStreamSynchronize(stream);
  if (collect && result == CUDA_SUCCESS) {
    const LockGuard guard(state_lock_);
    arena_.CollectThrough(slot, free_seq);
  }
  SettleDriverMemory();
  return result;
}

// `which` null: the current one.
CUresult Client::ContextSynchronize(CUcontext which) {
  uint64_t free_seq = 0;
  const bool collect = has_session();
  if (collect) {
    const LockGuard guard(state_lock_);
    free_seq = arena_.FreeSeq();
  }
  const CUresult result =
      which == nullptr ? driver_->cuCtxSynchronize() : driver_->cuCtxSynchronize_v2(which);
  if (collect && result == CUDA_SUCCESS) {
    const CUcontext context = which == nullptr ? CurrentContext() : which;
    const LockGuard guard(state_lock_);
    CollectContext(context, free_seq);
  }
  SettleDriverMemory();
  return result;
}

}  // namespace sluice
