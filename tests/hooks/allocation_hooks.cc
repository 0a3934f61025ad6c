// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/hook_fixture.h"

// Allocations that the arena serves: over the limit they get what the driver says when memory is
// out, and inside it a block that the driver itself does not know.

namespace sluice::hooks {
namespace {

constexpr CUresult kOut = CUDA_ERROR_OUT_OF_MEMORY;

/// `allocate(&at, bytes)` refuses what is over the limit and serves what is not.
template <typename Allocate>
void ExpectLimited(Allocate allocate) {
  CUdeviceptr at = 0;
  EXPECT_EQ(allocate(&at, kMoreThanLimit), kOut);
  EXPECT_EQ(allocate(&at, kMiB), CUDA_SUCCESS);
  EXPECT_NE(at, 0u);
}

CUmemoryPool DefaultPool() {
  CUmemoryPool pool = nullptr;
  EXPECT_CU(cuDeviceGetDefaultMemPool(&pool, 0));
  return pool;
}

HOOK_TEST(cuGetProcAddress) {
  void* entry = nullptr;
  ASSERT_CU(cuGetProcAddress("cuMemAlloc", &entry, 11030, 0));
  ExpectLimited(reinterpret_cast<PFN_cuMemAlloc_v2>(entry));
}

HOOK_TEST(cuGetProcAddress_v2) {
  void* entry = nullptr;
  ASSERT_CU(cuGetProcAddress_v2("cuMemAlloc", &entry, 12000, 0, nullptr));
  ExpectLimited(reinterpret_cast<PFN_cuMemAlloc_v2>(entry));
}

HOOK_TEST(cuMemAlloc_v2) { ExpectLimited(cuMemAlloc_v2); }

HOOK_TEST(cuMemAllocPitch_v2) {
  ExpectLimited([](CUdeviceptr* at, size_t bytes) {
    size_t pitch = 0;
    return cuMemAllocPitch_v2(at, &pitch, 4096, bytes / 4096, 4);
  });
}

HOOK_TEST(cuMemAllocAsync) {
  ExpectLimited([](CUdeviceptr* at, size_t bytes) { return cuMemAllocAsync(at, bytes, nullptr); });
}

HOOK_TEST(cuMemAllocAsync_ptsz) {
  ExpectLimited(
      [](CUdeviceptr* at, size_t bytes) { return cuMemAllocAsync_ptsz(at, bytes, nullptr); });
}

HOOK_TEST(cuMemAllocFromPoolAsync) {
  ExpectLimited([](CUdeviceptr* at, size_t bytes) {
    return cuMemAllocFromPoolAsync(at, bytes, DefaultPool(), nullptr);
  });
}

HOOK_TEST(cuMemAllocFromPoolAsync_ptsz) {
  ExpectLimited([](CUdeviceptr* at, size_t bytes) {
    return cuMemAllocFromPoolAsync_ptsz(at, bytes, DefaultPool(), nullptr);
  });
}

HOOK_TEST(cuMemFree_v2) {
  CUdeviceptr at = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_CU(cuMemAlloc_v2(&at, 16 * kMiB));
    ASSERT_CU(cuMemFree_v2(at));
  }
  EXPECT_EQ(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE) << "freed twice";
}

HOOK_TEST(cuMemFreeAsync) {
  CUdeviceptr at = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_CU(cuMemAllocAsync(&at, 16 * kMiB, nullptr));
    ASSERT_CU(cuMemFreeAsync(at, nullptr));
  }
  EXPECT_EQ(cuMemFreeAsync(at, nullptr), CUDA_ERROR_INVALID_VALUE) << "freed twice";
}

HOOK_TEST(cuMemFreeAsync_ptsz) {
  CUdeviceptr at = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_CU(cuMemAllocAsync_ptsz(&at, 16 * kMiB, nullptr));
    ASSERT_CU(cuMemFreeAsync_ptsz(at, nullptr));
  }
}

// Addresses of 32 bits: none of the job's blocks has one, and the driver is not asked for others.
TEST_F(Hook, cuMemAlloc) {
  unsigned at = 0;
  EXPECT_EQ(cuMemAlloc(&at, 4096), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Hook, cuMemAllocPitch) {
  unsigned at = 0;
  unsigned pitch = 0;
  EXPECT_EQ(cuMemAllocPitch(&at, &pitch, 64, 4, 4), CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
}  // namespace sluice::hooks
