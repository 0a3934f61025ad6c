// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cstdlib>

#include "tests/hooks/churn_worker.h"

// A context of the worker's own beside the one that all threads share: made, used side by side with
// it, and destroyed with what belongs to it, again and again. What comes from a memory pool belongs
// to no context and goes from one to the other, behind events or a synchronisation.

namespace sluice::hooks {
namespace {

class Inside {
 public:
  explicit Inside(CUcontext context) { EXPECT_CU(cuCtxPushCurrent_v2(context)); }
  ~Inside() {
    CUcontext popped = nullptr;
    EXPECT_CU(cuCtxPopCurrent_v2(&popped));
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

}  // namespace

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

void Worker::AllocInSecond() {
  const Inside inside(second_.context);
  BlockOf block{0, 1 + Pick(20'000), nullptr};
  block.live = Granules(block.bytes);
  CUresult result = CUDA_SUCCESS;
  if (Pick(4) == 0) {
    result = cuMemAlloc_v2(&block.at, block.bytes);
  } else {
    block.stream = second_.streams[Pick(2)];
    result = cuMemAllocAsync(&block.at, block.bytes, block.stream);
  }
  if (!Served(result)) return;
  second_.blocks.push_back(block);
  tally_.live += block.live;
}

void Worker::UseSecond() {
  if (second_.blocks.empty()) return;
  const Inside inside(second_.context);
  const BlockOf& block = second_.blocks[Pick(second_.blocks.size())];
  CUdeviceptr at = block.at;
  uint32_t value = 5;
  uint64_t count = std::min<uint64_t>(block.bytes / 4, 64);
  void* params[] = {&at, &value, &count};
  EXPECT_CU(cuLaunchKernel(second_.fill, 1, 1, 1, 1, 1, 1, 0, block.stream, params, nullptr));
  ++calls_;
}

void Worker::FreeInSecond() {
  if (second_.blocks.empty()) return;
  const BlockOf block = TakeAt(&second_.blocks, Pick(second_.blocks.size()));
  tally_.live -= block.live;
  ++calls_;
  // An address says itself whose it is, so that any context may be current.
  if (block.stream == nullptr && Pick(2) == 0) {
    EXPECT_CU(cuMemFree_v2(block.at));
    return;
  }
  const Inside inside(second_.context);
  EXPECT_CU(block.stream == nullptr ? cuMemFree_v2(block.at)
                                    : cuMemFreeAsync(block.at, block.stream));
}

/// The stream that takes it over is behind the one that had it.
void Worker::MoveBlock() {
  const bool there = Pick(2) == 0;
  std::vector<BlockOf>& from = there ? blocks_ : second_.blocks;
  if (from.empty()) return;
  const size_t which = Pick(from.size());
  if (from[which].stream == nullptr || from[which].live == 0) return;  // not of the pool
  BlockOf block = TakeAt(&from, which);
  const CUevent event = there ? event_ : second_.event;
  {
    const Inside inside(there ? shared_.context : second_.context);
    EXPECT_CU(cuEventRecord(event, block.stream));
  }
  block.stream = (there ? second_.streams : streams_)[Pick(2)];
  {
    const Inside inside(there ? second_.context : shared_.context);
    EXPECT_CU(cuStreamWaitEvent(block.stream, event, 0));
  }
  (there ? second_.blocks : blocks_).push_back(block);
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

}  // namespace sluice::hooks
