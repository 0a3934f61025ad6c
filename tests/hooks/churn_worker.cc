// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/churn_worker.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace sluice::hooks {
namespace {

constexpr auto kAWhile = std::chrono::microseconds(300);  // on the GPU's side

}  // namespace

Worker::Worker(const Shared& shared, uint64_t seed) : shared_(shared), random_(seed) {
  EnterShared(shared.context, shared.fill);
  EXPECT_CU(cuMemAddressReserve(&range_, kRangeSlots * kPhysical, 0, 0, 0));
  EXPECT_CU(cuMemAddressReserve(&leased_range_, kLeasedSlots * kLeasedSlot, 0, 0, 0));
}

void Worker::Run(uint64_t calls) {
  EXPECT_CU(cuCtxSetCurrent(shared_.context));
  const uint64_t until = calls_ + calls;
  while (calls_ < until && !::testing::Test::HasFailure()) Step();
}

void Worker::Clear() {
  EXPECT_CU(cuCtxSetCurrent(shared_.context));
  if (second_.context != nullptr) CloseContext();
  if (green_.context != nullptr) CloseGreen();
  while (!graphs_.empty()) DestroyGraph();
  while (!blocks_.empty()) FreeBlock();
  while (!arrays_.empty()) DestroyArray();
  while (!physical_.empty()) ReleasePhysical();
  ClearLeased();
  while (!managed_.empty()) FreeManaged();
  while (!pinned_.empty()) FreePinned();
  while (!registered_.empty()) UnregisterHost();
}

bool Worker::Served(CUresult result) {
  ++calls_;
  if (result == CUDA_SUCCESS) return true;
  EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
  ++refused_;
  return false;
}

void Worker::Step() {
  struct Choice {
    size_t weight;
    void (Worker::*call)();
    bool possible;
  };
  const bool second = second_.context != nullptr;
  const bool green = green_.context != nullptr;
  const Choice choices[] = {
      {280, &Worker::AllocBlock, true},
      {280, &Worker::FreeBlock, !blocks_.empty()},
      {270, &Worker::Use, !blocks_.empty()},
      {5, &Worker::Synchronize, true},
      {8, &Worker::PassOn, true},
      {20, &Worker::CreateArray, true},
      {20, &Worker::DestroyArray, !arrays_.empty()},
      {10, &Worker::CreatePhysical, true},
      {14, &Worker::ReleasePhysical, !physical_.empty()},
      {8, &Worker::ExportPhysical, !physical_.empty()},
      {8, &Worker::ImportPhysical, true},
      {4, &Worker::ShareBlock, !blocks_.empty()},
      {24, &Worker::CreateLeased, shared_.leases},
      {36, &Worker::MapLeased, !leased_.empty()},
      {60, &Worker::UseLeased, !leased_.empty()},
      {30, &Worker::UnmapLeased, !leased_.empty()},
      {24, &Worker::ReleaseLeased, !leased_.empty()},
      {10, &Worker::RetainLeased, !leased_.empty()},
      {4, &Worker::ExportLeased, !leased_.empty()},
      {10, &Worker::AllocManaged, true},
      {10, &Worker::FreeManaged, !managed_.empty()},
      {10, &Worker::AllocPinned, true},
      {10, &Worker::FreePinned, !pinned_.empty()},
      {5, &Worker::RegisterHost, true},
      {5, &Worker::UnregisterHost, !registered_.empty()},
      {6, &Worker::CaptureGraph, true},
      {6, &Worker::BuildGraph, true},
      {20, &Worker::LaunchGraph, !graphs_.empty()},
      {12, &Worker::DestroyGraph, !graphs_.empty()},
      {8, &Worker::OpenContext, shared_.contexts && !second},
      {60, &Worker::AllocInSecond, second},
      {60, &Worker::UseSecond, second},
      {50, &Worker::FreeInSecond, second},
      {30, &Worker::MoveWithSecond, second},
      {16, &Worker::KeepInSecond, second},
      {3, &Worker::SynchronizeSecond, second},
      {8, &Worker::CloseContext, second},
      {4, &Worker::RetainPrimary, shared_.contexts},
      {8, &Worker::OpenGreen, shared_.contexts && !green},
      {60, &Worker::AllocInGreen, green},
      {60, &Worker::UseGreen, green},
      {50, &Worker::FreeInGreen, green},
      {30, &Worker::MoveWithGreen, green},
      {8, &Worker::CloseGreen, green},
  };
  size_t sum = 0;
  for (const Choice& choice : choices) sum += choice.possible ? choice.weight : 0;
  size_t at = Pick(sum);
  for (const Choice& choice : choices) {
    if (!choice.possible) continue;
    if (at < choice.weight) return (this->*choice.call)();
    at -= choice.weight;
  }
}

