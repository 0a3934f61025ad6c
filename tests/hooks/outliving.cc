// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <unistd.h>

#include <cstdio>

#include "tests/hooks/hook_fixture.h"

// Physical memory of the program's own needs no context and outlives it, perhaps mapped.
// leased_test runs this as a job.

namespace sluice::hooks {
namespace {

using contract::CountedBytes;
using contract::ReadWrite;

class Outliving : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
    ASSERT_CU(cuMemAddressReserve(&range_, 4 * kUnit, 0, 0, 0));
  }
  static CUmemGenericAllocationHandle Create(size_t bytes, bool exportable) {
    CUmemAllocationProp prop = DeviceMemory();
    if (!exportable) prop.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(0);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CU(cuMemCreate(&handle, bytes, &prop, 0));
    return handle;
  }
  void Map(size_t unit, size_t bytes, CUmemGenericAllocationHandle handle) {
    const CUmemAccessDesc access = ReadWrite();
    EXPECT_CU(cuMemMap(range_ + unit * kUnit, bytes, 0, handle, 0));
    EXPECT_CU(cuMemSetAccess(range_ + unit * kUnit, bytes, &access, 1));
  }
  void EndContext() {
    EXPECT_CU(cuCtxSetCurrent(nullptr));
    EXPECT_CU(cuDevicePrimaryCtxRelease_v2(0));
    context_ = nullptr;
  }
  void NextContext() { Hook::SetUp(); }
  /// The device's own count, and the daemon's.
  void ExpectPhysical(uint64_t bytes) {
    EXPECT_EQ(CountedBytes("vmm").requested, bytes);
    ExpectSoon([this] { return Outside("physical"); }, bytes);
  }

  CUdeviceptr range_ = 0;
};

TEST_F(Outliving, StaysChargedUntilItIsGivenBack) {
  const auto kept = Create(kUnit, true);
  const auto mapped = Create(kUnit, true);
  Map(0, kUnit, mapped);
  EXPECT_CU(cuMemRelease(mapped));  // the mapping holds it
  const auto leased = Create(2 * kUnit, false);
  Map(1, 2 * kUnit, leased);
  CUdeviceptr managed = 0;
  EXPECT_CU(cuMemAllocManaged(&managed, kMiB, 1));
  ExpectPhysical(2 * kUnit);

  EndContext();
  ExpectPhysical(2 * kUnit);
  ExpectSoon([this] { return Outside("managed"); }, 0);
  ExpectSoon([this] { return Outside("context"); }, 0);
  // What is lent went back with the session, so nothing may be mapped of it any more.
  ExpectSoon([this] { return Says("held_bytes"); }, 0);
  CUmemGenericAllocationHandle found = 0;
  EXPECT_NE(cuMemRetainAllocationHandle(&found, reinterpret_cast<void*>(range_ + 2 * kUnit)),
            CUDA_SUCCESS);
  EXPECT_CU(cuMemUnmap(range_ + kUnit, 2 * kUnit));
  EXPECT_CU(cuMemRelease(leased));

  printf("between\n");
  fflush(stdout);
  char end = 0;
  EXPECT_EQ(read(STDIN_FILENO, &end, 1), 0);
  // Without a context, and so without a session.
  ExpectPhysical(2 * kUnit);
  EXPECT_CU(cuMemRelease(kept));
  ExpectPhysical(kUnit);

  NextContext();
  Begin();
  ExpectPhysical(kUnit);
  // Its limit covers it, too.
  CUdeviceptr all = 0;
  EXPECT_EQ(cuMemAlloc_v2(&all, kLimit), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CU(cuMemAlloc_v2(&all, kLimit - kUnit));
  EXPECT_CU(cuMemUnmap(range_, kUnit));
  ExpectPhysical(0);
}

// All that lives on is given back before there is another context: then the job owes nothing.
TEST_F(Outliving, GivenBackBetweenContextsItIsNobodys) {
  const auto kept = Create(kUnit, true);
  EndContext();
  EXPECT_CU(cuMemRelease(kept));
  ExpectPhysical(0);
  NextContext();
  Begin();
  ExpectPhysical(0);
  const auto again = Create(kUnit, true);
  ExpectPhysical(kUnit);
  EXPECT_CU(cuMemRelease(again));
  ExpectPhysical(0);
}

TEST_F(Outliving, APoolsBlocksEndWithTheSessionAndThePoolDoesNot) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  ASSERT_CU(cuMemPoolCreate(&pool, &props));
  const auto used = [&] {
    uint64_t bytes = 0;
    EXPECT_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes));
    return bytes;
  };
  // More than are looked at at once.
  for (uint32_t i = 0; i < 100; ++i) {
    CUdeviceptr block = 0;
    ASSERT_CU(cuMemAllocFromPoolAsync(&block, 512, pool, nullptr));
  }
  EXPECT_EQ(used(), 100 * 512u);
  EndContext();
  NextContext();
  Begin();
  EXPECT_EQ(used(), 0u);
  CUdeviceptr block = 0;
  ASSERT_CU(cuMemAllocFromPoolAsync(&block, 512, pool, nullptr));
  EXPECT_EQ(used(), 512u);
  EXPECT_CU(cuMemFreeAsync(block, nullptr));
  EXPECT_EQ(used(), 0u);
  EXPECT_CU(cuMemPoolDestroy(pool));
}

}  // namespace
}  // namespace sluice::hooks
