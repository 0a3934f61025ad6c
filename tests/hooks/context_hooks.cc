// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/hook_fixture.h"

// Contexts cost memory outside the pool, and with the last one everything else ends.

namespace sluice::hooks {
namespace {

class ContextHook : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
    ASSERT_EQ(Outside("context"), kContext) << "the session's own";
  }
  void ExpectContexts(uint64_t count) {
    ExpectSoon([this] { return Outside("context"); }, count * kContext);
  }
  /// A job whose session lives in a context of its own; the primary one is gone.
  void MoveToOwnContext() {
    Hook::TearDown();
    ASSERT_CU(cuCtxCreate_v2(&own_, 0, 0));
    Begin();
    ExpectContexts(1);
    context_ = nullptr;
  }
  CUcontext own_ = nullptr;
};

// The names without a suffix are those of the oldest interfaces; a driver still has them.
TEST_F(ContextHook, cuCtxCreate) {
  ASSERT_CU(cuCtxCreate(&own_, 0, 0));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuCtxCreate_v2) {
  ASSERT_CU(cuCtxCreate_v2(&own_, 0, 0));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuCtxCreate_v3) {
  ASSERT_CU(cuCtxCreate_v3(&own_, nullptr, 0, 0, 0));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuCtxCreate_v4) {
  ASSERT_CU(cuCtxCreate_v4(&own_, nullptr, 0, 0));
  ExpectContexts(2);
}

// Of what graphics and video would register there is nothing here, but the context costs what
// others do, and is waited for like them.
TEST_F(ContextHook, cuGLCtxCreate) {
  ASSERT_CU(cuGLCtxCreate(&own_, 0, 0));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuGLCtxCreate_v2) {
  ASSERT_CU(cuGLCtxCreate_v2(&own_, 0, 0));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuVDPAUCtxCreate) {
  ASSERT_CU(cuVDPAUCtxCreate(&own_, 0, 0, 1, nullptr));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuVDPAUCtxCreate_v2) {
  ASSERT_CU(cuVDPAUCtxCreate_v2(&own_, 0, 0, 1, nullptr));
  ExpectContexts(2);
}

// The reference that it takes is one more to give back.
TEST_F(ContextHook, cuCtxAttach) {
  ASSERT_CU(cuCtxCreate_v2(&own_, 0, 0));
  CUcontext attached = nullptr;
  ASSERT_CU(cuCtxAttach(&attached, 0));
  EXPECT_EQ(attached, own_);
  ASSERT_CU(cuCtxDetach(attached));
  CUcontext third = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&third, 0, 0));  // the daemon has heard of all that was before
  ExpectContexts(3);
}

// The last one takes with it what a context's end does.
TEST_F(ContextHook, cuCtxDetach) {
  ASSERT_CU(cuCtxCreate_v2(&own_, 0, 0));
  CUdeviceptr theirs = 0;
  ASSERT_CU(cuMemAlloc_v2(&theirs, 16 * kMiB));
  ASSERT_CU(cuCtxDetach(own_));
  ExpectContexts(1);
  ASSERT_CU(cuMemAlloc_v2(&theirs, 16 * kMiB));
  ASSERT_CU(cuMemFree_v2(theirs));
}

TEST_F(ContextHook, cuCtxDestroy) {
  ASSERT_CU(cuCtxCreate_v2(&own_, 0, 0));
  ASSERT_CU(cuCtxDestroy(own_));
  ExpectContexts(1);
}

TEST_F(ContextHook, cuCtxDestroy_v2) {
  ASSERT_CU(cuCtxCreate_v2(&own_, 0, 0));
  ASSERT_CU(cuCtxDestroy_v2(own_));
  ExpectContexts(1);
}

TEST_F(ContextHook, cuDevicePrimaryCtxRetain) {
  MoveToOwnContext();
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  ExpectContexts(2);
}

TEST_F(ContextHook, cuDevicePrimaryCtxRelease) {
  MoveToOwnContext();
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_CU(cuDevicePrimaryCtxRelease(0));
  context_ = nullptr;
  ExpectContexts(1);
}

TEST_F(ContextHook, cuDevicePrimaryCtxRelease_v2) {
  MoveToOwnContext();
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(0));
  context_ = nullptr;
  ExpectContexts(1);
}

TEST_F(ContextHook, cuDevicePrimaryCtxReset) {
  MoveToOwnContext();
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_CU(cuDevicePrimaryCtxReset(0));
  context_ = nullptr;
  ExpectContexts(1);
}

TEST_F(ContextHook, cuDevicePrimaryCtxReset_v2) {
  MoveToOwnContext();
  ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_CU(cuDevicePrimaryCtxReset_v2(0));
  context_ = nullptr;
  ExpectContexts(1);
}

class GreenHook : public ContextHook {};

// It makes the primary context, where there is none.
TEST_F(GreenHook, cuGreenCtxCreate) {
  MoveToOwnContext();
  const CUgreenCtx first = NewGreen();
  ExpectContexts(2);
  const CUgreenCtx second = NewGreen();
  ASSERT_CU(cuGreenCtxDestroy(first));
  ExpectContexts(2);
  ASSERT_CU(cuGreenCtxDestroy(second));
  ExpectContexts(1);
}

TEST_F(GreenHook, cuGreenCtxDestroy) {
  // What was freed on its streams comes back, and what was made while it was current stays.
  const CUgreenCtx green = NewGreen();
  CUcontext view = nullptr;
  ASSERT_CU(cuCtxFromGreenCtx(&view, green));
  ASSERT_CU(cuCtxSetCurrent(view));
  CUdeviceptr kept = 0;
  ASSERT_CU(cuMemAlloc_v2(&kept, kMiB));
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR_v2 shape{4096, kMiB / 4096, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  ASSERT_CU(cuArrayCreate_v2(&array, &shape));
  CUstream stream = nullptr;
  ASSERT_CU(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  CUdeviceptr freed = 0;
  ASSERT_CU(cuMemAllocAsync(&freed, 16 * kMiB, stream));
  ASSERT_CU(cuMemsetD8Async(freed, 1, 16 * kMiB, stream));
  ASSERT_CU(cuMemFreeAsync(freed, stream));
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuGreenCtxDestroy(green));
  ExpectContexts(1);
  EXPECT_EQ(Outside("array"), kMiB);
  CUdeviceptr rest = 0;
  ASSERT_CU(cuMemAlloc_v2(&rest, 16 * kMiB));
  EXPECT_CU(cuMemsetD8_v2(kept, 1, kMiB));
  EXPECT_CU(cuMemFree_v2(rest));
  EXPECT_CU(cuMemFree_v2(kept));
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  // The array ends with the primary context, which the last green one takes with it.
  MoveToOwnContext();
  EXPECT_EQ(Outside("array"), 0u);
  const CUgreenCtx last = NewGreen();
  ASSERT_CU(cuCtxFromGreenCtx(&view, last));
  ASSERT_CU(cuCtxSetCurrent(view));
  CUdeviceptr theirs = 0;
  ASSERT_CU(cuMemAlloc_v2(&theirs, 16 * kMiB));
  ASSERT_CU(cuCtxSetCurrent(own_));
  ASSERT_CU(cuGreenCtxDestroy(last));
  ExpectContexts(1);
  // So does what cuMemAlloc gave there.
  ASSERT_CU(cuMemAlloc_v2(&theirs, 16 * kMiB));
}

}  // namespace
}  // namespace sluice::hooks
