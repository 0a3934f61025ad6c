// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <functional>
#include <string>
#include <thread>

#include "tests/contract/graph_fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

/// What may be called while a stream captures: the three modes, and what is never allowed.
class CaptureMode : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    ASSERT_CU(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    ASSERT_CU(cuEventRecord(event_, other_));
    ASSERT_CU(cuCtxSynchronize());
  }
  /// Captures something while `during` runs. Whether the capture survived.
  bool Survives(CUstreamCaptureMode mode, const std::function<void()>& during) {
    uint32_t value = 1;
    EXPECT_CU(cuStreamBeginCapture_v2(stream_, mode));
    EXPECT_CU(Launch("append", {&log_, &value}, stream_));
    during();
    CUgraph graph = nullptr;
    const CUresult result = cuStreamEndCapture(stream_, &graph);
    EXPECT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph == nullptr, result != CUDA_SUCCESS);
    return result == CUDA_SUCCESS;
  }
  /// Runs in another thread that has the mode `mode`.
  void Elsewhere(CUstreamCaptureMode mode, const std::function<void()>& function) {
    std::thread([&] {
      EXPECT_CU(cuCtxSetCurrent(context_));
      EXPECT_CU(cuThreadExchangeStreamCaptureMode(&mode));
      function();
    }).join();
  }
  static CUresult Allocate() {
    CUdeviceptr memory = 0;
    const CUresult result = cuMemAlloc_v2(&memory, 4096);
    if (result == CUDA_SUCCESS) cuMemFree_v2(memory);
    return result;
  }
  CUstream other_ = nullptr;
  CUevent event_ = nullptr;
};

constexpr CUstreamCaptureMode kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr CUstreamCaptureMode kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr CUstreamCaptureMode kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
constexpr CUresult kRefused = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

TEST_F(CaptureMode, ThreadsSwapTheirMode) {
  CUstreamCaptureMode mode = kRelaxed;
  ASSERT_CU(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, kGlobal);
  ASSERT_CU(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, kRelaxed);
}

TEST_F(CaptureMode, UnsafeCallsOfTheCapturingThread) {
  EXPECT_FALSE(Survives(kGlobal, [&] { EXPECT_EQ(Allocate(), kRefused); }));
  EXPECT_FALSE(Survives(kLocal, [&] { EXPECT_EQ(Allocate(), kRefused); }));
  EXPECT_TRUE(Survives(kRelaxed, [&] { EXPECT_CU(Allocate()); }));
  EXPECT_TRUE(Survives(kGlobal, [&] {
    CUstreamCaptureMode mode = kRelaxed;
    EXPECT_CU(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_CU(Allocate());
    EXPECT_CU(cuThreadExchangeStreamCaptureMode(&mode));
  }));
}

TEST_F(CaptureMode, UnsafeCallsOfAnotherThread) {
  const auto allocate = [](CUresult expected) {
    return [expected] { EXPECT_EQ(Allocate(), expected); };
  };
  EXPECT_FALSE(Survives(kGlobal, [&] { Elsewhere(kGlobal, allocate(kRefused)); }));
  EXPECT_TRUE(Survives(kGlobal, [&] { Elsewhere(kLocal, allocate(CUDA_SUCCESS)); }));
  EXPECT_TRUE(Survives(kGlobal, [&] { Elsewhere(kRelaxed, allocate(CUDA_SUCCESS)); }));
  EXPECT_TRUE(Survives(kLocal, [&] { Elsewhere(kGlobal, allocate(CUDA_SUCCESS)); }));
  EXPECT_TRUE(Survives(kRelaxed, [&] { Elsewhere(kGlobal, allocate(CUDA_SUCCESS)); }));
}

TEST_F(CaptureMode, WhichCallsAreUnsafe) {
  // What the capturing thread calls, and what becomes of its capture.
  const auto ask = [&](const std::string& name, const std::function<CUresult()>& call) {
    CUresult result = CUDA_SUCCESS;
    const bool survived = Survives(kGlobal, [&] { result = call(); });
    Answer(name, NameOf(result) + (survived ? ", the capture goes on" : ", the capture is lost"));
    return result == CUDA_SUCCESS;
  };
  void* host = nullptr;
  const CUdeviceptr memory = Alloc(4096);
  uint32_t word = 0;
  const bool freed = ask("cuMemFree", [&] { return cuMemFree_v2(memory); });
  if (ask("cuMemHostAlloc", [&] { return cuMemHostAlloc(&host, 4096, 0); })) {
    EXPECT_CU(cuMemFreeHost(host));
  }
  ask("cuEventQuery", [&] { return cuEventQuery(event_); });
  ask("cuEventSynchronize", [&] { return cuEventSynchronize(event_); });
  ask("cuStreamSynchronize", [&] { return cuStreamSynchronize(other_); });
  ask("cuStreamQuery", [&] { return cuStreamQuery(other_); });
  ask("cuMemcpyDtoH", [&] { return cuMemcpyDtoH_v2(&word, log_, 4); });
  ask("cuMemcpyHtoD", [&] { return cuMemcpyHtoD_v2(log_, &word, 4); });
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = DeviceMemory();
  const size_t bytes = Granularity();
  if (ask("cuMemCreate", [&] { return cuMemCreate(&handle, bytes, &prop, 0); })) {
    EXPECT_CU(cuMemRelease(handle));
  }
  CUdeviceptr managed = 0;
  if (ask("cuMemAllocManaged",
          [&] { return cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL); })) {
    EXPECT_CU(cuMemFree_v2(managed));
  }
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR_v2 row{64, 0, CU_AD_FORMAT_FLOAT, 1};
  if (ask("cuArrayCreate", [&] { return cuArrayCreate_v2(&array, &row); })) {
    EXPECT_CU(cuArrayDestroy(array));
  }
  CUmodule module = nullptr;
  if (ask("cuModuleLoadData", [&] { return cuModuleLoadData(&module, KernelImage().c_str()); })) {
    EXPECT_CU(cuModuleUnload(module));
  }
  CUstream stream = nullptr;
  if (ask("cuStreamCreate", [&] { return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); })) {
    EXPECT_CU(cuStreamDestroy_v2(stream));
  }
  size_t total = 0;
  size_t left = 0;
  ask("cuMemGetInfo", [&] { return cuMemGetInfo_v2(&left, &total); });
  if (!freed) {
    EXPECT_CU(cuMemFree_v2(memory));  // it was not freed
  }
}

