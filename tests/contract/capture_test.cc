// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <atomic>
#include <utility>

#include "tests/contract/answers.h"
#include "tests/contract/graph_fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

/// What becomes of operations in a capturing stream.
class Capture : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    ASSERT_CU(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
  }
  void TearDown() override {
    // A test that failed half-way must not spoil the next one.
    CUgraph graph = nullptr;
    static_cast<void>(cuStreamEndCapture(stream_, &graph));
    GraphTest::TearDown();
  }
  void Begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    ASSERT_CU(cuStreamBeginCapture_v2(stream_, mode));
  }
  CUgraph End() {
    CUgraph graph = nullptr;
    EXPECT_CU(cuStreamEndCapture(stream_, &graph));
    return graph;
  }
  CUresult Append(uint32_t value, CUstream stream) {
    return Launch("append", {&log_, &value}, stream);
  }
  CUstreamCaptureStatus Status(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_CU(cuStreamIsCapturing(stream, &status));
    return status;
  }
  static size_t NodeCount(CUgraph graph) {
    size_t count = 0;
    EXPECT_CU(cuGraphGetNodes(graph, nullptr, &count));
    return count;
  }
  CUstream other_ = nullptr;
  CUevent event_ = nullptr;
};

TEST_F(Capture, RunsNothingUntilTheGraphIsLaunched) {
  std::atomic<int> calls{0};
  Begin();
  EXPECT_EQ(Status(stream_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_CU(Append(1, stream_));
  ASSERT_CU(cuLaunchHostFunc(
      stream_, [](void* p) { static_cast<std::atomic<int>*>(p)->fetch_add(1); }, &calls));
  ASSERT_CU(Append(2, stream_));
  const CUgraph graph = End();
  EXPECT_EQ(Status(stream_), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(NodeCount(graph), 3u);
  EXPECT_TRUE(ReadLog().empty());
  EXPECT_EQ(calls.load(), 0);
  const CUgraphExec exec = Instantiate(graph);
  LaunchAndWait(exec);
  LaunchAndWait(exec);
  EXPECT_EQ(calls.load(), 2);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2, 1, 2}));
}

TEST_F(Capture, KeepsTheArgumentsOfTheTimeOfTheCall) {
  uint32_t value = 5;
  Begin();
  ASSERT_CU(Launch("append", {&log_, &value}, stream_));
  value = 6;
  RunOnce(End());
  EXPECT_EQ(ReadLog(), std::vector<uint32_t>{5});
}

TEST_F(Capture, CopiesAndSettingsBecomeNodes) {
  const CUdeviceptr a = Alloc(4096);
  const CUdeviceptr b = Alloc(4096);
  std::vector<uint32_t> in(16, 1);
  std::vector<uint32_t> out(16);
  Begin();
  ASSERT_CU(cuMemcpyHtoDAsync_v2(a, in.data(), 64, stream_));
  ASSERT_CU(cuMemsetD32Async(a + 4, 9, 1, stream_));
  ASSERT_CU(cuMemcpyDtoDAsync_v2(b, a, 64, stream_));
  ASSERT_CU(cuMemcpyDtoHAsync_v2(out.data(), b, 64, stream_));
  const CUgraph graph = End();
  EXPECT_EQ(out[0], 0u);  // not even a copy to pageable memory was carried out
  const CUgraphExec exec = Instantiate(graph);
  in[0] = 5;
  LaunchAndWait(exec);
  EXPECT_EQ(out[0], 5u);
  EXPECT_EQ(out[1], 9u);
  EXPECT_EQ(out[2], 1u);
}

