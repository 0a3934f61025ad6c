// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/hook_fixture.h"

// What a job is told about memory is its own limit and its own use.

namespace sluice::hooks {
namespace {

class Pool {
 public:
  Pool() { EXPECT_CU(cuDeviceGetDefaultMemPool(&pool_, 0)); }
  uint64_t Get(CUmemPool_attribute attribute) const {
    uint64_t value = 0;
    EXPECT_CU(cuMemPoolGetAttribute(pool_, attribute, &value));
    return value;
  }
  CUmemoryPool handle() const { return pool_; }

 private:
  CUmemoryPool pool_ = nullptr;
};

/// The same before the first allocation as after it. Who looks in a context of its own, which ends,
/// takes nothing with it.
HOOK_TEST(cuMemGetInfo_v2) {
  size_t free_bytes = 0;
  size_t total = 0;
  CUcontext probe = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&probe, 0, 0));
  ASSERT_CU(cuMemGetInfo_v2(&free_bytes, &total));
  EXPECT_EQ(total, kLimit);
  EXPECT_EQ(free_bytes, kLimit);
  ASSERT_CU(cuCtxSetCurrent(context_));
  const CUdeviceptr at = Alloc(3 * kMiB);
  ASSERT_CU(Fill(at, 7, 16));
  ASSERT_CU(cuCtxDestroy_v2(probe));
  EXPECT_EQ(Read32(at), 7u);
  ASSERT_CU(cuMemGetInfo_v2(&free_bytes, &total));
  EXPECT_EQ(total, kLimit);
  EXPECT_EQ(free_bytes, kLimit - 3 * kMiB);
}

HOOK_TEST(cuDeviceTotalMem_v2) {
  size_t total = 0;
  ASSERT_CU(cuDeviceTotalMem_v2(&total, 0));
  EXPECT_EQ(total, kLimit) << "nothing is allocated yet";
  Begin();
  ASSERT_CU(cuDeviceTotalMem_v2(&total, 0));
  EXPECT_EQ(total, kLimit);
}

HOOK_TEST(cuMemPoolGetAttribute) {
  const Pool pool;
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocAsync(&at, kMiB, nullptr));
  EXPECT_EQ(pool.Get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), kMiB);
  EXPECT_EQ(pool.Get(CU_MEMPOOL_ATTR_USED_MEM_HIGH), kMiB);
  EXPECT_EQ(pool.Get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), kUnit);
}

HOOK_TEST(cuMemPoolSetAttribute) {
  const Pool pool;
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocAsync(&at, kMiB, nullptr));
  ASSERT_CU(cuMemFreeAsync(at, nullptr));
  EXPECT_EQ(pool.Get(CU_MEMPOOL_ATTR_USED_MEM_HIGH), kMiB);
  uint64_t zero = 0;
  ASSERT_CU(cuMemPoolSetAttribute(pool.handle(), CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  EXPECT_EQ(pool.Get(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0u);
}

HOOK_TEST(cuMemPoolTrimTo) {
  const Pool pool;
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocAsync(&at, 8 * kMiB, nullptr));
  ASSERT_CU(cuMemFreeAsync(at, nullptr));
  ASSERT_CU(cuStreamSynchronize(nullptr));
  EXPECT_EQ(Says("held_bytes"), 8 * kMiB);
  ASSERT_CU(cuMemPoolTrimTo(pool.handle(), 2 * kMiB));
  ExpectSoon([this] { return Says("held_bytes"); }, 2 * kMiB);
}

HOOK_TEST(cuMemGetAddressRange_v2) {
  const CUdeviceptr at = Alloc(3 * kMiB);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  ASSERT_CU(cuMemGetAddressRange_v2(&base, &bytes, at + kMiB));
  EXPECT_EQ(base, at);
  EXPECT_EQ(bytes, 3 * kMiB);
}

HOOK_TEST(cuMemGetInfo) {
  Alloc(3 * kMiB);
  unsigned free_bytes = 0;
  unsigned total = 0;
  ASSERT_CU(cuMemGetInfo(&free_bytes, &total));
  EXPECT_EQ(total, kLimit);
  EXPECT_EQ(free_bytes, kLimit - 3 * kMiB);
}

HOOK_TEST(cuDeviceTotalMem) {
  Begin();
  unsigned total = 0;
  ASSERT_CU(cuDeviceTotalMem(&total, 0));
  EXPECT_EQ(total, kLimit);
}

/// A block looks as if it had been allocated alone.
HOOK_TEST(cuPointerGetAttribute) {
  const CUdeviceptr at = Alloc(kMiB);
  CUdeviceptr start = 0;
  ASSERT_CU(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + 5));
  EXPECT_EQ(start, at);
  size_t bytes = 0;
  ASSERT_CU(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at + 5));
  EXPECT_EQ(bytes, kMiB);
  uint64_t handles = 1;
  ASSERT_CU(cuPointerGetAttribute(&handles, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at));
  EXPECT_EQ(handles, uint64_t{CU_MEM_HANDLE_TYPE_NONE});
  CUdeviceptr pooled = 0;
  ASSERT_CU(cuMemAllocAsync(&pooled, kMiB, nullptr));
  CUmemoryPool pool = nullptr;
  ASSERT_CU(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pooled));
  EXPECT_EQ(pool, Pool().handle());
  // Of another pool: that one.
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool other = nullptr;
  ASSERT_CU(cuMemPoolCreate(&other, &props));
  ASSERT_CU(cuMemAllocFromPoolAsync(&pooled, kMiB, other, nullptr));
  ASSERT_CU(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pooled));
  EXPECT_EQ(pool, other);
  ASSERT_CU(cuMemPoolDestroy(other));
  ASSERT_CU(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pooled));
  EXPECT_EQ(pool, nullptr);
}

HOOK_TEST(cuPointerGetAttributes) {
  const CUdeviceptr at = Alloc(kMiB);
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  unsigned type = 0;
  size_t bytes = 0;
  void* values[] = {&type, &bytes};
  ASSERT_CU(cuPointerGetAttributes(2, attributes, values, at));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  EXPECT_EQ(bytes, kMiB);
}

HOOK_TEST(cuIpcGetMemHandle) {
  const CUdeviceptr at = Alloc(kMiB);
  CUipcMemHandle handle{};
  testing::internal::CaptureStderr();
  EXPECT_NE(cuIpcGetMemHandle(&handle, at), CUDA_SUCCESS);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cannot be shared by cuIpcGetMemHandle"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::hooks
