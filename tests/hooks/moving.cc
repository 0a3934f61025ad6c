// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <utility>

#include "tests/hooks/hook_fixture.h"

// The session's context ends before another one of the program, which goes on with what is its own.
// alone_test runs this as a job.

namespace sluice::hooks {
namespace {

class Moving : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    first_ = AllocFilled(kUnit, 1);
    ASSERT_CU(cuCtxCreate_v2(&second_, 0, 0));
    ASSERT_CU(cuModuleLoadData(&second_module_, contract::KernelImage().c_str()));
    module_ = second_module_;
    ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  CUdeviceptr AllocFilled(size_t bytes, uint32_t value) {
    const CUdeviceptr at = Alloc(bytes);
    EXPECT_CU(cuMemsetD32_v2(at, value, bytes / 4));
    EXPECT_CU(cuCtxSynchronize());
    return at;
  }
  void EndFirst() {
    ASSERT_CU(cuCtxSetCurrent(second_));
    ASSERT_CU(cuDevicePrimaryCtxRelease_v2(0));
    context_ = nullptr;
  }

  CUdeviceptr first_ = 0;
  CUcontext second_ = nullptr;
  CUmodule second_module_ = nullptr;
  CUstream stream_ = nullptr;
};

TEST_F(Moving, TheOtherContextKeepsWhatItHasAndGetsMore) {
  const CUdeviceptr own = AllocFilled(kUnit, 2);
  CUdeviceptr async = 0;
  ASSERT_CU(cuMemAllocAsync(&async, kUnit, stream_));
  ASSERT_CU(Fill(async, 3, 16, stream_));
  ASSERT_CU(cuStreamSynchronize(stream_));
  ExpectSoon([this] { return Says("live_bytes"); }, 3 * kUnit);
  ExpectSoon([this] { return Outside("context"); }, 2 * kContext);
  EndFirst();
  ExpectSoon([this] { return Says("live_bytes"); }, 2 * kUnit);
  ExpectSoon([this] { return Outside("context"); }, kContext);
  EXPECT_EQ(Read32(own + kUnit - 4), 2u);
  EXPECT_EQ(Read32(async), 3u);
  EXPECT_EQ(cuMemFree_v2(first_), CUDA_ERROR_INVALID_VALUE);
  // Marks are written in this context, and what they cover is taken again without waiting for it.
  for (uint32_t i = 0; i < 200; ++i) {
    CUdeviceptr at = 0;
    ASSERT_CU(cuMemAllocAsync(&at, 4 * kUnit, stream_));
    ASSERT_CU(Fill(at, i, 16, stream_));
    ASSERT_CU(cuMemFreeAsync(at, stream_));
  }
  ASSERT_CU(cuMemFreeAsync(async, stream_));
  ASSERT_CU(cuMemFree_v2(own));
  // All that its limit gives, also what the first one had.
  CUdeviceptr all = 0;
  ASSERT_CU(cuMemAlloc_v2(&all, kLimit));
  ASSERT_CU(cuMemFree_v2(all));
  ASSERT_CU(cuCtxDestroy_v2(std::exchange(second_, nullptr)));
  ExpectSoon([this] { return Says("held_bytes"); }, 0);
}

TEST_F(Moving, BehindWorkOfTheOtherContext) {
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocAsync(&at, 8 * kUnit, stream_));
  for (int i = 0; i < 40; ++i) ASSERT_CU(Fill(at, 7, 64, stream_));  // with marks behind them
  EndFirst();
  EXPECT_EQ(Read32(at), 7u);
  ASSERT_CU(cuMemFreeAsync(at, stream_));
  ASSERT_CU(cuCtxDestroy_v2(second_));
}

}  // namespace
}  // namespace sluice::hooks
