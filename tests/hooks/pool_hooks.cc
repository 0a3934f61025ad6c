// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/hook_fixture.h"

// Memory pools: ordinary ones are the arena's under another number, the others are charged for what
// the driver has reserved for them.

namespace sluice::hooks {
namespace {

class PoolHook : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
  }
  CUmemoryPool NewPool(CUmemAllocationHandleType handles) {
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.handleTypes = handles;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    EXPECT_CU(cuMemPoolCreate(&pool, &props));
    return pool;
  }
  CUmemoryPool Exportable() { return NewPool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR); }
  static uint64_t Get(CUmemoryPool pool, CUmemPool_attribute attribute) {
    uint64_t value = 0;
    EXPECT_CU(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
  }
};

TEST_F(PoolHook, cuMemPoolCreate) {
  const CUmemoryPool pool = NewPool(CU_MEM_HANDLE_TYPE_NONE);
  CUdeviceptr at = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&at, kMoreThanLimit, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuMemAllocFromPoolAsync(&at, kMiB, pool, nullptr));
  EXPECT_EQ(Get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), kMiB);
  EXPECT_EQ(Outside("pool"), 0u);
  EXPECT_GE(Says("held_bytes"), kMiB);
  ASSERT_CU(cuMemFreeAsync(at, nullptr));
  EXPECT_EQ(Get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  EXPECT_EQ(Get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), kMiB);
  // What the driver serves is limited too, and charged by what it reserves.
  const CUmemoryPool other = Exportable();
  EXPECT_EQ(cuMemAllocFromPoolAsync(&at, kMoreThanLimit, other, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuMemAllocFromPoolAsync(&at, 3 * kMiB, other, nullptr));
  EXPECT_EQ(Outside("pool"), Get(other, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  ASSERT_CU(cuMemFreeAsync(at, nullptr));
  ASSERT_CU(cuStreamSynchronize(nullptr));
  ExpectSoon([this] { return Outside("pool"); }, 0);
}

TEST_F(PoolHook, cuMemPoolDestroy) {
  // Blocks outlive their pool, and their charge with them.
  const CUmemoryPool left = Exportable();
  CUdeviceptr alive = 0;
  ASSERT_CU(cuMemAllocFromPoolAsync(&alive, 4 * kMiB, left, nullptr));
  ASSERT_CU(cuStreamSynchronize(nullptr));
  ASSERT_CU(cuMemPoolDestroy(left));
  EXPECT_EQ(Outside("pool"), 4 * kMiB);
  ASSERT_CU(cuMemFreeAsync(alive, nullptr));
  ASSERT_CU(cuStreamSynchronize(nullptr));
  ExpectSoon([this] { return Outside("pool"); }, 0);

  const CUmemoryPool pool = Exportable();
  uint64_t keep = ~uint64_t{0};
  ASSERT_CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocFromPoolAsync(&at, 2 * kMiB, pool, nullptr));
  ASSERT_CU(cuMemFreeAsync(at, nullptr));
  ASSERT_CU(cuStreamSynchronize(nullptr));
  EXPECT_EQ(Outside("pool"), 2 * kMiB) << "kept for the next allocation";
  // Which is paid for: there need not be room for it a second time.
  const CUdeviceptr rest = Alloc(kLimit - 3 * kMiB);
  ASSERT_CU(cuMemAllocFromPoolAsync(&at, 2 * kMiB, pool, nullptr));
  ASSERT_CU(cuMemFreeAsync(at, nullptr));
  ASSERT_CU(cuMemFree_v2(rest));
  ASSERT_CU(cuMemPoolDestroy(pool));
  ExpectSoon([this] { return Outside("pool"); }, 0);
}

TEST_F(PoolHook, cuMemPoolImportPointer) {
  const CUmemoryPool pool = Exportable();
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocFromPoolAsync(&at, 2 * kMiB, pool, nullptr));
  ASSERT_CU(cuStreamSynchronize(nullptr));
  int fd = -1;
  constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  ASSERT_CU(cuMemPoolExportToShareableHandle(&fd, pool, kType, 0));
  CUmemPoolPtrExportData data{};
  ASSERT_CU(cuMemPoolExportPointer(&data, at));
  CUmemoryPool imported = nullptr;
  ASSERT_CU(cuMemPoolImportFromShareableHandle(
      &imported, reinterpret_cast<void*>(static_cast<uintptr_t>(fd)), kType, 0));
  CUdeviceptr there = 0;
  ASSERT_CU(cuMemPoolImportPointer(&there, imported, &data));
  ExpectSoon([this] { return Outside("imported"); }, 2 * kMiB);
}

TEST_F(PoolHook, cuDeviceSetMemPool) {
  ASSERT_CU(cuDeviceSetMemPool(0, Exportable()));
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocAsync(&at, 2 * kMiB, nullptr));
  EXPECT_EQ(Outside("pool"), 2 * kMiB);
}

TEST_F(PoolHook, cuMemSetMemPool) {
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  ASSERT_CU(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, Exportable()));
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocAsync(&at, 2 * kMiB, nullptr));
  EXPECT_EQ(Outside("pool"), 2 * kMiB);
}

// The second GPU is there, and the driver would give it access to a pool whose memory it never has.
TEST_F(PoolHook, cuMemPoolSetAccess) {
  CUmemoryPool standard = nullptr;
  ASSERT_CU(cuDeviceGetDefaultMemPool(&standard, 0));
  CUmemLocation other{CU_MEM_LOCATION_TYPE_DEVICE, 1};
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  for (const CUmemoryPool pool : {standard, NewPool(CU_MEM_HANDLE_TYPE_NONE)}) {
    CUmemAccessDesc access{other, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_EQ(cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_NOT_SUPPORTED);
    ASSERT_CU(cuMemPoolGetAccess(&flags, pool, &other));
    EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    EXPECT_CU(cuMemPoolSetAccess(pool, &access, 1));
    access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_CU(cuMemPoolSetAccess(pool, &access, 1));
  }
  const CUmemoryPool exportable = Exportable();
  const CUmemAccessDesc access{other, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_CU(cuMemPoolSetAccess(exportable, &access, 1));
  ASSERT_CU(cuMemPoolGetAccess(&flags, exportable, &other));
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

}  // namespace
}  // namespace sluice::hooks