TEST_F(CaptureMode, OrdinaryWorkGoesOnInOtherStreams) {
  EXPECT_TRUE(Survives(kGlobal, [&] {
    uint32_t value = 5;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_CU(cuEventCreate(&event, 0));
    EXPECT_CU(Launch("append", {&log_, &value}, stream));
    EXPECT_CU(cuEventRecord(event, stream));
    EXPECT_CU(cuStreamWaitEvent(other_, event, 0));
  }));
  EXPECT_EQ(ReadLog(), std::vector<uint32_t>{5});
}

TEST_F(CaptureMode, NothingWaitsForACapturingStream) {
  EXPECT_FALSE(Survives(kRelaxed, [&] { EXPECT_EQ(cuStreamSynchronize(stream_), kRefused); }));
  EXPECT_FALSE(Survives(kRelaxed, [&] { EXPECT_EQ(cuStreamQuery(stream_), kRefused); }));
  EXPECT_FALSE(Survives(kRelaxed, [&] { EXPECT_EQ(cuCtxSynchronize(), kRefused); }));
}

TEST_F(CaptureMode, ACaptureEndsWithItsStream) {
  uint32_t value = 1;
  ASSERT_CU(cuStreamBeginCapture_v2(stream_, kGlobal));
  ASSERT_CU(Launch("append", {&log_, &value}, stream_));
  ASSERT_CU(cuStreamDestroy_v2(stream_));
  // Is anything forbidden still?
  Answer("allocating_after_a_capturing_stream_was_destroyed", NameOf(Allocate()));
  ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  EXPECT_TRUE(Survives(kGlobal, [] {}));
}

/// `other` joins the capture that begins in `stream`.
void JoinCapture(CUstream stream, CUstream other) {
  CUevent fork = nullptr;
  ASSERT_CU(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuStreamBeginCapture_v2(stream, kRelaxed));
  ASSERT_CU(cuEventRecord(fork, stream));
  ASSERT_CU(cuStreamWaitEvent(other, fork, 0));
}

TEST_F(CaptureMode, AStreamThatJoinedMayGoBeforeTheEnd) {
  JoinCapture(stream_, other_);
  ASSERT_CU(cuStreamDestroy_v2(other_));
  CUgraph graph = nullptr;
  Answer("a_capture_that_lost_a_stream_ends_with", NameOf(cuStreamEndCapture(stream_, &graph)));
  EXPECT_TRUE(Survives(kGlobal, [] {}));
}

TEST_F(CaptureMode, AStreamThatJoinedMayGoWithWork) {
  JoinCapture(stream_, other_);
  ASSERT_CU(Fill(log_, 0, 1, other_));
  ASSERT_CU(cuStreamDestroy_v2(other_));
  CUgraph graph = nullptr;
  Answer("a_capture_that_lost_a_stream_with_work_ends_with",
         NameOf(cuStreamEndCapture(stream_, &graph)));
}

TEST_F(CaptureMode, TheLegacyStreamIsUnusableWhileABlockingStreamCaptures) {
  CUstream blocking = nullptr;
  ASSERT_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  ASSERT_CU(cuStreamBeginCapture_v2(blocking, kRelaxed));
  CUstreamCaptureStatus status{};
  EXPECT_EQ(cuStreamIsCapturing(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  ASSERT_CU(cuStreamIsCapturing(blocking, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);  // asking does no harm
  EXPECT_EQ(Fill(log_, 0, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_CU(Fill(log_, 0, 1, nullptr));
  EXPECT_TRUE(Survives(kRelaxed, [&] { EXPECT_CU(Fill(log_, 0, 1, nullptr)); }));
}

TEST_F(CaptureMode, OnlyItsThreadEndsACapture) {
  for (const CUstreamCaptureMode mode : {kGlobal, kLocal, kRelaxed}) {
    CUgraph graph = nullptr;
    ASSERT_CU(cuStreamBeginCapture_v2(stream_, mode));
    CUresult result = CUDA_SUCCESS;
    Elsewhere(kGlobal, [&] { result = cuStreamEndCapture(stream_, &graph); });
    EXPECT_EQ(result, mode == kRelaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    EXPECT_EQ(graph != nullptr, mode == kRelaxed);
    // Another one that tries spoils it.
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_ILLEGAL_STATE);
  }
}

}  // namespace
}  // namespace sluice::contract
