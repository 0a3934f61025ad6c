// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <dlfcn.h>

#include <thread>

#include "tests/hooks/hook_fixture.h"

// What is captured has not happened: the daemon sees nothing of it, and the graph holds only what
// the program put there.

namespace sluice::hooks {
namespace {

class CaptureHook : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
    ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  /// Many launches, captured between `begin` and `end`.
  void ExpectUntouched(const std::function<CUresult()>& begin,
                       const std::function<CUresult(CUgraph*)>& end) {
    constexpr size_t kLaunches = 40;  // marks are due after fewer
    const CUstream stream = stream_;
    ASSERT_CU(Launch("nothing", {}, stream));  // known: of one that captures nobody tells the id
    ASSERT_CU(begin());
    const CUfunction function = Kernel("nothing");
    for (size_t i = 0; i < kLaunches; ++i) {
      ASSERT_CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    }
    CUgraph graph = nullptr;
    ASSERT_CU(end(&graph));
    size_t nodes = 0;
    ASSERT_CU(cuGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, kLaunches);
    Begin();
    ASSERT_CU(Launch("nothing", {}, stream));
    ExpectSoon([this] { return Says("launches"); }, 2);
  }
  void ExpectOthersMayFree();
  CUstream stream_ = nullptr;
};

/// What one thread gives back does not disturb what another one captures.
void CaptureHook::ExpectOthersMayFree() {
  const CUdeviceptr at = Alloc(kMiB);
  ASSERT_CU(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CU(Launch("nothing", {}, stream_));
  std::thread([&] {
    EXPECT_CU(cuCtxSetCurrent(context_));
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_CU(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_CU(cuMemFree_v2(at));
    // More than there is: everything free is looked for first.
    CUdeviceptr much = 0;
    EXPECT_EQ(cuMemAllocAsync(&much, kMoreThanLimit, CU_STREAM_PER_THREAD),
              CUDA_ERROR_OUT_OF_MEMORY);
  }).join();
  CUgraph graph = nullptr;
  ASSERT_CU(cuStreamEndCapture(stream_, &graph));
  size_t nodes = 0;
  ASSERT_CU(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 1u);
  // It is free again once the context can be synchronised.
  const CUdeviceptr again = Alloc(kLimit - kMiB);
  EXPECT_NE(again, 0u);
}

TEST_F(CaptureHook, cuStreamBeginCapture) {
  ExpectUntouched([this] { return cuStreamBeginCapture(stream_); },
                  [this](CUgraph* graph) { return cuStreamEndCapture(stream_, graph); });
}

TEST_F(CaptureHook, cuStreamBeginCapture_ptsz) {
  ExpectUntouched([this] { return cuStreamBeginCapture_ptsz(stream_); },
                  [this](CUgraph* graph) { return cuStreamEndCapture(stream_, graph); });
}

TEST_F(CaptureHook, cuStreamBeginCapture_v2) {
  ExpectUntouched(
      [this] { return cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL); },
      [this](CUgraph* graph) { return cuStreamEndCapture(stream_, graph); });
  ExpectOthersMayFree();
}

TEST_F(CaptureHook, cuStreamBeginCapture_v2_ptsz) {
  ExpectUntouched(
      [this] { return cuStreamBeginCapture_v2_ptsz(stream_, CU_STREAM_CAPTURE_MODE_RELAXED); },
      [this](CUgraph* graph) { return cuStreamEndCapture(stream_, graph); });
}

TEST_F(CaptureHook, cuStreamBeginCaptureToGraph) {
  CUgraph into = nullptr;
  ASSERT_CU(cuGraphCreate(&into, 0));
  ExpectUntouched(
      [&] {
        return cuStreamBeginCaptureToGraph(stream_, into, nullptr, nullptr, 0,
                                           CU_STREAM_CAPTURE_MODE_GLOBAL);
      },
      [this](CUgraph* graph) { return cuStreamEndCapture(stream_, graph); });
}

TEST_F(CaptureHook, cuStreamBeginCaptureToGraph_ptsz) {
  CUgraph into = nullptr;
  ASSERT_CU(cuGraphCreate(&into, 0));
  ExpectUntouched(
      [&] {
        return cuStreamBeginCaptureToGraph_ptsz(stream_, into, nullptr, nullptr, 0,
                                                CU_STREAM_CAPTURE_MODE_GLOBAL);
      },
      [this](CUgraph* graph) { return cuStreamEndCapture(stream_, graph); });
}

/// Without it every later call would ask the driver about its stream, which shows only as time.
void ExpectNoneOpen(const std::function<CUresult(CUstream, CUgraph*)>& end, CUstream stream) {
  auto* open = reinterpret_cast<unsigned (*)()>(dlsym(RTLD_DEFAULT, "sluice_test_open_captures"));
  ASSERT_NE(open, nullptr);
  ASSERT_CU(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(open(), 1u);
  CUgraph graph = nullptr;
  ASSERT_CU(end(stream, &graph));
  EXPECT_EQ(open(), 0u);
}

TEST_F(CaptureHook, cuStreamEndCapture) { ExpectNoneOpen(cuStreamEndCapture, stream_); }
TEST_F(CaptureHook, cuStreamEndCapture_ptsz) { ExpectNoneOpen(cuStreamEndCapture_ptsz, stream_); }

/// Another thread marks a stream while this one lets it join a capture.
class JoinHook : public CaptureHook {
 protected:
  void SetUp() override {
    CaptureHook::SetUp();
    ASSERT_CU(cuStreamCreate(&joins_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
  }
  void TearDown() override {
    EXPECT_EQ(contract::Inject(""), 0);
    CaptureHook::TearDown();
  }
  using Wait = CUresult (*)(CUstream, CUevent, unsigned);
  void ExpectNoMarkInTheGraph(Wait wait) {
    constexpr size_t kMostOfIt = 16 * kMiB;
    static_assert(2 * kMostOfIt > kLimit);
    CUdeviceptr at = 0;
    ASSERT_CU(cuMemAllocAsync(&at, kMostOfIt, joins_));
    SharedWord word;
    Block(joins_, word);
    ASSERT_CU(cuMemFreeAsync(at, joins_));
    ASSERT_CU(Launch("nothing", {}, joins_));
    // Long enough to be seen from here.
    ASSERT_EQ(contract::Inject("cuStreamWriteValue64_v2=1s"), 0);
    ASSERT_CU(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASSERT_CU(cuEventRecord(event_, stream_));
    std::thread other([&] {
      EXPECT_CU(cuCtxSetCurrent(context_));
      // What the stream has freed is needed, and another one has it behind a mark only.
      CUdeviceptr again = 0;
      EXPECT_CU(cuMemAllocAsync(&again, kMostOfIt, CU_STREAM_PER_THREAD));
      EXPECT_CU(cuMemFreeAsync(again, CU_STREAM_PER_THREAD));
    });
    ExpectSoon([] { return contract::Stat("hits"); }, 1);
    EXPECT_CU(wait(joins_, event_, 0));
    word.Store(1);
    other.join();
    EXPECT_CU(cuEventRecord(event_, joins_));
    EXPECT_CU(cuStreamWaitEvent(stream_, event_, 0));
    CUgraph graph = nullptr;
    ASSERT_CU(cuStreamEndCapture(stream_, &graph));
    size_t nodes = 0;
    ASSERT_CU(cuGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, 0u);
  }
  CUstream joins_ = nullptr;
  CUevent event_ = nullptr;
};

TEST_F(JoinHook, cuStreamWaitEvent) { ExpectNoMarkInTheGraph(cuStreamWaitEvent); }
TEST_F(JoinHook, cuStreamWaitEvent_ptsz) { ExpectNoMarkInTheGraph(cuStreamWaitEvent_ptsz); }

}  // namespace
}  // namespace sluice::hooks
