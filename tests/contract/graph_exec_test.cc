// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <unistd.h>

#include <atomic>

#include "tests/contract/graph_fixture.h"

namespace sluice::contract {
namespace {

/// Executable graphs: launches, changes of parameters, updates.
class GraphExec : public GraphTest {
 protected:
  CUgraph Chain(std::vector<uint32_t> values, Nodes* nodes = nullptr) {
    const CUgraph graph = NewGraph();
    Nodes after;
    for (const uint32_t value : values) {
      const CUgraphNode node = AddAppend(graph, after, value);
      if (nodes != nullptr) nodes->push_back(node);
      after = {node};
    }
    return graph;
  }
};

TEST_F(GraphExec, LivesOnWithoutItsGraph) {
  const CUgraph graph = Chain({1, 2});
  const CUgraphExec exec = Instantiate(graph);
  AddAppend(graph, {}, 3);
  ASSERT_CU(cuGraphDestroy(graph));
  LaunchAndWait(exec);
  LaunchAndWait(exec);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2, 1, 2}));
  ASSERT_CU(cuGraphExecDestroy(exec));
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE);  // it is looked up, on both
}

TEST_F(GraphExec, KeepsItsPlaceInTheStream) {
  SharedWord word;
  const CUgraphExec exec = Instantiate(Chain({2, 3}));
  uint32_t one = 1;
  uint32_t four = 4;
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(Launch("append", {&log_, &one}, stream_));
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  ASSERT_CU(Launch("append", {&log_, &four}, stream_));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  word.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2, 3, 4}));
}

TEST_F(GraphExec, MayBeDestroyedWhileItRuns) {
  SharedWord word;
  std::atomic<int> calls{0};
  const CUgraph graph = Chain({1, 2});
  AddHost(
      graph, {}, [](void* p) { static_cast<std::atomic<int>*>(p)->fetch_add(1); }, &calls);
  const CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  ASSERT_CU(cuGraphExecDestroy(exec));
  ASSERT_CU(cuGraphDestroy(graph));
  word.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(calls.load(), 1);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2}));
}

// The machine file of these tests allows 64 outstanding operations.
TEST_F(GraphExec, ALaunchIsOneOperation) {
  SharedWord word;
  const CUgraphExec exec = Instantiate(Chain(std::vector<uint32_t>(200, 1)));
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  for (int i = 0; i < 20; ++i) ASSERT_CU(cuGraphLaunch(exec, stream_));  // none blocks
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  word.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(Read32(log_), 4000u);
}

TEST_F(GraphExec, EveryKernelCountsAndTakesItsDeclaredTime) {
  const CUgraph graph = NewGraph();
  CUevent start = nullptr;
  CUevent end = nullptr;
  ASSERT_CU(cuEventCreate(&start, 0));
  ASSERT_CU(cuEventCreate(&end, 0));
  const CUgraphNode a = AddKernel(graph, {}, "slow", {});  // 20 ms declared
  AddKernel(graph, {a}, "slow", {});
  const CUgraphExec exec = Instantiate(graph);
  const uint64_t kernels = Stat("kernels");
  const uint64_t busy = Stat("busy_ns");
  ASSERT_CU(cuEventRecord(start, stream_));
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  ASSERT_CU(cuEventRecord(end, stream_));
  ASSERT_CU(cuEventSynchronize(end));
  float ms = 0;
  ASSERT_CU(cuEventElapsedTime(&ms, start, end));
  EXPECT_GE(ms, 40.0f);
  EXPECT_EQ(Stat("kernels"), kernels + 2);
  EXPECT_EQ(Stat("busy_ns"), busy + 40'000'000);
}

TEST_F(GraphExec, LaunchesOfOneGraphDoNotOverlap) {
  SharedWord gate;
  const CUgraph graph = NewGraph();
  CUstreamBatchMemOpParams op{};
  op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  op.waitValue.address = gate.device();
  op.waitValue.value64 = 1;
  const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 params{context_, 1, &op, 0};
  CUgraphNode wait = nullptr;
  const CUgraphNode first = AddAppend(graph, {}, 1);
  ASSERT_CU(cuGraphAddBatchMemOpNode(&wait, graph, &first, 1, &params));
  AddAppend(graph, {wait}, 2);
  const CUgraphExec exec = Instantiate(graph);
  CUstream other = nullptr;
  ASSERT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  ASSERT_CU(cuGraphLaunch(exec, other));
  // Time for the second one to begin, if it may.
  usleep(50'000);
  gate.Store(1);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2, 1, 2}));
}

TEST_F(GraphExec, ABranchThatWaitsDoesNotHoldUpTheOther) {
  SharedWord gate;
  const CUgraph graph = NewGraph();
  CUstreamBatchMemOpParams op{};
  op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  op.waitValue.address = gate.device();
  op.waitValue.value64 = 7;
  const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 waiting{context_, 1, &op, 0};
  CUgraphNode wait = nullptr;
  ASSERT_CU(cuGraphAddBatchMemOpNode(&wait, graph, nullptr, 0, &waiting));
  AddAppend(graph, {wait}, 2);
  const CUgraphNode free_branch = AddAppend(graph, {}, 1);
  op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  CUgraphNode write = nullptr;
  ASSERT_CU(cuGraphAddBatchMemOpNode(&write, graph, &free_branch, 1, &waiting));
  RunOnce(graph);  // the second branch opens the gate of the first
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2}));
}

