// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>

#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;

class Managed : public ContextTest {
 protected:
  uint32_t* AllocManaged(size_t bytes) {
    CUdeviceptr pointer = 0;
    EXPECT_CU(cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL));
    return reinterpret_cast<uint32_t*>(pointer);  // NOLINT(performance-no-int-to-ptr)
  }
};
CUdeviceptr Device(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

TEST_F(Managed, HostAndGpuSeeTheSameMemory) {
  uint32_t* words = AllocManaged(4096);
  words[0] = 5;
  EXPECT_EQ(Read32(Device(words)), 5u);
  ASSERT_CU(Fill(Device(words), 77, 8));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(words[7], 77u);
  EXPECT_EQ(words[8], 0u);
  const CUdeviceptr linear = Alloc(64);
  ASSERT_CU(cuMemcpyDtoD_v2(linear, Device(words), 32));
  EXPECT_EQ(Read32(linear + 28), 77u);
  ASSERT_CU(cuMemsetD32_v2(Device(words), 3, 2));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(words[1], 3u);
  ASSERT_CU(cuMemFree_v2(linear));
  ASSERT_CU(cuMemFree_v2(Device(words)));
}

TEST_F(Managed, TakesMemoryOfTheGpu) {
  OnlySimulated("it fills a GPU whose size it knows");
  const size_t before = FreeBytes();
  uint32_t* words = AllocManaged(2 * kMiB - 100);
  EXPECT_EQ(FreeBytes(), before - 2 * kMiB);
  EXPECT_EQ(CountedBytes("managed"), (Counted{2 * kMiB - 100, 2 * kMiB}));
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAllocManaged(&more, 80 * kMiB, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocManaged(&more, SIZE_MAX, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CountedBytes("managed"), (Counted{2 * kMiB - 100, 2 * kMiB}));
  ASSERT_CU(cuMemFree_v2(Device(words)));
  EXPECT_EQ(cuMemFree_v2(Device(words)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_EQ(CountedBytes("managed"), (Counted{0, 0}));
}

TEST_F(Managed, FreeWaitsForTheGpu) {
  uint32_t* words = AllocManaged(4096);
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(Launch("slow", {}, stream));
  ASSERT_CU(Fill(Device(words), 1, 16, stream));
  ASSERT_CU(cuMemFree_v2(Device(words)));
  EXPECT_CU(cuStreamQuery(stream));
}

TEST_F(Managed, EveryContextReachesIt) {
  uint32_t* words = AllocManaged(4096);
  words[3] = 9;
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  EXPECT_EQ(Read32(Device(words) + 12), 9u);
  const CUdeviceptr own = Device(AllocManaged(4096));
  EXPECT_NE(own, 0u);
  ASSERT_CU(cuCtxDestroy_v2(other));  // takes its own along
  ASSERT_CU(cuCtxSetCurrent(context_));
  ExpectCounted("managed", {4096, 4096});
  EXPECT_EQ(words[3], 9u);
  ASSERT_CU(cuMemFree_v2(Device(words)));
}

TEST_F(Managed, HintsAreCheckedAndAccepted) {
  uint32_t* words = AllocManaged(8192);
  words[0] = 1;
  const CUdeviceptr managed = Device(words);
  const CUdeviceptr plain = Alloc(8192);
  const CUmemLocation gpu{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemLocation host{CU_MEM_LOCATION_TYPE_HOST, 0};
  EXPECT_CU(cuMemPrefetchAsync(managed, 8192, 0, nullptr));
  EXPECT_CU(cuMemPrefetchAsync(managed, 4096, CU_DEVICE_CPU, nullptr));
  EXPECT_CU(cuMemPrefetchAsync_v2(managed + 4096, 4096, gpu, 0, nullptr));
  EXPECT_CU(cuMemPrefetchAsync_v2(managed, 8192, host, 0, nullptr));
  EXPECT_EQ(cuMemPrefetchAsync_v2(managed, 8192, host, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPrefetchAsync(managed, 8193, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPrefetchAsync(managed, 8192, 7, nullptr), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuMemPrefetchAsync(plain, 4096, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemAdvise(managed, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
  EXPECT_CU(cuMemAdvise_v2(managed, 8192, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, gpu));
  EXPECT_EQ(cuMemAdvise(managed, 8192, CU_MEM_ADVISE_SET_ACCESSED_BY, 3),
            CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuMemAdvise(managed, 8192, static_cast<CUmem_advise>(7), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAdvise(plain, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_SINGLE));
  EXPECT_CU(cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_GLOBAL));
  ASSERT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(cuStreamAttachMemAsync(nullptr, managed, 0, CU_MEM_ATTACH_SINGLE),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamAttachMemAsync(nullptr, managed, 0, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(words[0], 1u);
  CUdeviceptr none = 0;
  EXPECT_EQ(cuMemAllocManaged(&none, 64, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocManaged(&none, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  int supported = 0;
  ASSERT_CU(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
  EXPECT_EQ(supported, 1);
  ASSERT_CU(cuMemFree_v2(managed));
  ASSERT_CU(cuMemFree_v2(plain));
}

}  // namespace
}  // namespace sluice::contract
