// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <memory>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

// What may be called while no context is current. Where the documentation lists no
// CUDA_ERROR_INVALID_CONTEXT, or says of what stream it is meant, that is expected; else it is
// asked.

namespace sluice::contract {
namespace {

class WithoutContext : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_CU(cuInit(0));
    CUcontext current = nullptr;
    ASSERT_CU(cuCtxGetCurrent(&current));
    ASSERT_EQ(current, nullptr);
  }
};

constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};

TEST_F(WithoutContext, PhysicalMemoryIsMadeAndMapped) {
  const size_t bytes = Granularity();
  const CUmemAllocationProp prop = DeviceMemory();
  const CUmemAccessDesc access = ReadWrite();
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle again = 0;
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemCreate(&handle, bytes, &prop, 0));
  ASSERT_CU(cuMemAddressReserve(&at, bytes, 0, 0, 0));
  EXPECT_CU(cuMemMap(at, bytes, 0, handle, 0));
  EXPECT_CU(cuMemSetAccess(at, bytes, &access, 1));
  EXPECT_CU(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(at)));
  EXPECT_CU(cuMemRelease(again));
  EXPECT_CU(cuMemUnmap(at, bytes));
  EXPECT_CU(cuMemAddressFree(at, bytes));
  EXPECT_CU(cuMemRelease(handle));
}

TEST_F(WithoutContext, APoolIsMadeAndAsked) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = kDevice;
  CUmemoryPool pool = nullptr;
  CUmemoryPool standard = nullptr;
  uint64_t value = 1;
  ASSERT_CU(cuMemPoolCreate(&pool, &props));
  EXPECT_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  EXPECT_EQ(value, 0u);
  EXPECT_CU(cuMemPoolTrimTo(pool, 0));
  EXPECT_CU(cuDeviceGetDefaultMemPool(&standard, 0));
  EXPECT_CU(cuDeviceSetMemPool(0, pool));
  EXPECT_CU(cuDeviceSetMemPool(0, standard));
  EXPECT_CU(cuMemPoolDestroy(pool));
}

/// Allocates and frees.
CUgraph WithMemory() {
  CUgraph graph = nullptr;
  CUgraphNode made = nullptr;
  CUgraphNode freed = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = kDevice;
  params.bytesize = 64 * 1024;
  EXPECT_CU(cuGraphCreate(&graph, 0));
  EXPECT_CU(cuGraphAddMemAllocNode(&made, graph, nullptr, 0, &params));
  EXPECT_CU(cuGraphAddMemFreeNode(&freed, graph, &made, 1, params.dptr));
  return graph;
}

TEST_F(WithoutContext, AGraphWithMemoryIsMade) {
  const CUgraph graph = WithMemory();
  CUgraphExec exec = nullptr;
  ASSERT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_CU(cuDeviceGraphMemTrim(0));
}

TEST_F(WithoutContext, WhatBelongsToTheCurrentOneIsRefused) {
  CUdeviceptr at = 0;
  size_t bytes = 0;
  void* host = nullptr;
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR_v2 shape{64, 64, CU_AD_FORMAT_FLOAT, 1};
  constexpr CUresult kRefused = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(cuMemAlloc_v2(&at, 4096), kRefused);
  EXPECT_EQ(cuMemAllocPitch_v2(&at, &bytes, 64, 64, 4), kRefused);
  EXPECT_EQ(cuMemAllocManaged(&at, 4096, CU_MEM_ATTACH_GLOBAL), kRefused);
  EXPECT_EQ(cuArrayCreate_v2(&array, &shape), kRefused);
  EXPECT_EQ(cuMemAllocHost_v2(&host, 4096), kRefused);
  EXPECT_EQ(cuMemHostAlloc(&host, 4096, 0), kRefused);
  EXPECT_EQ(cuMemGetInfo_v2(&bytes, &bytes), kRefused);
  EXPECT_EQ(cuCtxSynchronize(), kRefused);
  EXPECT_EQ(cuMemAllocAsync(&at, 4096, nullptr), kRefused);
  EXPECT_EQ(cuMemAllocAsync(&at, 4096, CU_STREAM_LEGACY), kRefused);
  EXPECT_EQ(cuMemAllocAsync(&at, 4096, CU_STREAM_PER_THREAD), kRefused);
  EXPECT_EQ(cuMemFreeAsync(4096, nullptr), kRefused);
}

