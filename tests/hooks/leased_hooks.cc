// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <string>

#include "tests/hooks/hook_fixture.h"

// Physical memory of the program's own that is made of units of the pool.

namespace sluice::hooks {
namespace {

class LeasedHook : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
    CUmemAllocationProp prop = DeviceMemory();
    prop.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(0);
    const uint64_t before = Says("held_bytes");
    ASSERT_CU(cuMemCreate(&handle_, 3 * kUnit, &prop, 0));
    EXPECT_GE(Says("held_bytes"), before + 2 * kUnit);
    EXPECT_EQ(Outside("physical"), 0u);
  }
  void TearDown() override {
    EXPECT_CU(cuMemRelease(handle_));
    Hook::TearDown();
  }
  CUmemGenericAllocationHandle handle_ = 0;
};

TEST_F(LeasedHook, cuMemExportToShareableHandle) {
  int fd = -1;
  EXPECT_EQ(cuMemExportToShareableHandle(&fd, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(LeasedHook, cuMemGetAllocationPropertiesFromHandle) {
  CUmemAllocationProp prop{};
  ASSERT_CU(cuMemGetAllocationPropertiesFromHandle(&prop, handle_));
  EXPECT_EQ(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(prop.requestedHandleTypes, 0);
}

TEST_F(LeasedHook, cuMulticastBindMem) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuMulticastBindMem(1, 0, handle_, 0, kUnit, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("multicast"), std::string::npos);
}

/// A block of the arena, and a leased mapping. The simulated driver has no multicast objects and
/// refuses everything: an unknown flag, of which it would speak first, tells its answer from ours.
TEST_F(LeasedHook, cuMulticastBindAddr) {
  constexpr unsigned long long kUnknownFlag = 1;  // NOLINT(google-runtime-int)
  CUdeviceptr range = 0;
  ASSERT_CU(cuMemAddressReserve(&range, 3 * kUnit, 0, 0, 0));
  ASSERT_CU(cuMemMap(range, 3 * kUnit, 0, handle_, 0));
  testing::internal::CaptureStderr();
  for (const CUdeviceptr at : {Alloc(kUnit), range}) {
    EXPECT_EQ(cuMulticastBindAddr(1, 0, at, kUnit, kUnknownFlag), CUDA_ERROR_NOT_SUPPORTED);
  }
  EXPECT_NE(testing::internal::GetCapturedStderr().find("memory of the pool has no handle"),
            std::string::npos);
  EXPECT_CU(cuMemUnmap(range, 3 * kUnit));
  EXPECT_CU(cuMemAddressFree(range, 3 * kUnit));
  // Memory that is not the pool's is the driver's own affair.
  EXPECT_EQ(cuMulticastBindAddr(1, 0, range, kUnit, kUnknownFlag), CUDA_ERROR_INVALID_VALUE);
}

/// Sparse arrays need handles that were made for them.
class SparseHook : public LeasedHook {
 protected:
  void ExpectRefused(CUresult (*map)(CUarrayMapInfo*, unsigned, CUstream)) {
    CUarrayMapInfo part{};
    part.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    part.memHandle.memHandle = handle_;
    testing::internal::CaptureStderr();
    EXPECT_EQ(map(&part, 1, nullptr), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("to a sparse array"), std::string::npos);
  }
};

TEST_F(SparseHook, cuMemMapArrayAsync) { ExpectRefused(cuMemMapArrayAsync); }
TEST_F(SparseHook, cuMemMapArrayAsync_ptsz) { ExpectRefused(cuMemMapArrayAsync_ptsz); }

TEST_F(LeasedHook, cuMemGetHandleForAddressRange) {
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAlloc_v2(&at, kUnit));
  testing::internal::CaptureStderr();
  int fd = -1;
  EXPECT_EQ(cuMemGetHandleForAddressRange(&fd, at, kUnit, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("memory of the pool"), std::string::npos);
}

}  // namespace
}  // namespace sluice::hooks
