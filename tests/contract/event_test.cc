// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

class Event : public ContextTest {
 protected:
  CUevent NewEvent(unsigned flags = CU_EVENT_DEFAULT) {
    CUevent event = nullptr;
    EXPECT_CU(cuEventCreate(&event, flags));
    return event;
  }
};

TEST_F(Event, IsOverWhenTheWorkBeforeItIsOver) {
  SharedWord word;
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUevent event = NewEvent();
  EXPECT_CU(cuEventQuery(event));  // never recorded
  ASSERT_CU(cuStreamWaitValue64_v2(stream, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuEventRecord(event, stream));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  word.Store(1);
  ASSERT_CU(cuEventSynchronize(event));
  EXPECT_CU(cuEventQuery(event));
  EXPECT_CU(cuEventDestroy_v2(event));
}

TEST_F(Event, IsNoneOnceItIsDestroyed) {
  OnlySimulated("a real driver reads what a stale handle points to");
  const CUevent event = NewEvent();
  EXPECT_CU(cuEventDestroy_v2(event));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Event, OrdersStreams) {
  SharedWord word;
  CUstream first = nullptr;
  CUstream second = nullptr;
  ASSERT_CU(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr memory = Alloc(4096);
  const CUevent event = NewEvent(CU_EVENT_DISABLE_TIMING);
  ASSERT_CU(cuStreamWaitValue64_v2(first, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(Fill(memory, 1, 1, first));
  ASSERT_CU(cuEventRecord(event, first));
  ASSERT_CU(cuStreamWaitEvent(second, event, 0));
  ASSERT_CU(Fill(memory, 2, 1, second));
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  word.Store(1);
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(Read32(memory), 2u);
}

// cost.slow in the machine file is 20 ms.
TEST_F(Event, MeasuresSimulatedTime) {
  const CUevent start = NewEvent();
  const CUevent end = NewEvent();
  float ms = 0;
  EXPECT_EQ(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  SharedWord word;
  ASSERT_CU(cuStreamWaitValue64_v2(stream, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuEventRecord(start, stream));
  ASSERT_CU(Launch("slow", {}, stream));
  ASSERT_CU(Launch("slow", {}, stream));
  ASSERT_CU(cuEventRecord(end, stream));
  EXPECT_EQ(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
  word.Store(1);
  ASSERT_CU(cuEventSynchronize(end));
  ASSERT_CU(cuEventElapsedTime(&ms, start, end));
  // At least the two kernels; the first one may start a little after the event.
  EXPECT_GE(ms, 40.0f);
  EXPECT_LT(ms, 60.0f);
}

TEST_F(Event, WithoutTimingHasNoTime) {
  const CUevent start = NewEvent(CU_EVENT_DISABLE_TIMING);
  const CUevent end = NewEvent();
  ASSERT_CU(cuEventRecord(start, nullptr));
  ASSERT_CU(cuEventRecord(end, nullptr));
  ASSERT_CU(cuCtxSynchronize());
  float ms = 0;
  EXPECT_EQ(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Event, SlotsOfDestroyedEventsAreReused) {
  for (int i = 0; i < 70000; ++i) {
    CUevent event = nullptr;
    ASSERT_CU(cuEventCreate(&event, CU_EVENT_DEFAULT));
    ASSERT_CU(cuEventDestroy_v2(event));
  }
}

}  // namespace
}  // namespace sluice::contract
