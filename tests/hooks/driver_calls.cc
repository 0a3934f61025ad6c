// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "tests/hooks/hook_fixture.h"

// Small programs that call the driver for memory of one kind each, in a context of their own or in
// none. contexts_test runs them with and without Sluice: inside the limit nothing differs, beyond
// it memory of the GPU is out (SLUICE_TEST_LIMITED) and memory of the host is not.

namespace sluice::hooks {
namespace {

class DriverCalls : public ::testing::Test {
 protected:
  using Allocate = std::function<CUresult(size_t)>;

  void SetUp() override {
    ASSERT_CU(cuInit(0));
    ASSERT_CU(cuCtxCreate_v2(&context_, 0, 0));
  }
  void TearDown() override { EXPECT_CU(cuCtxDestroy_v2(context_)); }

  static uint64_t Used() {
    size_t free_bytes = 0;
    size_t total = 0;
    EXPECT_CU(cuMemGetInfo_v2(&free_bytes, &total));
    return total - free_bytes;
  }
  /// What the program asks for beyond the limit.
  static CUresult Beyond() {
    return getenv("SLUICE_TEST_LIMITED") != nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  }
  /// What is taken is used, what is given back is not, again and again.
  void ExpectOnTheGpu(const Allocate& allocate, const std::function<CUresult()>& release) {
    const uint64_t before = Used();
    for (int round = 0; round < 8; ++round) {
      ASSERT_CU(allocate(kBlock));
      EXPECT_GE(Used(), before + kBlock);
      ASSERT_CU(release());
      EXPECT_LT(Used(), before + kBlock);
    }
    const CUresult beyond = allocate(kMoreThanLimit);
    EXPECT_EQ(beyond, Beyond());
    if (beyond == CUDA_SUCCESS) {
      EXPECT_CU(release());
    }
    // A refusal leaves nothing behind.
    ASSERT_CU(allocate(kBlock));
    EXPECT_CU(release());
  }
  /// As much and more than the limit, and none of it the GPU's.
  void ExpectOnTheHost(const Allocate& allocate, void** at, const std::function<CUresult()>& free) {
    const uint64_t before = Used();
    for (const size_t bytes : {kBlock, kMoreThanLimit}) {
      ASSERT_CU(allocate(bytes));
      memset(*at, 7, bytes);
      EXPECT_LT(Used(), before + kBlock);
      ASSERT_CU(free());
    }
  }
  void ExpectWritable(CUdeviceptr at, size_t bytes) {
    std::vector<unsigned char> back(bytes);
    EXPECT_CU(cuMemsetD8_v2(at, 0x5a, bytes));
    EXPECT_CU(cuMemcpyDtoH_v2(back.data(), at, bytes));
    EXPECT_EQ(back, std::vector<unsigned char>(bytes, 0x5a));
  }