/// With a value that nobody else has written, so that two who were given the same bytes show.
void Worker::Write(BlockOf* block, CUfunction fill) {
  CUdeviceptr at = block->at;
  uint32_t value = static_cast<uint32_t>(random_()) | 1;
  uint64_t count = std::min<uint64_t>(block->bytes / 4, 64);
  void* params[] = {&at, &value, &count};
  EXPECT_CU(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, block->stream, params, nullptr));
  ++calls_;
  if (count > 0) block->written = value;
}

/// Its stream is done, and its context current.
void Worker::Check(const BlockOf& block) {
  if (block.written == 0) return;
  uint32_t words[64] = {};
  const size_t count = std::min<size_t>(block.bytes / 4, 64);
  EXPECT_CU(cuMemcpyDtoH_v2(words, block.at, 4 * count));
  EXPECT_EQ(words[0], block.written) << "somebody else wrote here";
  EXPECT_EQ(words[count - 1], block.written) << "somebody else wrote here";
}

void Worker::CheckBlocks() {
  for (const BlockOf& block : blocks_) Check(block);
  const Place* places[] = {&second_, &green_};
  for (const Place* place : places) {
    if (place->context == nullptr || Pick(2) == 0) continue;
    const Inside inside(place->context);
    EXPECT_CU(cuCtxSynchronize());
    for (const BlockOf& block : place->blocks) Check(block);
  }
}

void Worker::AllocBlock() {
  BlockOf block{0, 1 + Pick(Pick(8) == 0 ? 600'000 : 20'000), nullptr};
  const size_t how = Pick(10);
  CUresult result = CUDA_SUCCESS;
  block.live = how == 9 ? 0 : Granules(block.bytes);
  if (how == 0) {
    result = cuMemAlloc_v2(&block.at, block.bytes);
  } else if (how == 1) {
    size_t pitch = 0;
    result = cuMemAllocPitch_v2(&block.at, &pitch, 1 + block.bytes / 16, 16, 4);
    block.live = 16 * pitch;
  } else {
    block.stream = streams_[Pick(2)];
    result = how < 8 ? cuMemAllocAsync(&block.at, block.bytes, block.stream)
                     : cuMemAllocFromPoolAsync(&block.at, block.bytes, shared_.pools[how - 8],
                                               block.stream);
  }
  if (!Served(result)) return;
  blocks_.push_back(block);
  tally_.live += block.live;
}

void Worker::FreeBlock(size_t which) {
  const BlockOf block = TakeAt(&blocks_, which);
  tally_.live -= block.live;
  if (block.stream == nullptr) {
    EXPECT_CU(cuMemFree_v2(block.at));
    ++calls_;
    return;
  }
  CUstream on = block.stream;
  if (Pick(4) == 0) {  // on another stream, which is ordered behind the one that used it
    on = streams_[Pick(2)];
    EXPECT_CU(cuEventRecord(event_, block.stream));
    EXPECT_CU(cuStreamWaitEvent(on, event_, 0));
    calls_ += 2;
  }
  EXPECT_CU(cuMemFreeAsync(block.at, on));
  ++calls_;
}

