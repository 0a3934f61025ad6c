// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "tests/hooks/hook_fixture.h"

// A driver gives back what its pools have to spare whenever the GPU is waited for, also where it is
// the library that waits. What is charged follows. alone_test runs this as a job.

namespace sluice::hooks {
namespace {

class Waited : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    ASSERT_CU(cuMemPoolCreate(&pool_, &props));
  }
  /// Memory of a pool that only the driver can serve, which it has to spare from here on.
  void LeaveToSpare() {
    CUdeviceptr at = 0;
    ASSERT_CU(cuMemAllocFromPoolAsync(&at, 2 * kMiB, pool_, nullptr));
    ASSERT_CU(cuMemFreeAsync(at, nullptr));
    EXPECT_EQ(Outside("pool"), 2 * kMiB);
  }
  void ExpectNothingCharged() {
    ExpectSoon([this] { return Outside("pool"); }, 0);
  }

  CUmemoryPool pool_ = nullptr;
};

TEST_F(Waited, ByTheFreeOfABlock) {
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAlloc_v2(&at, kMiB));
  LeaveToSpare();
  ASSERT_CU(cuMemFree_v2(at));
  ExpectNothingCharged();
}

TEST_F(Waited, ByTheFreeOfABlockOfAnotherContext) {
  CUcontext second = nullptr;
  ASSERT_CU(cuCtxCreate_v4(&second, nullptr, 0, 0));
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAlloc_v2(&at, kMiB));
  CUcontext popped = nullptr;
  ASSERT_CU(cuCtxPopCurrent_v2(&popped));
  LeaveToSpare();
  ASSERT_CU(cuCtxPushCurrent_v2(second));
  ASSERT_CU(cuMemFree_v2(at));
  ExpectNothingCharged();
  ASSERT_CU(cuCtxDestroy_v2(second));
}

}  // namespace
}  // namespace sluice::hooks