  static constexpr size_t kBlock = 8 * kMiB;
  CUcontext context_ = nullptr;
};

TEST_F(DriverCalls, Alloc) {
  CUdeviceptr at = 0;
  ExpectOnTheGpu([&](size_t bytes) { return cuMemAlloc_v2(&at, bytes); },
                 [&] { return cuMemFree_v2(at); });
  ASSERT_CU(cuMemAlloc_v2(&at, kBlock));
  ExpectWritable(at, kBlock);
}

// Held to the end of the context, which gives it back.
TEST_F(DriverCalls, AllocAndHold) {
  for (int round = 0; round < 3; ++round) {
    CUdeviceptr held[2] = {};
    for (CUdeviceptr& at : held) {
      ASSERT_CU(cuMemAlloc_v2(&at, kBlock));
      ExpectWritable(at, kBlock);
    }
    CUdeviceptr more = 0;
    EXPECT_EQ(cuMemAlloc_v2(&more, 2 * kBlock), Beyond());
    ASSERT_CU(cuCtxDestroy_v2(context_));
    ASSERT_CU(cuCtxCreate_v2(&context_, 0, 0));
  }
}

TEST_F(DriverCalls, AllocPitch) {
  CUdeviceptr at = 0;
  size_t pitch = 0;
  ExpectOnTheGpu(
      [&](size_t bytes) { return cuMemAllocPitch_v2(&at, &pitch, 4096, bytes / 4096, 4); },
      [&] { return cuMemFree_v2(at); });
  EXPECT_GE(pitch, 4096u);
  // A row that is no whole one, and a size that has no number.
  ASSERT_CU(cuMemAllocPitch_v2(&at, &pitch, 1000, 100, 4));
  EXPECT_GE(pitch, 1000u);
  ExpectWritable(at, 99 * pitch + 1000);
  EXPECT_EQ(cuMemAllocPitch_v2(&at, &pitch, pitch, (SIZE_MAX / pitch) + 2, 4),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverCalls, AllocManaged) {
  CUdeviceptr at = 0;
  const Allocate allocate = [&](size_t bytes) {
    return cuMemAllocManaged(&at, bytes, CU_MEM_ATTACH_GLOBAL);
  };
  ExpectOnTheGpu(allocate, [&] { return cuMemFree_v2(at); });
  ASSERT_CU(allocate(kBlock));
  ExpectWritable(at, kBlock);
  EXPECT_EQ(*reinterpret_cast<unsigned char*>(at), 0x5a) << "the host sees it";
}

TEST_F(DriverCalls, Arrays) {
  CUarray array = nullptr;
  CUmipmappedArray mipmapped = nullptr;
  const auto destroy = [&] { return cuArrayDestroy(array); };
  ExpectOnTheGpu(
      [&](size_t bytes) {
        const CUDA_ARRAY_DESCRIPTOR_v2 plane{1024, bytes / 4096, CU_AD_FORMAT_FLOAT, 1};
        return cuArrayCreate_v2(&array, &plane);
      },
      destroy);
  ExpectOnTheGpu(
      [&](size_t bytes) {
        const CUDA_ARRAY3D_DESCRIPTOR_v2 flat{1024, bytes / 8192, 0, CU_AD_FORMAT_UNSIGNED_INT32, 2,
                                              0};
        return cuArray3DCreate_v2(&array, &flat);
      },
      destroy);
  ExpectOnTheGpu(
      [&](size_t bytes) {
        const CUDA_ARRAY3D_DESCRIPTOR_v2 box{1024, 64, bytes / (4096 * 64), CU_AD_FORMAT_FLOAT,
                                             1,    0};
        return cuArray3DCreate_v2(&array, &box);
      },
      destroy);
  ExpectOnTheGpu(
      [&](size_t bytes) {
        const CUDA_ARRAY3D_DESCRIPTOR_v2 plane{1024, bytes / 4096, 0, CU_AD_FORMAT_FLOAT, 1, 0};
        return cuMipmappedArrayCreate(&mipmapped, &plane, 3);
      },
      [&] { return cuMipmappedArrayDestroy(mipmapped); });
}

TEST_F(DriverCalls, AllocHost) {
  void* at = nullptr;
  ExpectOnTheHost([&](size_t bytes) { return cuMemAllocHost_v2(&at, bytes); }, &at,
                  [&] { return cuMemFreeHost(at); });
}

TEST_F(DriverCalls, HostAlloc) {
  void* at = nullptr;
  for (const unsigned flags : {0u, 1u * CU_MEMHOSTALLOC_PORTABLE, 1u * CU_MEMHOSTALLOC_DEVICEMAP}) {
    ExpectOnTheHost([&](size_t bytes) { return cuMemHostAlloc(&at, bytes, flags); }, &at,
                    [&] { return cuMemFreeHost(at); });
  }
}

CUmemAllocationProp OfThisProcess() {
  CUmemAllocationProp prop = DeviceMemory();
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  return prop;
}

/// Physical memory, as a program takes it that maps it.
void TakeAndMap(const CUmemAllocationProp& prop, size_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  const CUmemAccessDesc access = contract::ReadWrite();
  ASSERT_CU(cuMemCreate(&handle, bytes, &prop, 0));
  ASSERT_CU(cuMemAddressReserve(&at, bytes, 0, 0, 0));
  ASSERT_CU(cuMemMap(at, bytes, 0, handle, 0));
  ASSERT_CU(cuMemSetAccess(at, bytes, &access, 1));
  ASSERT_CU(cuMemUnmap(at, bytes));
  ASSERT_CU(cuMemAddressFree(at, bytes));
  ASSERT_CU(cuMemRelease(handle));
}

// The threads have no current context, and the program has one of its own.
TEST_F(DriverCalls, MemCreateInThreads) {
  for (const CUmemAllocationProp& prop : {OfThisProcess(), DeviceMemory()}) {
    std::vector<std::thread> threads;
    std::atomic<int> done{0};
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        TakeAndMap(prop, 4 * kMiB);
        ++done;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(done, 4);
    CUmemGenericAllocationHandle handle = 0;
    CUresult beyond = CUDA_ERROR_UNKNOWN;
    std::thread([&] { beyond = cuMemCreate(&handle, kMoreThanLimit, &prop, 0); }).join();
    EXPECT_EQ(beyond, Beyond());
    if (beyond == CUDA_SUCCESS) {
      EXPECT_CU(cuMemRelease(handle));
    }
  }
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAlloc_v2(&at, kBlock));
  ExpectWritable(at, kBlock);
}

/// A process that never makes a context, and one that makes it afterwards.
class WithoutOne : public DriverCalls {
 protected:
  void SetUp() override { ASSERT_CU(cuInit(0)); }
  void TearDown() override {}
  void UseInContextsThatEnd(const CUmemAllocationProp& prop);
};

TEST_F(WithoutOne, MemCreate) {
  for (const CUmemAllocationProp& prop : {OfThisProcess(), DeviceMemory()}) {
    TakeAndMap(prop, kBlock);
    // All of the limit, and once more than that.
    CUmemGenericAllocationHandle handles[3] = {};
    for (CUmemGenericAllocationHandle& handle : handles) {
      ASSERT_CU(cuMemCreate(&handle, kBlock, &prop, 0));
    }
    CUmemGenericAllocationHandle more = 0;
    const CUresult beyond = cuMemCreate(&more, kBlock, &prop, 0);
    EXPECT_EQ(beyond, Beyond());
    if (beyond == CUDA_SUCCESS) {
      EXPECT_CU(cuMemRelease(more));
    }
    ASSERT_CU(cuMemRelease(handles[2]));
    ASSERT_CU(cuMemCreate(&handles[2], kBlock, &prop, 0));
    for (const CUmemGenericAllocationHandle handle : handles) EXPECT_CU(cuMemRelease(handle));
  }
}

// Contexts come and go, the primary one too, whoever made it; the memory is none of theirs.
void WithoutOne::UseInContextsThatEnd(const CUmemAllocationProp& prop) {
  const CUmemAccessDesc access = contract::ReadWrite();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr mapped = 0;
  ASSERT_CU(cuMemCreate(&handle, kBlock, &prop, 0));
  ASSERT_CU(cuMemAddressReserve(&mapped, kBlock, 0, 0, 0));
  ASSERT_CU(cuMemMap(mapped, kBlock, 0, handle, 0));
  ASSERT_CU(cuMemSetAccess(mapped, kBlock, &access, 1));
  for (int round = 0; round < 3; ++round) {
    CUcontext primary = nullptr;
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    ASSERT_CU(cuDevicePrimaryCtxRetain(&primary, 0));
    ASSERT_CU(cuCtxPushCurrent_v2(primary));
    if (round > 0) {
      uint32_t word = 0;
      EXPECT_CU(cuMemcpyDtoH_v2(&word, mapped, sizeof word));
      EXPECT_EQ(word, 0x5a5a5a5au) << "of the round before";
    }
    ExpectWritable(mapped, kBlock);
    // What is the context's ends with it.
    CUdeviceptr theirs = 0;
    ASSERT_CU(cuMemAlloc_v2(&theirs, kBlock));
    ExpectWritable(theirs, kBlock);
    ASSERT_CU(cuCtxPopCurrent_v2(&primary));
    if (round == 1) {
      ASSERT_CU(cuDevicePrimaryCtxReset_v2(0));
    } else {
      ASSERT_CU(cuDevicePrimaryCtxRelease_v2(0));
    }
    TakeAndMap(prop, kBlock);
  }
  ASSERT_CU(cuMemUnmap(mapped, kBlock));
  ASSERT_CU(cuMemAddressFree(mapped, kBlock));
  ASSERT_CU(cuMemRelease(handle));
}

TEST_F(WithoutOne, MemCreateAndContextsAfterwards) { UseInContextsThatEnd(DeviceMemory()); }

TEST_F(WithoutOne, MemCreateForItselfAndContextsAfterwards) {
  UseInContextsThatEnd(OfThisProcess());
}

// What a stream orders is on the stream's GPU, in the stream's context.
TEST_F(DriverCalls, AllocAsyncWithoutACurrentContext) {
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::thread([&] {
    CUdeviceptr at = 0;
    for (int round = 0; round < 8; ++round) {
      ASSERT_CU(cuMemAllocAsync(&at, kBlock, stream));
      ASSERT_CU(cuMemFreeAsync(at, stream));
    }
    const CUresult beyond = cuMemAllocAsync(&at, kMoreThanLimit, stream);
    EXPECT_EQ(beyond, Beyond());
    if (beyond == CUDA_SUCCESS) {
      EXPECT_CU(cuMemFreeAsync(at, stream));
    }
    EXPECT_EQ(cuMemAllocAsync(&at, kBlock, nullptr), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  ASSERT_CU(cuStreamSynchronize(stream));
  ASSERT_CU(cuStreamDestroy_v2(stream));
}

}  // namespace
}  // namespace sluice::hooks
