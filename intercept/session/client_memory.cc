// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"
#include "intercept/session/client.h"
#include "intercept/streams/known_streams.h"

namespace sluice {

// Allocation and freeing. An allocation may wait for the daemon (LeaseFor); a free waits for
// nothing but the synchronisation that CUDA itself promises for cuMemFree.

CUresult Client::AllocAsync(CUdeviceptr* out, size_t bytes, CUstream stream) {
  // Nothing is no error in stream order, as it is for cuMemAlloc: what it gives is the driver's.
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return driver_->cuMemAllocAsync(out, bytes, stream);
  // Memory of the graph, charged when that is instantiated. A block of the arena would keep its
  // address in the graph after it was given to somebody else.
  if (Capturing(stream)) return driver_->cuMemAllocAsync(out, bytes, stream);
  Want want{};
  if (ServedFromArena(stream, &want)) return AllocateBlock(bytes, want, out);
  // What it gives is on the stream's GPU, whichever context is current.
  const ContextScope inside(*driver_, ElsewhereOf(stream));
  if (const CUresult result = EnsureSession(); result != CUDA_SUCCESS) return result;
  const CUmemoryPool pool = selected_pool_.load(std::memory_order_relaxed);
  if (pool != default_pool_) [[unlikely]]
    return AllocFromPool(out, bytes, pool, stream);
  return AllocFromArena(out, bytes, stream);
}

// Whether this thread has allocated on the stream already: then there is nothing to find out.
bool Client::ServedFromArena(CUstream stream, Want* want) {
  const KnownStream* known = Known(stream);
  if (known == nullptr || !known->served || !has_session() ||
      selected_pool_.load(std::memory_order_relaxed) != default_pool_) {
    return false;
  }
  want->slot = known->slot;
  want->stream = known->name;
  return true;
}

// The current context is on the session's GPU.
CUresult Client::AllocFromArena(CUdeviceptr* out, size_t bytes, CUstream stream) {
  uint32_t slot = kNoSlot;
  if (const CUresult result = SlotOf(stream, &slot); result != CUDA_SUCCESS) return result;
  KnownStream& known = PlaceOfKnown(stream);
  if (Known(stream) == &known && known.name.context == CurrentContext()) known.served = true;
  Want want{};
  want.slot = slot;
  want.stream = known.name;
  return AllocateBlock(bytes, want, out);
}

CUresult Client::Alloc(CUdeviceptr* out, size_t bytes) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = EnsureSession(); result != CUDA_SUCCESS) return result;
  Want want{};
  want.sync = true;
  want.context = KeyOf(HomeOf(CurrentContext()));
  return AllocateBlock(bytes, want, out);
}