TEST_F(Capture, AMemoryWordIsWrittenAtEachLaunchWithTheSameValue) {
  SharedWord word;
  Begin();
  ASSERT_CU(cuStreamWriteValue64_v2(stream_, word.device(), 7, 0));
  const CUgraph graph = End();
  EXPECT_EQ(word.Load(), 0u);
  CUgraphNode node = nullptr;
  size_t count = 1;
  ASSERT_CU(cuGraphGetNodes(graph, &node, &count));
  CUgraphNodeType type{};
  ASSERT_CU(cuGraphNodeGetType(node, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  const CUgraphExec exec = Instantiate(graph);
  for (int i = 0; i < 2; ++i) {
    word.Store(100);
    LaunchAndWait(exec);
    EXPECT_EQ(word.Load(), 7u);  // a mark that was captured would go backwards
  }
}

TEST_F(Capture, AStreamThatCapturesTellsNoId) {
  unsigned long long id = 0;  // NOLINT(google-runtime-int): the driver's type
  Begin();
  const CUresult told = cuStreamGetId(stream_, &id);
  const CUstreamCaptureStatus status = Status(stream_);
  AnswerIf("stream_id_in_capture", told == CUDA_SUCCESS);
  AnswerIf("asking_for_it_breaks_the_capture", status != CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  static_cast<void>(cuStreamEndCapture(stream_, &graph));
  if (graph != nullptr) {
    ASSERT_CU(cuGraphDestroy(graph));
  }
  ASSERT_CU(cuStreamGetId(stream_, &id));
}

// A lender that asks for the default stream's id may do so while another thread captures.
TEST_F(Capture, TheLegacyStreamTellsItsIdBesideABlockingStreamThatCaptures) {
  unsigned long long id = 0;  // NOLINT(google-runtime-int): the driver's type
  CUstream blocking = nullptr;
  ASSERT_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  ASSERT_CU(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  Answer("legacy_stream_id_beside_a_capture", NameOf(cuStreamGetId(nullptr, &id)));
  AnswerIf("asking_for_the_legacy_id_breaks_the_capture",
           Status(blocking) != CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  static_cast<void>(cuStreamEndCapture(blocking, &graph));
  EXPECT_CU(cuStreamGetId(nullptr, &id));
}

TEST_F(Capture, EventsForkAndJoinStreams) {
  CUevent back = nullptr;
  ASSERT_CU(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
  Begin();
  ASSERT_CU(Append(1, stream_));
  ASSERT_CU(cuEventRecord(event_, stream_));
  ASSERT_CU(cuStreamWaitEvent(other_, event_, 0));
  EXPECT_EQ(Status(other_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_CU(Append(2, other_));
  ASSERT_CU(cuEventRecord(back, other_));
  ASSERT_CU(cuStreamWaitEvent(stream_, back, 0));
  ASSERT_CU(Append(3, stream_));
  const CUgraph graph = End();
  EXPECT_EQ(Status(other_), CU_STREAM_CAPTURE_STATUS_NONE);
  CUgraphNode from[3];
  CUgraphNode to[3];
  size_t count = 3;
  ASSERT_CU(cuGraphGetEdges(graph, from, to, &count));
  EXPECT_EQ(count, 3u);  // 1 -> 2, 1 -> 3, 2 -> 3
  RunOnce(graph);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2, 3}));
}

TEST_F(Capture, WorkThatIsNotJoinedEndsInAnError) {
  Begin();
  ASSERT_CU(Append(1, stream_));
  ASSERT_CU(cuEventRecord(event_, stream_));
  ASSERT_CU(cuStreamWaitEvent(other_, event_, 0));
  ASSERT_CU(Append(2, other_));
  CUgraph graph = reinterpret_cast<CUgraph>(this);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(Status(other_), CU_STREAM_CAPTURE_STATUS_NONE);
  ASSERT_CU(Append(3, other_));  // an ordinary stream again
  EXPECT_EQ(ReadLog(), std::vector<uint32_t>{3});
}

TEST_F(Capture, AStreamThatOnlyForkedNeedsNoJoin) {
  Begin();
  ASSERT_CU(Append(1, stream_));
  ASSERT_CU(cuEventRecord(event_, stream_));
  ASSERT_CU(cuStreamWaitEvent(other_, event_, 0));
  EXPECT_EQ(NodeCount(End()), 1u);
}

TEST_F(Capture, EndsOnlyWhereItBegan) {
  Begin();
  ASSERT_CU(Append(1, stream_));
  ASSERT_CU(cuEventRecord(event_, stream_));
  ASSERT_CU(cuStreamWaitEvent(other_, event_, 0));
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(other_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(Capture, BeginsOnlyOnceAndNotOnTheLegacyStream) {
  EXPECT_EQ(cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  Begin();
  EXPECT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(NodeCount(End()), 0u);
  // The per-thread stream is one like others.
  CUgraph graph = nullptr;
  ASSERT_CU(cuStreamBeginCapture_v2_ptsz(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CU(cuStreamEndCapture_ptsz(nullptr, &graph));
}

TEST_F(Capture, TwoCapturesDoNotMerge) {
  CUgraph graph = nullptr;
  Begin();
  ASSERT_CU(cuStreamBeginCapture_v2(other_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CU(Append(1, other_));
  ASSERT_CU(cuEventRecord(event_, other_));
  EXPECT_EQ(cuStreamWaitEvent(stream_, event_, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_EQ(cuStreamEndCapture(other_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Capture, DependsOnNothingOutside) {
  ASSERT_CU(Append(1, other_));
  ASSERT_CU(cuEventRecord(event_, other_));
  Begin();
  EXPECT_EQ(cuStreamWaitEvent(stream_, event_, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(Status(stream_), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_EQ(Append(2, stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Capture, ExternalEventsBecomeNodes) {
  SharedWord gate;
  CUevent inside = nullptr;
  ASSERT_CU(cuEventCreate(&inside, CU_EVENT_DISABLE_TIMING));
  Begin();
  ASSERT_CU(cuStreamWaitEvent(stream_, event_, CU_EVENT_WAIT_EXTERNAL));
  ASSERT_CU(Append(1, stream_));
  ASSERT_CU(cuEventRecordWithFlags(inside, stream_, CU_EVENT_RECORD_EXTERNAL));
  const CUgraph graph = End();
  EXPECT_EQ(NodeCount(graph), 3u);
  const CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuStreamWaitValue64_v2(other_, gate.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuEventRecord(event_, other_));
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(cuEventQuery(inside), CUDA_ERROR_NOT_READY);
  gate.Store(1);
  ASSERT_CU(cuEventSynchronize(inside));
  EXPECT_EQ(ReadLog(), std::vector<uint32_t>{1});
  // Outside a capture these flags mean nothing.
  EXPECT_EQ(cuEventRecordWithFlags(inside, stream_, CU_EVENT_RECORD_EXTERNAL),
            CUDA_ERROR_ILLEGAL_STATE);
  Answer("external_wait_outside_a_capture",
         NameOf(cuStreamWaitEvent(stream_, inside, CU_EVENT_WAIT_EXTERNAL)));
}

TEST_F(Capture, ACapturedEventCannotBeAsked) {
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  ASSERT_CU(Append(1, stream_));
  ASSERT_CU(cuEventRecord(event_, stream_));
  EXPECT_EQ(cuEventQuery(event_), CUDA_ERROR_CAPTURED_EVENT);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // It is over, and what the event stood for with it.
  EXPECT_EQ(cuEventSynchronize(event_), CUDA_ERROR_INVALID_VALUE);
  Answer("wait_for_an_event_of_a_capture_that_is_over",
         NameOf(cuStreamWaitEvent(other_, event_, 0)));
  ASSERT_CU(cuEventRecord(event_, stream_));  // an ordinary event again
  EXPECT_CU(cuEventSynchronize(event_));
}

// Those who want a graph in another one add it as a node.
TEST_F(Capture, GraphsAreNotLaunchedIntoIt) {
  const CUgraph inner = NewGraph();
  AddAppend(inner, {}, 2);
  const CUgraphExec exec = Instantiate(inner);
  LaunchAndWait(exec);
  for (const auto& [mode, name] : {std::pair(CU_STREAM_CAPTURE_MODE_GLOBAL, "global"),
                                   {CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed"}}) {
    Begin(mode);
    ASSERT_CU(Append(1, stream_));
    Answer(std::string(name) + ".launch_into_a_capture", NameOf(cuGraphLaunch(exec, stream_)));
    CUgraph graph = nullptr;
    Answer(std::string(name) + ".the_capture_then_ends_with",
           NameOf(cuStreamEndCapture(stream_, &graph)));
  }
  EXPECT_EQ(ReadLog(), std::vector<uint32_t>{2});
  EXPECT_CU(cuGraphExecDestroy(exec));
}

// What makes and ends executable graphs may allocate: does a capture forbid it?
TEST_F(Capture, WhatBecomesOfExecutableGraphsMeanwhile) {
  const CUgraph graph = NewGraph();
  AddAppend(graph, {}, 1);
  for (const auto& [mode, name] : {std::pair(CU_STREAM_CAPTURE_MODE_GLOBAL, "global"),
                                   {CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed"}}) {
    CUgraphExec made = nullptr;
    CUgraph captured = nullptr;
    Begin(mode);
    Answer(std::string(name) + ".instantiating",
           NameOf(cuGraphInstantiateWithFlags(&made, graph, 0)));
    Answer(std::string(name) + ".instantiating_ends_with",
           NameOf(cuStreamEndCapture(stream_, &captured)));
    if (made == nullptr) made = Instantiate(graph);
    Begin(mode);
    const CUresult destroyed = cuGraphExecDestroy(made);
    Answer(std::string(name) + ".destroying", NameOf(destroyed));
    Answer(std::string(name) + ".destroying_ends_with",
           NameOf(cuStreamEndCapture(stream_, &captured)));
    if (destroyed != CUDA_SUCCESS) {
      EXPECT_CU(cuGraphExecDestroy(made));
    }
  }
}

TEST_F(Capture, GoesIntoAnExistingGraph) {
  const CUgraph graph = NewGraph();
  const CUgraphNode last = AddAppend(graph, {}, 2);
  const CUgraphNode first = AddAppend(graph, {}, 1);
  ASSERT_CU(cuGraphAddDependencies(graph, &first, &last, 1));
  ASSERT_CU(cuStreamBeginCaptureToGraph(stream_, graph, &last, nullptr, 1,
                                        CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CU(Append(3, stream_));
  EXPECT_EQ(End(), graph);
  RunOnce(graph);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2, 3}));
}

TEST_F(Capture, IntoAGraphKeepsItFromBeingUsed) {
  const CUgraph graph = NewGraph();
  const CUgraphNode first = AddAppend(graph, {}, 1);
  ASSERT_CU(cuStreamBeginCaptureToGraph(stream_, graph, &first, nullptr, 1,
                                        CU_STREAM_CAPTURE_MODE_RELAXED));
  ASSERT_CU(Append(2, stream_));
  CUgraphExec exec = nullptr;
  Answer("instantiating_a_graph_that_is_captured_into",
         NameOf(cuGraphInstantiateWithFlags(&exec, graph, 0)));
  CUgraph out = nullptr;
  Answer("that_capture_ends_with", NameOf(cuStreamEndCapture(stream_, &out)));
}

TEST_F(Capture, IntoAGraphKeepsItFromBeingDestroyed) {
  OnlySimulated("a real one may destroy it, and then writes to what is gone");
  const CUgraph graph = NewGraph();
  ASSERT_CU(cuStreamBeginCaptureToGraph(stream_, graph, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(End(), graph);
}

TEST_F(Capture, ShowsAndTakesItsDependencies) {
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* tips = nullptr;
  size_t count = 9;
  ASSERT_CU(cuStreamGetCaptureInfo_v2(stream_, &status, &id, &graph, &tips, &count));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream_, nullptr, 0, 0), CUDA_ERROR_ILLEGAL_STATE);
  Begin();
  ASSERT_CU(Append(1, stream_));
  ASSERT_CU(cuStreamGetCaptureInfo_v2(stream_, &status, &id, &graph, &tips, &count));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_NE(id, 0u);
  ASSERT_EQ(count, 1u);
  // Nodes may be added by hand and put in the way.
  CUgraphNode manual = AddAppend(graph, {tips[0]}, 2);
  ASSERT_CU(
      cuStreamUpdateCaptureDependencies(stream_, &manual, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  ASSERT_CU(Append(3, stream_));
  cuuint64_t same = 0;
  const CUgraphEdgeData* data = nullptr;
  ASSERT_CU(cuStreamGetCaptureInfo_v3(stream_, &status, &same, nullptr, &tips, &data, &count));
  EXPECT_EQ(same, id);
  RunOnce(End());
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2, 3}));
  Begin();
  ASSERT_CU(cuStreamGetCaptureInfo(stream_, &status, &same));
  EXPECT_NE(same, id);
  End();
}

TEST_F(Capture, EndsWithItsContext) {
  CUcontext gone = nullptr;
  CUstream stream = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&gone, 0, 0));
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CU(cuCtxDestroy_v2(gone));
  ASSERT_CU(cuCtxSetCurrent(context_));
  const CUdeviceptr memory = Alloc(4096);  // nothing forbids it any more
  ASSERT_CU(cuMemFree_v2(memory));
}

}  // namespace
}  // namespace sluice::contract
