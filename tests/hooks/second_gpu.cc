// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <atomic>
#include <thread>
#include <vector>

#include "tests/hooks/hook_fixture.h"

// A job on a machine with two GPUs, of which Sluice manages the first. second_gpu_test runs it.

namespace sluice::hooks {
namespace {

/// Every way to get memory of the current context's GPU.
void ExpectRefused(int gpu) {
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  EXPECT_EQ(cuMemAlloc_v2(&memory, kUnit), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemAllocPitch_v2(&memory, &pitch, 64, 64, 4), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemAllocAsync(&memory, kUnit, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemAllocManaged(&memory, kUnit, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_NOT_SUPPORTED);
  CUmemAllocationProp prop = DeviceMemory();
  prop.location.id = gpu;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, kUnit, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  CUDA_ARRAY_DESCRIPTOR_v2 shape{64, 64, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  EXPECT_EQ(cuArrayCreate_v2(&array, &shape), CUDA_ERROR_NOT_SUPPORTED);
}

/// From whatever context it is asked: a pool's memory is where the pool is.
void ExpectPoolsRefused(CUmemoryPool made) {
  CUmemoryPool pool = nullptr;
  ASSERT_CU(cuDeviceGetDefaultMemPool(&pool, 1));
  for (CUmemoryPool other : {pool, made}) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&memory, kUnit, other, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  }
}

CUmemoryPool PoolOn(int gpu, CUmemAllocationHandleType handles) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = handles;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
  CUmemoryPool pool = nullptr;
  EXPECT_CU(cuMemPoolCreate(&pool, &props));
  return pool;
}

class SecondGpu : public Hook {};

// Kernels and copies pass; memory that nobody manages is refused, aloud, and changes no account.
TEST_F(SecondGpu, BesideTheFirst) {
  Begin();
  CUcontext second = nullptr;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&second, 1));
  // Charged as if it were the job's own GPU: too much rather than too little.
  ExpectSoon([this] { return Outside("context"); }, 2 * kContext);
  ASSERT_CU(cuCtxSetCurrent(second));
  const auto held = Says("held_bytes");
  ExpectRefused(1);
  // Also by its name from the first one.
  ASSERT_CU(cuCtxSetCurrent(context_));
  CUmemAllocationProp prop = DeviceMemory();
  prop.location.id = 1;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, kUnit, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Says("held_bytes"), held);
  ASSERT_CU(cuCtxSetCurrent(second));
  CUmodule module = nullptr;
  CUfunction nothing = nullptr;
  ASSERT_CU(cuModuleLoadData(&module, contract::KernelImage().c_str()));
  ASSERT_CU(cuModuleGetFunction(&nothing, module, "nothing"));
  for (int i = 0; i < 100; ++i) {
    ASSERT_CU(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  }
  ASSERT_CU(cuCtxSynchronize());
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(1));
  ExpectSoon([this] { return Outside("context"); }, kContext);
  // The job goes on where its memory is.
  ASSERT_CU(cuCtxSetCurrent(context_));
  const CUdeviceptr memory = Alloc(kUnit);
  ASSERT_CU(Fill(memory, 7, 16));
  EXPECT_EQ(Read32(memory), 7u);
  ASSERT_CU(cuMemFree_v2(memory));
}

// The session ends with each of the contexts on the first GPU, whatever goes on here meanwhile.
TEST_F(SecondGpu, WorksOnWhileSessionsEnd) {
  CUcontext second = nullptr;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&second, 1));
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(0));
  context_ = nullptr;
  std::atomic<bool> over{false};
  std::atomic<uint64_t> launches{0};
  std::thread other([&] {
    ASSERT_CU(cuCtxSetCurrent(second));
    CUmodule module = nullptr;
    CUfunction nothing = nullptr;
    CUstream stream = nullptr;
    ASSERT_CU(cuModuleLoadData(&module, contract::KernelImage().c_str()));
    ASSERT_CU(cuModuleGetFunction(&nothing, module, "nothing"));
    ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    while (!over && !HasFailure()) {
      EXPECT_CU(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
      if (++launches % 64 == 0) {
        EXPECT_CU(cuCtxSynchronize());
      }
    }
    EXPECT_CU(cuStreamDestroy_v2(stream));
  });
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    CUcontext first = nullptr;
    ASSERT_CU(cuCtxCreate_v2(&first, 0, 0));
    const CUdeviceptr memory = Alloc(kUnit);
    EXPECT_CU(cuMemsetD32_v2(memory, 7, 16));
    EXPECT_EQ(Read32(memory), 7u);
    EXPECT_CU(cuMemFree_v2(memory));
    const uint64_t before = launches;
    while (launches < before + 50 && !HasFailure()) std::this_thread::yield();
    EXPECT_CU(cuCtxDestroy_v2(first));
  }
  over = true;
  other.join();
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(1));
}

// Looking there, or asking there, costs the job none of its own memory.
TEST_F(SecondGpu, LooksThereFirst) {
  CUcontext second = nullptr;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&second, 1));
  ASSERT_CU(cuCtxSetCurrent(second));
  size_t free_bytes = 0;
  size_t total = 0;
  size_t whole = 0;
  ASSERT_CU(cuMemGetInfo_v2(&free_bytes, &total));
  ASSERT_CU(cuDeviceTotalMem_v2(&whole, 1));
  EXPECT_EQ(total, whole);
  EXPECT_GT(total, kLimit);
  ExpectRefused(1);
  ASSERT_CU(cuCtxSetCurrent(context_));
  const CUdeviceptr memory = Alloc(kUnit);
  ASSERT_CU(Fill(memory, 7, 16));
  EXPECT_EQ(Read32(memory), 7u);
  ASSERT_CU(cuMemFree_v2(memory));
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(1));
}

TEST_F(SecondGpu, HasPoolsToo) {
  // Before the session and in it, for the arena and for the driver.
  std::vector<CUmemoryPool> made;
  for (int round = 0; round < 2; ++round) {
    for (const auto handles : {CU_MEM_HANDLE_TYPE_NONE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR}) {
      made.push_back(PoolOn(1, handles));
    }
    Begin();
  }
  CUcontext second = nullptr;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&second, 1));
  for (CUcontext context : {context_, second}) {
    ASSERT_CU(cuCtxSetCurrent(context));
    for (CUmemoryPool pool : made) ExpectPoolsRefused(pool);
  }
  ASSERT_CU(cuCtxSetCurrent(context_));
  for (CUmemoryPool pool : made) EXPECT_CU(cuMemPoolDestroy(pool));
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(1));
}

// A job that begins on the second one has no session, and so no memory.
TEST_F(SecondGpu, Alone) {
  CUcontext second = nullptr;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&second, 1));
  ASSERT_CU(cuCtxSetCurrent(second));
  ExpectRefused(1);
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(1));
}

}  // namespace
}  // namespace sluice::hooks
