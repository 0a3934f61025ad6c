// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdlib>

#include "tests/hooks/churn_worker.h"

// A context of the worker's own beside the one that all threads share: made, used side by side with
// it, and destroyed with what belongs to it, again and again. What comes from a memory pool belongs
// to no context and goes from one to the other, behind events or a synchronisation. And the end of
// the shared one, which the workers survive with what is not the context's.

namespace sluice::hooks {
void Worker::OpenContext() {
  CUcontext context = nullptr;
  if (!Served(cuCtxCreate_v2(&context, 0, 0))) return;
  second_ = {};
  second_.context = context;
  CUmodule module = nullptr;
  EXPECT_CU(cuModuleLoadData(&module, contract::KernelImage().c_str()));
  EXPECT_CU(cuModuleGetFunction(&second_.fill, module, "fill"));
  for (CUstream& stream : second_.streams) {
    EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }
  EXPECT_CU(cuEventCreate(&second_.event, 0));
  EXPECT_CU(cuCtxPopCurrent_v2(&context));
  calls_ += 6;
  ++tally_.contexts;
  ++contexts_made_;
}

void Worker::AllocIn(Place* place) {
  const Inside inside(place->context);
  BlockOf block{0, 1 + Pick(20'000), nullptr};
  block.live = Granules(block.bytes);
  CUresult result = CUDA_SUCCESS;
  if (Pick(4) == 0) {
    result = cuMemAlloc_v2(&block.at, block.bytes);
  } else {
    block.stream = place->streams[Pick(2)];
    result = cuMemAllocAsync(&block.at, block.bytes, block.stream);
  }
  if (!Served(result)) return;
  place->blocks.push_back(block);
  tally_.live += block.live;
}

void Worker::UseIn(Place* place) {
  if (place->blocks.empty()) return;
  const Inside inside(place->context);
  Write(&place->blocks[Pick(place->blocks.size())], place->fill);
}

void Worker::FreeIn(Place* place) {
  if (place->blocks.empty()) return;
  const BlockOf block = TakeAt(&place->blocks, Pick(place->blocks.size()));
  tally_.live -= block.live;
  ++calls_;
  // An address says itself whose it is, so that any context may be current.
  if (block.stream == nullptr && Pick(2) == 0) {
    EXPECT_CU(cuMemFree_v2(block.at));
    return;
  }
  const Inside inside(place->context);
  EXPECT_CU(block.stream == nullptr ? cuMemFree_v2(block.at)
                                    : cuMemFreeAsync(block.at, block.stream));
}

/// A block goes from the shared context to this one, or back.
void Worker::MoveWith(Place* place) {
  if (Pick(2) == 0) {
    if (place->blocks.empty()) return;
    const size_t which = Pick(place->blocks.size());
    if (place->blocks[which].stream == nullptr) return;
    return TakeOver(place, TakeAt(&place->blocks, which));
  }
  if (blocks_.empty()) return;
  const size_t which = Pick(blocks_.size());
  if (blocks_[which].stream == nullptr || blocks_[which].live == 0) return;  // not of the pool
  BlockOf block = TakeAt(&blocks_, which);
  EXPECT_CU(cuEventRecord(event_, block.stream));
  block.stream = place->streams[Pick(2)];
  const Inside inside(place->context);
  EXPECT_CU(cuStreamWaitEvent(block.stream, event_, 0));
  place->blocks.push_back(block);
  calls_ += 2;
  ++moved_;
}

/// The stream of the shared context that takes it over is behind the one that had it.
void Worker::TakeOver(Place* place, BlockOf block) {
  {
    const Inside inside(place->context);
    EXPECT_CU(cuEventRecord(place->event, block.stream));
  }
  block.stream = streams_[Pick(2)];
  EXPECT_CU(cuStreamWaitEvent(block.stream, place->event, 0));
  blocks_.push_back(block);
  calls_ += 2;
  ++moved_;
}

/// Something that belongs to the context and ends with it, or before.
void Worker::KeepInSecond() {
  const Inside inside(second_.context);
  Tally& own = second_.own;
  const Tally before = own;
  void* host = nullptr;
  switch (Pick(4)) {
    case 0: {
      const CUDA_ARRAY3D_DESCRIPTOR_v2 shape{
          1 + Pick(5'000), 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
      CUarray array = nullptr;
      if (Served(cuArray3DCreate_v2(&array, &shape))) own.array += shape.Width;
      break;
    }
    case 1: {
      CUdeviceptr at = 0;
      const size_t bytes = 1 + Pick(100'000);
      if (Served(cuMemAllocManaged(&at, bytes, CU_MEM_ATTACH_GLOBAL))) own.managed += bytes;
      break;
    }
    case 2:
      EXPECT_CU(cuMemHostAlloc(&host, 4096, 0));
      ++calls_;
      own.host_pinned += 4096;
      break;
    default:
      host = std::aligned_alloc(4096, 4096);
      EXPECT_CU(cuMemHostRegister_v2(host, 4096, 0));
      ++calls_;
      second_.registered.push_back(host);
      own.host_registered += 4096;
  }
  tally_ += own;
  tally_ -= before;
}

void Worker::SynchronizeSecond() {
  const Inside inside(second_.context);
  EXPECT_CU(cuCtxSynchronize());
  ++calls_;
}

/// What came from its streams is given up, or taken over by the other context; all else ends with
/// it, also what cuMemAlloc gave.
void Worker::CloseContext() {
  while (!second_.blocks.empty()) {
    const BlockOf last = second_.blocks.back();
    if (Pick(2) == 0) {
      FreeInSecond();
      continue;
    }
    second_.blocks.pop_back();
    if (last.stream == nullptr) {
      tally_.live -= last.live;
      ++ended_;
      continue;
    }
    SynchronizeSecond();
    blocks_.push_back(last);
    blocks_.back().stream = streams_[Pick(2)];
    ++moved_;
  }
  if (Pick(2) == 0) {
    EXPECT_CU(cuCtxPushCurrent_v2(second_.context));  // the driver pops it then
  }
  EXPECT_CU(cuCtxDestroy_v2(second_.context));
  ++calls_;
  CUcontext current = nullptr;
  EXPECT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, shared_.context);
  if (second_.has_session) ++carried_;
  for (void* host : second_.registered) std::free(host);
  tally_ -= second_.own;
  --tally_.contexts;
  second_ = {};
}

/// A second reference comes and goes: the context that all share is not to notice.
void Worker::RetainPrimary() {
  CUcontext primary = nullptr;
  EXPECT_CU(cuDevicePrimaryCtxRetain(&primary, 0));
  EXPECT_EQ(primary, shared_.context);
  EXPECT_CU(cuDevicePrimaryCtxRelease_v2(0));
  calls_ += 2;
}

void Worker::LeaveShared() {
  EXPECT_CU(cuCtxSetCurrent(shared_.context));
  if (green_.context != nullptr) CloseGreen();
  while (!graphs_.empty()) DestroyGraph();
  // Some of what would end with it is given back before.
  if (!arrays_.empty()) DestroyArray();
  if (!managed_.empty()) FreeManaged();
  if (!pinned_.empty()) FreePinned();
  if (!registered_.empty()) UnregisterHost();
  for (size_t left = blocks_.size() / 4; left > 0; --left) FreeBlock();
  for (int more = 8; more > 0 && !blocks_.empty(); --more) Use();
  for (const ArrayOf& array : arrays_) tally_.array -= array.bytes;
  for (const ManagedOf& memory : managed_) tally_.managed -= memory.bytes;
  tally_.host_pinned -= 4096 * pinned_.size();
  tally_.host_registered -= 4096 * registered_.size();
  arrays_.clear();
  managed_.clear();
  pinned_.clear();
  left_.swap(registered_);
  for (size_t i = blocks_.size(); i-- > 0;) {
    if (blocks_[i].stream == nullptr) {
      tally_.live -= TakeAt(&blocks_, i).live;
      ++ended_;
    } else if (blocks_[i].live == 0) {
      FreeBlock(i);  // of the driver's pools; the simulated one ends it with the context
    }
  }
}

void Worker::EnterShared(CUcontext context, CUfunction fill) {
  EXPECT_CU(cuCtxSetCurrent(context));
  shared_.context = context;
  shared_.fill = fill;
  for (void* host : left_) std::free(host);
  left_.clear();
  for (CUstream& stream : streams_) EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(cuEventCreate(&event_, 0));
  // The end of the context they came from has waited for all that was queued there.
  for (BlockOf& block : blocks_) block.stream = streams_[Pick(2)];
  for (LeasedOf& memory : leased_) memory.stream = streams_[Pick(2)];
}

}  // namespace sluice::hooks