class BesideAContext : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    nothing_ = Kernel("nothing");
    block_ = Alloc(4096);
    ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    word_ = std::make_unique<SharedWord>();
    CUcontext popped = nullptr;
    ASSERT_CU(cuCtxPopCurrent_v2(&popped));
  }
  void TearDown() override {
    ASSERT_CU(cuCtxPushCurrent_v2(context_));
    EXPECT_CU(cuStreamSynchronize(stream_));
    word_.reset();
    ContextTest::TearDown();
  }
  static void Ask(const std::string& call, CUresult result) {
    Answer("without." + call, NameOf(result));
  }
  CUfunction nothing_ = nullptr;
  CUdeviceptr block_ = 0;
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  std::unique_ptr<SharedWord> word_;
};

TEST_F(BesideAContext, AStreamHasItsOwnForWhatItOrders) {
  CUdeviceptr at = 0;
  CUmemoryPool pool = nullptr;
  ASSERT_CU(cuDeviceGetDefaultMemPool(&pool, 0));
  ASSERT_CU(cuMemAllocAsync(&at, 4096, stream_));
  EXPECT_CU(cuMemFreeAsync(at, stream_));
  ASSERT_CU(cuMemAllocFromPoolAsync(&at, 4096, pool, stream_));
  EXPECT_CU(cuMemFreeAsync(at, stream_));
}

TEST_F(BesideAContext, AStreamHasItsOwnForWordsGraphsAndCaptures) {
  CUgraphExec exec = nullptr;
  const CUgraph graph = WithMemory();
  ASSERT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_CU(cuStreamWriteValue64_v2(stream_, word_->device(), 5, 0));
  EXPECT_CU(cuGraphUpload(exec, stream_));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  CUgraph captured = nullptr;
  ASSERT_CU(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_CU(cuStreamEndCapture(stream_, &captured));
  EXPECT_TRUE(Eventually([&] { return word_->Load() == 5; }));
  ASSERT_CU(cuCtxPushCurrent_v2(context_));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuDeviceGraphMemTrim(0));
  CUcontext popped = nullptr;
  EXPECT_CU(cuCtxPopCurrent_v2(&popped));
}

// The error is in the list of each; whether it is meant of these is not said.
TEST_F(BesideAContext, WhatTheDocumentationLeavesOpen) {
  size_t bytes = 0;
  CUdeviceptr base = 0;
  uint32_t word = 0;
  Ask("cuDeviceTotalMem", cuDeviceTotalMem_v2(&bytes, 0));
  Ask("cuCtxSynchronize_v2", cuCtxSynchronize_v2(context_));
  Ask("cuEventSynchronize", cuEventSynchronize(event_));
  Ask("cuStreamSynchronize", cuStreamSynchronize(stream_));
  Ask("cuMemsetD8Async", cuMemsetD8Async(block_, 1, 4096, stream_));
  Ask("cuMemcpyDtoHAsync", cuMemcpyDtoHAsync_v2(&word, block_, 4, stream_));
  Ask("cuMemcpyDtoH", cuMemcpyDtoH_v2(&word, block_, 4));
  Ask("cuLaunchKernel", cuLaunchKernel(nothing_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr));
  Ask("cuStreamWaitEvent", cuStreamWaitEvent(stream_, event_, 0));
  Ask("cuPointerGetAttribute",
      cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, block_));
  Ask("cuMemGetAddressRange", cuMemGetAddressRange_v2(&base, &bytes, block_));
  Ask("cuMemFree", cuMemFree_v2(block_));
}

}  // namespace
}  // namespace sluice::contract