void Worker::Use() {
  BlockOf& block = blocks_[Pick(blocks_.size())];
  if (block.written != 0 && Pick(32) == 0) {
    EXPECT_CU(cuStreamSynchronize(block.stream));
    Check(block);
    calls_ += 2;
  }
  Write(&block, shared_.fill);
}

/// What one stream frees behind work that takes a while is not another one's yet.
void Worker::PassOn() {
  const auto take_a_while = [](void*) { std::this_thread::sleep_for(kAWhile); };
  BlockOf block{0, 4 + Pick(20'000), nullptr};
  block.live = Granules(block.bytes);
  const size_t first = Pick(2);
  for (const size_t on : {first, 1 - first}) {
    block.stream = streams_[on];
    if (!Served(cuMemAllocAsync(&block.at, block.bytes, block.stream))) return;
    if (on == first) {
      EXPECT_CU(cuLaunchHostFunc(block.stream, take_a_while, nullptr));
    }
    Write(&block, shared_.fill);
    if (on == first) {
      EXPECT_CU(cuMemFreeAsync(block.at, block.stream));
    }
  }
  calls_ += 4;
  blocks_.push_back(block);
  tally_.live += block.live;
  for (const CUstream stream : streams_) EXPECT_CU(cuStreamSynchronize(stream));
  Check(block);
}

void Worker::Synchronize() {
  EXPECT_CU(cuStreamSynchronize(streams_[Pick(2)]));
  ++calls_;
}

void Worker::CreateArray() {
  CUDA_ARRAY3D_DESCRIPTOR_v2 shape{};
  shape.Width = 1 + Pick(200);
  shape.Height = Pick(200);
  shape.Depth = shape.Height > 0 ? Pick(4) : 0;
  shape.Format = Pick(2) == 0 ? CU_AD_FORMAT_FLOAT : CU_AD_FORMAT_UNSIGNED_INT8;
  shape.NumChannels = 1u << Pick(3);
  const uint64_t bytes = shape.Width * std::max<size_t>(shape.Height, 1) *
                         std::max<size_t>(shape.Depth, 1) * shape.NumChannels *
                         (shape.Format == CU_AD_FORMAT_FLOAT ? 4 : 1);
  ArrayOf array{nullptr, nullptr, bytes};
  const CUresult result = Pick(2) == 0 ? cuArray3DCreate_v2(&array.array, &shape)
                                       : cuMipmappedArrayCreate(&array.mipmapped, &shape, 1);
  if (!Served(result)) return;
  arrays_.push_back(array);
  tally_.array += bytes;
}

void Worker::DestroyArray() {
  const ArrayOf array = TakeAt(&arrays_, Pick(arrays_.size()));
  EXPECT_CU(array.array != nullptr ? cuArrayDestroy(array.array)
                                   : cuMipmappedArrayDestroy(array.mipmapped));
  ++calls_;
  tally_.array -= array.bytes;
}

void Worker::AllocPinned() {
  void* at = nullptr;
  EXPECT_CU(cuMemHostAlloc(&at, 4096, 0));
  ++calls_;
  pinned_.push_back(at);
  tally_.host_pinned += 4096;
}

void Worker::FreePinned() {
  EXPECT_CU(cuMemFreeHost(TakeAt(&pinned_, Pick(pinned_.size()))));
  ++calls_;
  tally_.host_pinned -= 4096;
}

void Worker::RegisterHost() {
  registered_.push_back(std::aligned_alloc(4096, 4096));
  EXPECT_CU(cuMemHostRegister_v2(registered_.back(), 4096, 0));
  ++calls_;
  tally_.host_registered += 4096;
}

void Worker::UnregisterHost() {
  void* at = TakeAt(&registered_, Pick(registered_.size()));
  EXPECT_CU(cuMemHostUnregister(at));
  std::free(at);
  ++calls_;
  tally_.host_registered -= 4096;
}

}  // namespace sluice::hooks