CUresult Client::AllocPitch(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                            unsigned element_bytes) {
  const bool known_element = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
  if (out == nullptr || pitch == nullptr || width == 0 || height == 0 || !known_element) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const size_t row = (width + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  size_t bytes = 0;
  if (row < width || __builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Alloc(out, bytes);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

CUresult Client::AllocManaged(CUdeviceptr* out, size_t bytes, unsigned flags) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AllocOutside(protocol::Family::kManaged, Thing::kPointer, out, bytes,
                      [=, this] { return driver_->cuMemAllocManaged(out, bytes, flags); });
}

bool Client::TryAllocate(const Want& want, CUdeviceptr* out, bool* mark_due) {
  const LockGuard guard(state_lock_);
  const uint32_t slot = streams_.Still(want.slot, want.stream);
  const bool in_step = matcher_.following() && matcher_.synchronised();
  if (in_step) {
    uint32_t& largest = gate_->largest[matcher_.gate()];
    if (want.granules > largest) largest = want.granules;
  }
  // Also while nobody wants memory: whoever comes finds a base that is packed.
  const bool lasts = gate_->lifetimes.Expected(want.granules);
  const protocol::MarkPage& marks = session_.marks();
  arena_.TakeTightest(LendsInStep());
  const uint32_t id = want.whole_unit ? arena_.AllocateUnit(marks)
                      : lasts         ? arena_.AllocateLasting(want.granules, slot, marks)
                                      : arena_.Allocate(want.granules, slot, marks);
  if (id == kNoBlock) return false;
  Enter(want, id, slot, out, mark_due);
  return true;
}

// Who comes to no more troughs, or gives nothing back at them any more, keeps what it holds.
// state_lock_ is held.
bool Client::LendsInStep() const {
  return gate_->gave_back && matcher_.following() && matcher_.synchronised() && Pressure();
}

// A block is the program's from here on. state_lock_ is held.
void Client::Enter(const Want& want, uint32_t id, uint32_t slot, CUdeviceptr* out, bool* mark_due) {
  streams_.Uses(slot);
  if (want.sync) arena_.SetSync(id, owners_.NumberOf(want.context));
  arena_.SetBirth(id, gate_->lifetimes.Born(want.granules));
  const Block& block = arena_.block(id);
  const uint64_t bytes = uint64_t{block.size} << kGranuleShift;
  *out = AddressOf(block);
  Record(protocol::OpKind::kAlloc, want.sync ? 0 : slot, 0, bytes);
  session_.client_page().live_bytes.store(arena_.live_granules() << kGranuleShift,
                                          std::memory_order_relaxed);
  if (arena_.live_granules() > used_high_granules_) used_high_granules_ = arena_.live_granules();
  if (slot < kNoSlot) {
    streams_[slot].bytes += bytes;
    *mark_due = streams_.Due(slot, 0, Pressure());
  }
}

bool Client::MoreThanPool(size_t bytes) const {
  if (bytes <= session_.pool_bytes()) return false;
  Line()
      .Text("out of memory: ")
      .Bytes(bytes)
      .Text(" in one block are more than the whole pool of ")
      .Bytes(session_.pool_bytes())
      .PrintOnce();
  return true;
}

CUresult Client::AllocateBlock(size_t bytes, Want& want, CUdeviceptr* out) {
  if (MoreThanPool(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  want.granules = static_cast<uint32_t>((bytes + kGranuleBytes - 1) >> kGranuleShift);
  bool mark_due = false;
  if (!TryAllocate(want, out, &mark_due)) {
    const uint32_t units = (want.granules + arena_.unit_granules() - 1) / arena_.unit_granules();
    const CUresult result = LeaseFor(want, units, out);
    SettleDriverMemory();  // it may have waited for the GPU
    return result;
  }
  if (mark_due) static_cast<void>(Mark(want.slot, false));
  return CUDA_SUCCESS;
}

// `units`: to ask for. In one run, unless it is whole units that are wanted. Where runs are
// stitched, one is asked for that is there; else for what is missing beside the job's own units,
// and so at once where the job has what its group was seen to need: it lacks no memory, but a run.
CUresult Client::LeaseFor(const Want& want, uint32_t units, CUdeviceptr* out) {
  const LockGuard guard(request_lock_);
  const bool stitches = session_.windows() > 0 && units > 1 && !want.whole_unit;
  bool at_once = false;
  if (stitches) {
    const LockGuard inner(state_lock_);
    at_once = LendsInStep() && arena_.held_units() >= matcher_.need_units();
  }
  bool in_pieces = at_once;
  bool drained = false;
  bool mark_due = false;
  // What is granted here may be taken by another thread before we look; a few rounds settle that.
  for (int round = 0; round < 16; ++round) {
    if (TryAllocate(want, out, &mark_due)) {
      if (mark_due) static_cast<void>(Mark(want.slot, false));
      return CUDA_SUCCESS;
    }
    const State state = state_.load(std::memory_order_acquire);
    if (state != State::kReady && !Resume()) {
      return AllocateWithoutDaemon(want, stitches, out);
    }
    protocol::Lease lease{};
    lease.header = MakeHeader(protocol::FrameType::kLease, sizeof lease, 0);
    lease.units = units;
    lease.contiguous = want.whole_unit ? 1 : units;
    if (stitches && !in_pieces) lease.header.flags |= protocol::kIfThere;
    if (in_pieces) {
      lease.units = Missing(want);
      lease.contiguous = 1;
      if (lease.units == 0) {
        if (Stitch(want, out, &mark_due)) {
          if (mark_due) static_cast<void>(Mark(want.slot, false));
          return CUDA_SUCCESS;
        }
        if (Missing(want) > 0) continue;  // another thread was faster
        if (at_once) {                    // a run may be there all the same
          at_once = in_pieces = false;
          continue;
        }
        Line()
            .Text("out of memory: what lies apart could not be put side by side (no addresses are ")
            .Text("left for it, a stream is captured, or the driver does not map it)")
            .PrintOnce();
        return CUDA_ERROR_OUT_OF_MEMORY;
      }
    }
    Answer answer;
    send_lock_.Acquire();
    const Answer::Kind kind = Request(&lease.header, &answer, in_pieces);
    if (kind == Answer::kGranted) {
      in_pieces = stitches;  // what is still missing; a run would have been taken above
      continue;
    }
    if (kind == Answer::kLost) continue;
    if (stitches && !in_pieces && answer.code != protocol::DenyCode::kRefused) {
      in_pieces = true;
      --round;
      continue;
    }
    bool may_fit = false;
    {
      // Below the limit, if everything that is free here were given back first?
      const LockGuard inner(state_lock_);
      const uint64_t live =
          (arena_.live_granules() + arena_.unit_granules() - 1) / arena_.unit_granules();
      may_fit = (live + units) * session_.unit_bytes() <= session_.LimitBytes();
    }
    if (!drained && may_fit && answer.code != protocol::DenyCode::kRefused) {
      // Free space of ours may be scattered, or free on another stream only. Once the GPU is done
      // with it, it may do as it is, or can be given back in exchange for a run that fits.
      drained = true;
      static_cast<void>(Drain());
      if (TryAllocate(want, out, &mark_due)) return CUDA_SUCCESS;
      if (in_pieces) continue;  // more of its own may do now
      if (answer.code == protocol::DenyCode::kOverLimit) {
        while (ReleaseUnits(~0u) > 0) {
        }
        continue;
      }
    }
    Line().Text(answer.text).PrintOnce();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Line().Text("out of memory: other threads took what was granted, 16 times").PrintOnce();
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// What is free on other streams is all there is.
CUresult Client::AllocateWithoutDaemon(const Want& want, bool stitches, CUdeviceptr* out) {
  bool mark_due = false;
  static_cast<void>(Drain());
  if (TryAllocate(want, out, &mark_due)) return CUDA_SUCCESS;
  return stitches && Stitch(want, out, &mark_due) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// False: the GPU may not be done with it, because somebody captures.
bool Client::Poison(const Block& block, CUstream stream) {
  constexpr unsigned kPattern = 0x7fc0dead;
  const RelaxedCapture relaxed(*driver_);
  const size_t words = (size_t{block.size} << kGranuleShift) / sizeof(kPattern);
  if (stream != nullptr) {
    return driver_->cuMemsetD32Async(AddressOf(block), kPattern, words, stream) == CUDA_SUCCESS;
  }
  static_cast<void>(driver_->cuMemsetD32_v2(AddressOf(block), kPattern, words));
  CUresult result = CUDA_SUCCESS;
  return SynchroniseCurrent(&result) && result == CUDA_SUCCESS;
}

CUresult Client::FreeAsync(CUdeviceptr address, CUstream stream) {
  if (!has_session() || !session_.arena().Contains(address)) {
    // A graph's own memory: freed whenever it is launched, not now.
    if (Capturing(stream)) return driver_->cuMemFreeAsync(address, stream);
    const CUresult result = FreeOutside(
        Thing::kPointer, address, [=, this] { return driver_->cuMemFreeAsync(address, stream); });
    SettleDriverMemory();
    return result;
  }
  // Inside a capture only allocations of the graph itself can be freed.
  if (Capturing(stream)) return CUDA_ERROR_INVALID_VALUE;
  uint32_t slot = kNoSlot;
  if (const CUresult result = SlotOf(stream, &slot); result != CUDA_SUCCESS) return result;
  if (settings_.poison) {
    Block block{};
    {
      const LockGuard guard(state_lock_);
      const uint32_t id = FindLiveAt(address);
      if (id == kNoBlock) return CUDA_ERROR_INVALID_VALUE;
      block = arena_.block(id);
    }
    static_cast<void>(Poison(block, stream));
  }
  bool mark_due = false;
  {
    const LockGuard guard(state_lock_);
    const uint32_t id = FindLiveAt(address);
    if (id == kNoBlock) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t bytes = uint64_t{arena_.block(id).size} << kGranuleShift;
    slot = streams_.Still(slot, PlaceOfKnown(stream).name);
    Record(protocol::OpKind::kFree, slot, 0, bytes);
    gate_->lifetimes.Ended(arena_.block(id).birth);
    streams_.Uses(slot);
    uint64_t mark = 0;
    if (slot < kNoSlot) {
      StreamSlot& entry = streams_[slot];
      mark = entry.issued + 1;
      entry.bytes += bytes;
      mark_due = streams_.Due(slot, 0, Pressure());
    }
    if (pool_blocks_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      ForgetPoolBlock(address);
    // What other jobs want should lie together, whatever that costs.
    if (Pressure()) {
      arena_.FreeOnStream(id, slot, mark);
    } else {
      arena_.FreeForReuse(id, slot, mark);
    }
    session_.client_page().live_bytes.store(arena_.live_granules() << kGranuleShift,
                                            std::memory_order_relaxed);
  }
  if (mark_due) static_cast<void>(Mark(slot, false));
  return CUDA_SUCCESS;
}

CUresult Client::Free(CUdeviceptr address) {
  if (!has_session() || !session_.arena().Contains(address)) {
    const CUresult result =
        FreeOutside(Thing::kPointer, address, [=, this] { return driver_->cuMemFree_v2(address); });
    SettleDriverMemory();
    return result;
  }
  Block block{};
  uint64_t free_seq = 0;
  {
    const LockGuard guard(state_lock_);
    const uint32_t id = FindLiveAt(address);
    if (id == kNoBlock) return CUDA_ERROR_INVALID_VALUE;
    block = arena_.block(id);
    free_seq = arena_.FreeSeq();
  }
  // While anybody captures, synchronising the context would break the capture: the block waits, as
  // something freed on no known stream, for the next time that it can be synchronised.
  bool done = true;
  // Programs rely on the synchronisation that cuMemFree does for cuMemAlloc memory. If it fails,
  // the GPU may still use the block, so it stays allocated.
  const bool many = many_contexts_;
  if (block.sync) {
    CUresult result = CUDA_SUCCESS;
    done = SynchroniseCurrent(&result);
    if (result != CUDA_SUCCESS) return result;
    // The block may be another context's, or in use there.
    if (done && many) done = SynchroniseContexts(true);
  } else if (CurrentContext() == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;  // the driver's answer
  }
  if (settings_.poison && done) done = Poison(block, nullptr);
  const CUcontext context = block.sync ? CurrentContext() : nullptr;
  if (block.sync && done && many) CollectEverything(free_seq);
  if (block.sync && done) SettleDriverMemory();
  const LockGuard guard(state_lock_);
  const uint32_t id = FindLiveAt(address);
  if (id == kNoBlock) return CUDA_ERROR_INVALID_VALUE;
  ForgetPoolBlock(address);
  FreeFound(id, done);
  if (done && block.sync && !many) CollectContext(context, free_seq);
  return CUDA_SUCCESS;
}

// A block that belonged to no stream. `done`: the GPU is; else it waits for the next time that the
// whole context can be synchronised. state_lock_ is held.
void Client::FreeFound(uint32_t id, bool done) {
  Record(protocol::OpKind::kFree, 0, 0, uint64_t{arena_.block(id).size} << kGranuleShift);
  gate_->lifetimes.Ended(arena_.block(id).birth);
  if (done) {
    arena_.FreeSynced(id);
  } else {
    arena_.FreeOnStream(id, kNoSlot, 0);
  }
  session_.client_page().live_bytes.store(arena_.live_granules() << kGranuleShift,
                                          std::memory_order_relaxed);
}

// A context is gone, and what cuMemAlloc gave in it: no other context may use that any more, but
// its work may have begun before. So each block waits for the next time that all contexts can be
// synchronised. What is freed on streams belongs to no context and stays.
void Client::FreeOwned(uint64_t context) {
  constexpr uint32_t kAtOnce = 64;  // others want the lock, too
  for (uint32_t next = 0;;) {
    const LockGuard guard(state_lock_);
    const uint16_t owner = owners_.Find(context);
    if (owner == Owners::kNobody) return;
    for (uint32_t left = kAtOnce; left > 0 && next < arena_.descriptors(); --left, ++next) {
      if (arena_.Owned(next, owner)) FreeFound(next, false);
    }
    if (next < arena_.descriptors()) continue;
    owners_.Drop(owner);
    next = 0;
  }
}

}  // namespace sluice
