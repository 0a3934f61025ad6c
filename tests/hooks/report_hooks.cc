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

HOOK_TEST(cuMemGetInfo_v2) {
  Alloc(3 * kMiB);
  size_t free_bytes = 0;
  size_t total = 0;
  ASSERT_CU(cuMemGetInfo_v2(&free_bytes, &total));
  EXPECT_EQ(total, kLimit);
  EXPECT_EQ(free_bytes, kLimit - 3 * kMiB);
}

HOOK_TEST(cuDeviceTotalMem_v2) {
  Begin();
  size_t total = 0;
  ASSERT_CU(cuDeviceTotalMem_v2(&total, 0));
  EXPECT_EQ(total, kLimit);
}

HOOK_TEST(cuMemPoolGetAttribute) {
  const Pool pool;
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocAsync(&at, kMiB, nullptr));
  EXPECT_EQ(pool.Get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), kMiB);
  EXPECT_EQ(pool.Get(CU_MEMPOOL_ATTR_USED_MEM_HIGH), kMiB);
  EXPECT_EQ(pool.Get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), kMiB);
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

}  // namespace
}  // namespace sluice::hooks