TEST_F(GraphExec, NewParametersMeanFutureLaunches) {
  SharedWord word;
  Nodes nodes;
  const CUgraph graph = Chain({1, 2}, &nodes);
  const CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  uint32_t value = 9;
  void* args[] = {&log_, &value};
  CUDA_KERNEL_NODE_PARAMS_v2 params = KernelParams("append", args);
  ASSERT_CU(cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], &params));
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  word.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2, 1, 9}));
  // The graph itself stays as it was; and changing it does not change what was made of it.
  value = 5;
  ASSERT_CU(cuGraphKernelNodeSetParams_v2(nodes[0], &params));
  ClearLog();
  LaunchAndWait(exec);
  RunOnce(graph);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 9, 5, 2}));
}

TEST_F(GraphExec, ReachesIntoEmbeddedGraphs) {
  const CUgraph child = Chain({1});
  const CUgraph graph = NewGraph();
  CUgraphNode node = nullptr;
  ASSERT_CU(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  CUgraph embedded = nullptr;
  ASSERT_CU(cuGraphChildGraphNodeGetGraph(node, &embedded));
  CUgraphNode inner = nullptr;
  size_t count = 1;
  ASSERT_CU(cuGraphGetNodes(embedded, &inner, &count));
  const CUgraphExec exec = Instantiate(graph);
  uint32_t value = 6;
  void* args[] = {&log_, &value};
  const CUDA_KERNEL_NODE_PARAMS_v2 params = KernelParams("append", args);
  ASSERT_CU(cuGraphExecKernelNodeSetParams_v2(exec, inner, &params));
  LaunchAndWait(exec);
  ASSERT_CU(cuGraphExecChildGraphNodeSetParams(exec, node, Chain({7})));
  LaunchAndWait(exec);
  EXPECT_EQ(cuGraphExecChildGraphNodeSetParams(exec, node, Chain({7, 8})),
            CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{6, 7}));
}

TEST_F(GraphExec, NodesCanBeSwitchedOff) {
  Nodes nodes;
  const CUgraph graph = Chain({1, 2, 3}, &nodes);
  const CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuGraphNodeSetEnabled(exec, nodes[1], 0));
  unsigned enabled = 1;
  ASSERT_CU(cuGraphNodeGetEnabled(exec, nodes[1], &enabled));
  EXPECT_EQ(enabled, 0u);
  LaunchAndWait(exec);
  ASSERT_CU(cuGraphNodeSetEnabled(exec, nodes[1], 1));
  LaunchAndWait(exec);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 3, 1, 2, 3}));
}

TEST_F(GraphExec, IsUpdatedFromAGraphOfTheSameShape) {
  const CUgraphExec exec = Instantiate(Chain({1, 2}));
  CUgraphExecUpdateResultInfo info{};
  ASSERT_CU(cuGraphExecUpdate_v2(exec, Chain({3, 4}), &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  LaunchAndWait(exec);
  EXPECT_EQ(cuGraphExecUpdate_v2(exec, Chain({3, 4, 5}), &info),
            CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  const CUgraph other = NewGraph();
  const CUgraphNode a = AddAppend(other, {}, 8);
  CUgraphNode empty = nullptr;
  ASSERT_CU(cuGraphAddEmptyNode(&empty, other, &a, 1));
  CUgraphNode wrong = nullptr;
  CUgraphExecUpdateResult result{};
  EXPECT_EQ(cuGraphExecUpdate(exec, other, &wrong, &result), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  EXPECT_EQ(wrong, empty);
  LaunchAndWait(exec);  // refused updates change nothing
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{3, 4, 3, 4}));
}

TEST_F(GraphExec, RecordsAndWaitsForEvents) {
  SharedWord word;
  CUevent gate = nullptr;
  CUevent inside = nullptr;
  ASSERT_CU(cuEventCreate(&gate, CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuEventCreate(&inside, 0));
  CUstream other = nullptr;
  ASSERT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  const CUgraph graph = NewGraph();
  CUgraphNode wait = nullptr;
  ASSERT_CU(cuGraphAddEventWaitNode(&wait, graph, nullptr, 0, gate));
  const CUgraphNode kernel = AddAppend(graph, {wait}, 1);
  CUgraphNode record = nullptr;
  ASSERT_CU(cuGraphAddEventRecordNode(&record, graph, &kernel, 1, inside));
  const CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuStreamWaitValue64_v2(other, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuEventRecord(gate, other));
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(cuEventQuery(inside), CUDA_ERROR_NOT_READY);
  word.Store(1);
  ASSERT_CU(cuEventSynchronize(inside));
  EXPECT_EQ(Read32(log_ + 4), 1u);
}

TEST_F(GraphExec, AnEmptyGraphIsOverAtOnce) {
  const CUgraphExec exec = Instantiate(NewGraph());
  LaunchAndWait(exec);
  ASSERT_CU(cuGraphUpload(exec, stream_));
  cuuint64_t flags = 9;
  ASSERT_CU(cuGraphExecGetFlags(exec, &flags));
  EXPECT_EQ(flags, 0u);
}

TEST_F(GraphExec, AStrayPointerInAGraphFailsTheContext) {
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  CUmodule module = nullptr;
  ASSERT_CU(cuModuleLoadData(&module, KernelImage().c_str()));
  CUfunction fill = nullptr;
  ASSERT_CU(cuModuleGetFunction(&fill, module, "fill"));
  CUdeviceptr nowhere = 0x400000000000 + (uint64_t{1} << 40);
  uint32_t value = 1;
  uint64_t count = 1;
  void* args[] = {&nowhere, &value, &count};
  const CUDA_KERNEL_NODE_PARAMS_v1 params{fill, 1, 1, 1, 1, 1, 1, 0, args, nullptr};
  const CUgraph graph = NewGraph();
  CUgraphNode node = nullptr;
  ASSERT_CU(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  const CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuGraphLaunch(exec, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_CU(cuCtxDestroy_v2(other));
}

}  // namespace
}  // namespace sluice::contract
