// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Green contexts: whose memory and whose context they are.
#include "tests/contract/answers.h"
#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

class Green : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    CUdevResource sms{};
    const CUresult told = cuDeviceGetDevResource(0, &sms, CU_DEV_RESOURCE_TYPE_SM);
    if (told == CUDA_ERROR_NOT_SUPPORTED) GTEST_SKIP() << "no green contexts on this GPU";
    ASSERT_CU(told);
    ASSERT_GE(sms.sm.smCount, 1u);
    ASSERT_CU(cuDevResourceGenerateDesc(&desc_, &sms, 1));
  }
  CUgreenCtx Make() {
    CUgreenCtx green = nullptr;
    EXPECT_CU(cuGreenCtxCreate(&green, desc_, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    return green;
  }
  static CUstream StreamOf(CUgreenCtx green) {
    CUstream stream = nullptr;
    EXPECT_CU(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    return stream;
  }
  CUdevResourceDesc desc_ = nullptr;
};

TEST_F(Green, RetainsThePrimaryContext) {
  const CUgreenCtx green = Make();
  ASSERT_CU(cuCtxSetCurrent(nullptr));
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(0));
  unsigned flags = 0;
  int active = 0;
  ASSERT_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  ASSERT_CU(cuGreenCtxDestroy(green));
  ASSERT_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  context_ = nullptr;
}

TEST_F(Green, MakesThePrimaryContextWhereThereIsNone) {
  ASSERT_CU(cuCtxSetCurrent(nullptr));
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(0));
  const CUgreenCtx green = Make();
  unsigned flags = 0;
  int active = 0;
  ASSERT_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  ASSERT_CU(cuGreenCtxDestroy(green));
  context_ = nullptr;
}

TEST_F(Green, SharesTheMemoryOfThePrimaryContextWhichOutlivesIt) {
  const CUgreenCtx green = Make();
  CUcontext view = nullptr;
  ASSERT_CU(cuCtxFromGreenCtx(&view, green));
  Answer("green_context_has_the_primary_ones_handle", view == context_ ? "yes" : "no");
  ASSERT_CU(cuCtxSetCurrent(view));
  CUcontext current = nullptr;
  ASSERT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, view);
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAlloc_v2(&at, 4096));
  const CUstream stream = StreamOf(green);
  ASSERT_CU(cuMemsetD32Async(at, 0x5eed, 1024, stream));
  ASSERT_CU(cuStreamSynchronize(stream));
  ASSERT_CU(cuCtxSetCurrent(context_));
  EXPECT_EQ(Read32(at), 0x5eedu);
  ASSERT_CU(cuStreamDestroy_v2(stream));
  ASSERT_CU(cuGreenCtxDestroy(green));
  EXPECT_EQ(Read32(at), 0x5eedu);
  EXPECT_CU(cuMemFree_v2(at));
}

TEST_F(Green, StreamsKnowTheirContext) {
  const CUgreenCtx green = Make();
  CUcontext view = nullptr;
  ASSERT_CU(cuCtxFromGreenCtx(&view, green));
  const CUstream stream = StreamOf(green);
  CUgreenCtx of = nullptr;
  ASSERT_CU(cuStreamGetGreenCtx(stream, &of));
  EXPECT_EQ(of, green);
  CUcontext context = nullptr;
  ASSERT_CU(cuStreamGetCtx(stream, &context));
  EXPECT_EQ(context, view);
  CUstream plain = nullptr;
  ASSERT_CU(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuStreamGetGreenCtx(plain, &of));
  EXPECT_EQ(of, nullptr);
  EXPECT_CU(cuStreamDestroy_v2(plain));
  EXPECT_CU(cuStreamDestroy_v2(stream));
  EXPECT_CU(cuGreenCtxDestroy(green));
}

TEST_F(Green, SynchronisingThePrimaryContextWaitsForItsStreams) {
  const CUgreenCtx green = Make();
  const CUstream stream = StreamOf(green);
  const CUdeviceptr at = Alloc(4096);
  ASSERT_CU(Launch("slow", {}, stream));
  ASSERT_CU(cuMemsetD32Async(at, 0x5eed, 1024, stream));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_CU(cuStreamQuery(stream));
  EXPECT_CU(cuStreamDestroy_v2(stream));
  EXPECT_CU(cuGreenCtxDestroy(green));
}

TEST_F(Green, LeavesItsStreamsDetached) {
  const CUgreenCtx green = Make();
  const CUstream stream = StreamOf(green);
  ASSERT_CU(cuGreenCtxDestroy(green));
  // Not CUDA_ERROR_STREAM_DETACHED, which the header has for it.
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CUcontext of = nullptr;
  Answer("detached.cuStreamGetCtx", NameOf(cuStreamGetCtx(stream, &of)));
  Answer("detached.cuStreamDestroy", NameOf(cuStreamDestroy_v2(stream)));
}

TEST_F(Green, WhatBecomesOfWorkThatIsQueuedAtItsEnd) {
  const CUgreenCtx green = Make();
  const CUstream stream = StreamOf(green);
  const CUdeviceptr at = Alloc(4096);
  SharedWord gate;
  CUdeviceptr flag = gate.device();
  ASSERT_CU(Launch("wait_flag", {&flag}, stream));
  ASSERT_CU(cuMemsetD32Async(at, 0x5eed, 1024, stream));
  // Whether destroying it waits is not said: the word is there when it does.
  gate.Store(1);
  ASSERT_CU(cuGreenCtxDestroy(green));
  ASSERT_CU(cuCtxSynchronize());
  Answer("green_context_work_outlives_it", Read32(at) == 0x5eedu ? "yes" : "no");
}

TEST_F(Green, RefusesWhatMakesNoSense) {
  CUgreenCtx green = nullptr;
  EXPECT_EQ(cuGreenCtxCreate(&green, desc_, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGreenCtxCreate(nullptr, desc_, 0, CU_GREEN_CTX_DEFAULT_STREAM),
            CUDA_ERROR_INVALID_VALUE);
  CUstream stream = nullptr;
  green = Make();
  CUdevResource sms{};
  ASSERT_CU(cuGreenCtxGetDevResource(green, &sms, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_GE(sms.sm.smCount, 1u);
  EXPECT_EQ(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuGreenCtxDestroy(green));
}

TEST_F(Green, RefusesAStaleHandle) {
  OnlySimulated("a real driver reads what a stale handle points to");
  const CUgreenCtx green = Make();
  ASSERT_CU(cuGreenCtxDestroy(green));
  EXPECT_EQ(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext view = nullptr;
  EXPECT_EQ(cuCtxFromGreenCtx(&view, green), CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace sluice::contract
