// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <atomic>
#include <set>
#include <string>

#include "tests/contract/graph_fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

/// Building graphs: nodes, edges, queries, copies.
class Graph : public GraphTest {};

TEST_F(Graph, RunsItsNodesInTheOrderOfTheirEdges) {
  const CUgraph graph = NewGraph();
  // Made in the wrong order; the edges put it right.
  const CUgraphNode last = AddAppend(graph, {}, 3);
  const CUgraphNode middle = AddAppend(graph, {}, 2);
  const CUgraphNode first = AddAppend(graph, {}, 1);
  const CUgraphNode from[] = {first, middle};
  const CUgraphNode to[] = {middle, last};
  ASSERT_CU(cuGraphAddDependencies(graph, from, to, 2));
  RunOnce(graph);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);  // handles are looked up, on both
}

TEST_F(Graph, CopiesTheArgumentsOfAKernelWhenTheNodeIsMade) {
  const CUgraph graph = NewGraph();
  const CUdeviceptr memory = Alloc(4096);
  struct {
    CUdeviceptr target;
    uint32_t value;
    uint32_t pad;
    uint64_t count;
  } args{memory, 7, 0, 4};
  size_t bytes = sizeof args;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CUDA_KERNEL_NODE_PARAMS_v1 params{Kernel("fill"), 1, 1, 1, 1, 1, 1, 0, nullptr, extra};
  CUgraphNode node = nullptr;
  ASSERT_CU(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  args.value = 9;
  RunOnce(graph);
  EXPECT_EQ(Read32(memory + 12), 7u);
  CUDA_KERNEL_NODE_PARAMS_v1 back{};
  ASSERT_CU(cuGraphKernelNodeGetParams(node, &back));
  EXPECT_EQ(back.func, params.func);
  // They come back in one form or the other.
  if (back.kernelParams != nullptr) {
    EXPECT_EQ(*static_cast<uint32_t*>(back.kernelParams[1]), 7u);
  } else {
    EXPECT_NE(back.extra, nullptr);
  }
  AnswerIf("packed_arguments_come_back_one_by_one", back.kernelParams != nullptr);
}

TEST_F(Graph, TakesKernelsWithLargeArguments) {
  const CUgraph graph = NewGraph();
  CUdeviceptr memory = Alloc(4096);
  uint32_t values[64];
  for (uint32_t i = 0; i < 64; ++i) values[i] = i * 3;
  AddKernel(graph, {}, "big", {&memory, values});
  RunOnce(graph);
  EXPECT_EQ(Read32(memory + 63 * 4), 63u * 3u);
}

TEST_F(Graph, RefusesBadNodes) {
  const CUgraph graph = NewGraph();
  const CUgraph other = NewGraph();
  const CUgraphNode foreign = AddAppend(other, {}, 1);
  const CUgraphNode own = AddAppend(graph, {}, 1);
  CUgraphNode node = nullptr;
  EXPECT_EQ(cuGraphAddEmptyNode(&node, graph, &foreign, 1), CUDA_ERROR_INVALID_VALUE);
  const CUgraphNode twice[] = {own, own};
  EXPECT_EQ(cuGraphAddEmptyNode(&node, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddEmptyNode(&node, graph, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  CUDA_KERNEL_NODE_PARAMS_v2 params = KernelParams("nothing", nullptr);
  params.blockDimX = 1025;
  EXPECT_EQ(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  const CUgraphNode nowhere = own;
  EXPECT_EQ(cuGraphAddDependencies(graph, &own, &nowhere, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graph, ACycleIsRefusedAtInstantiation) {
  const CUgraph graph = NewGraph();
  const CUgraphNode before = AddAppend(graph, {}, 1);
  const CUgraphNode a = AddAppend(graph, {before}, 2);
  const CUgraphNode b = AddAppend(graph, {a}, 3);
  ASSERT_CU(cuGraphAddDependencies(graph, &b, &a, 1));
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  EXPECT_TRUE(params.hErrNode_out == a || params.hErrNode_out == b);
  CUgraphNode wrong = nullptr;
  char text[32];
  EXPECT_EQ(cuGraphInstantiate_v2(&exec, graph, &wrong, text, sizeof text),
            CUDA_ERROR_INVALID_VALUE);
  AnswerIf("the_older_instantiation_names_a_node_of_a_cycle", wrong != nullptr);
  ASSERT_CU(cuGraphRemoveDependencies(graph, &b, &a, 1));
  ASSERT_CU(cuGraphInstantiateWithParams(&exec, graph, &params));
  EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
}

TEST_F(Graph, TellsItsNodesAndEdges) {
  const CUgraph graph = NewGraph();
  const CUgraphNode a = AddAppend(graph, {}, 1);
  const CUgraphNode b = AddAppend(graph, {}, 2);
  const CUgraphNode c = AddAppend(graph, {a, b}, 3);
  size_t count = 0;
  ASSERT_CU(cuGraphGetNodes(graph, nullptr, &count));
  ASSERT_EQ(count, 3u);
  CUgraphNode nodes[4] = {nullptr, nullptr, nullptr, a};
  count = 4;
  ASSERT_CU(cuGraphGetNodes(graph, nodes, &count));
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(nodes[3], nullptr);  // what is too many is cleared
  const std::set<CUgraphNode> all(nodes, nodes + 3);
  EXPECT_EQ(all, (std::set<CUgraphNode>{a, b, c}));  // in no order that is promised
  count = 1;
  ASSERT_CU(cuGraphGetRootNodes(graph, nodes, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_TRUE(nodes[0] == a || nodes[0] == b);
  CUgraphNode from[2];
  CUgraphNode to[2];
  count = 2;
  ASSERT_CU(cuGraphGetEdges(graph, from, to, &count));
  ASSERT_EQ(count, 2u);
  EXPECT_EQ((std::set<CUgraphNode>{from[0], from[1]}), (std::set<CUgraphNode>{a, b}));
  EXPECT_EQ(to[0], c);
  EXPECT_EQ(to[1], c);
  count = 2;
  ASSERT_CU(cuGraphNodeGetDependentNodes(a, nodes, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(nodes[0], c);
  CUgraphNodeType type{};
  ASSERT_CU(cuGraphNodeGetType(c, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
  ASSERT_CU(cuGraphDestroyNode(a));
  count = 2;
  ASSERT_CU(cuGraphNodeGetDependencies(c, nodes, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(nodes[0], b);
}

TEST_F(Graph, NodesThatAreGoneAreRefused) {
  OnlySimulated("a real driver reads what a stale handle points to");
  const CUgraph graph = NewGraph();
  const CUgraphNode a = AddAppend(graph, {}, 1);
  ASSERT_CU(cuGraphDestroyNode(a));
  CUgraphNodeType type{};
  EXPECT_EQ(cuGraphNodeGetType(a, &type), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graph, KeepsTheDataOfEdges) {
  const CUgraph graph = NewGraph();
  const CUgraphNode a = AddAppend(graph, {}, 1);
  const CUgraphNode b = AddAppend(graph, {}, 2);
  CUgraphEdgeData data{};
  data.from_port = 1;
  data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  ASSERT_CU(cuGraphAddDependencies_v2(graph, &a, &b, &data, 1));
  CUgraphNode from = nullptr;
  size_t count = 1;
  EXPECT_EQ(cuGraphNodeGetDependencies(b, &from, &count), CUDA_ERROR_LOSSY_QUERY);
  CUgraphEdgeData back{};
  ASSERT_CU(cuGraphNodeGetDependencies_v2(b, &from, &back, &count));
  EXPECT_EQ(from, a);
  EXPECT_EQ(back.type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  RunOnce(graph);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2}));
  data.from_port = 0;
  Answer("removing_an_edge_by_other_data",
         NameOf(cuGraphRemoveDependencies_v2(graph, &a, &b, &data, 1)));
  count = 0;
  ASSERT_CU(cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count));
  Answer("edges_left", std::to_string(count));
}

TEST_F(Graph, CopiesBoxesAndHostMemory) {
  const CUdeviceptr a = Alloc(4096);
  const CUdeviceptr b = Alloc(4096);
  std::vector<uint32_t> source(64);
  std::vector<uint32_t> target(64);
  const CUgraph graph = NewGraph();
  CUDA_MEMCPY3D_v2 in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = source.data();
  in.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  in.dstDevice = a;
  in.WidthInBytes = 256;
  in.Height = in.Depth = 1;
  CUgraphNode first = nullptr;
  ASSERT_CU(cuGraphAddMemcpyNode(&first, graph, nullptr, 0, &in, context_));
  // Rows 1 and 2 of 4 words each, from the second word on, to a matrix with wider rows.
  CUDA_MEMCPY3D_v2 box{};
  box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = a;
  box.srcPitch = 16;
  box.srcXInBytes = 4;
  box.srcY = 1;
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.dstDevice = b;
  box.dstPitch = 32;
  box.WidthInBytes = 8;
  box.Height = 2;
  box.Depth = 1;
  CUgraphNode second = nullptr;
  ASSERT_CU(cuGraphAddMemcpyNode(&second, graph, &first, 1, &box, context_));
  CUDA_MEMCPY3D_v2 out{};
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  out.srcDevice = b;
  out.srcPitch = 32;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = target.data();
  out.dstPitch = 16;
  out.WidthInBytes = 8;
  out.Height = 2;
  out.Depth = 1;
  CUgraphNode third = nullptr;
  ASSERT_CU(cuGraphAddMemcpyNode(&third, graph, &second, 1, &out, context_));
  const CUgraphExec exec = Instantiate(graph);
  for (uint32_t round = 1; round < 3; ++round) {
    // Host memory is read when the node runs, not when it is made.
    for (uint32_t i = 0; i < 64; ++i) source[i] = i * round;
    LaunchAndWait(exec);
    EXPECT_EQ(target[0], 5 * round);
    EXPECT_EQ(target[1], 6 * round);
    EXPECT_EQ(target[2], 0u);
    EXPECT_EQ(target[4], 9 * round);
  }
  box.WidthInBytes = 0;
  EXPECT_EQ(cuGraphAddMemcpyNode(&third, graph, nullptr, 0, &box, context_),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graph, SetsAreas) {
  const CUdeviceptr memory = Alloc(4096);
  ASSERT_CU(cuMemsetD8_v2(memory, 0, 4096));
  const CUgraph graph = NewGraph();
  CUgraphNode node = nullptr;
  CUDA_MEMSET_NODE_PARAMS_v1 params{memory + 4, 16, 0xabcd, 2, 4, 3};
  ASSERT_CU(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &params, context_));
  RunOnce(graph);
  EXPECT_EQ(Read32(memory), 0u);
  EXPECT_EQ(Read32(memory + 4), 0xabcdabcdu);
  EXPECT_EQ(Read32(memory + 12), 0u);
  EXPECT_EQ(Read32(memory + 4 + 32), 0xabcdabcdu);
  EXPECT_EQ(Read32(memory + 4 + 48), 0u);
  params.elementSize = 3;
  EXPECT_EQ(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &params, context_),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graph, CallsHostFunctionsInTheirPlace) {
  const CUgraph graph = NewGraph();
  SharedWord word;
  const CUgraphNode a = AddAppend(graph, {}, 1);
  const CUgraphNode host = AddHost(
      graph, {a},
      [](void* p) { __atomic_fetch_add(static_cast<uint64_t*>(p), 1, __ATOMIC_RELEASE); },
      const_cast<uint64_t*>(word.host()));
  CUdeviceptr flag = word.device();
  AddKernel(graph, {host}, "wait_flag", {&flag});  // hangs unless the function has run
  const CUgraphExec exec = Instantiate(graph);
  LaunchAndWait(exec);
  LaunchAndWait(exec);
  EXPECT_EQ(word.Load(), 2u);
}

TEST_F(Graph, OperatesOnMemoryWords) {
  const CUgraph graph = NewGraph();
  SharedWord gate;
  SharedWord out;
  CUstreamBatchMemOpParams ops[3]{};
  ops[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  ops[0].waitValue.address = gate.device();
  ops[0].waitValue.value64 = 1;
  ops[1].operation = CU_STREAM_MEM_OP_BARRIER;
  ops[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  ops[2].writeValue.address = out.device() + 4;
  ops[2].writeValue.value = 5;
  const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 params{context_, 3, ops, 0};
  CUgraphNode node = nullptr;
  ASSERT_CU(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &params));
  const CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  gate.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out.Load(), uint64_t{5} << 32);
  // The value is the node's: every launch writes it again.
  out.Store(0);
  LaunchAndWait(exec);
  EXPECT_EQ(out.Load(), uint64_t{5} << 32);
}

TEST_F(Graph, EmbedsCopiesOfGraphs) {
  const CUgraph child = NewGraph();
  const CUgraphNode a = AddAppend(child, {}, 2);
  AddAppend(child, {a}, 3);
  const CUgraph graph = NewGraph();
  const CUgraphNode first = AddAppend(graph, {}, 1);
  CUgraphNode node = nullptr;
  ASSERT_CU(cuGraphAddChildGraphNode(&node, graph, &first, 1, child));
  AddAppend(graph, {node}, 4);
  AddAppend(child, {}, 99);  // not in the copy
  CUgraph embedded = nullptr;
  ASSERT_CU(cuGraphChildGraphNodeGetGraph(node, &embedded));
  EXPECT_NE(embedded, child);
  size_t count = 0;
  ASSERT_CU(cuGraphGetNodes(embedded, nullptr, &count));
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(cuGraphDestroy(embedded), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuGraphDestroy(child));
  RunOnce(graph);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2, 3, 4}));
}

TEST_F(Graph, ClonesKnowWhereTheirNodesComeFrom) {
  const CUgraph graph = NewGraph();
  const CUgraphNode a = AddAppend(graph, {}, 1);
  const CUgraphNode b = AddAppend(graph, {a}, 2);
  CUgraph clone = nullptr;
  ASSERT_CU(cuGraphClone(&clone, graph));
  CUgraphNode copy = nullptr;
  ASSERT_CU(cuGraphNodeFindInClone(&copy, b, clone));
  EXPECT_NE(copy, b);
  const CUgraphNode late = AddAppend(graph, {b}, 3);
  EXPECT_EQ(cuGraphNodeFindInClone(&copy, late, clone), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuGraphDestroy(graph));
  RunOnce(clone);
  EXPECT_EQ(ReadLog(), (std::vector<uint32_t>{1, 2}));
}

TEST_F(Graph, MakesNodesOfAnyTypeInOneCall) {
  const CUgraph graph = NewGraph();
  uint32_t value = 5;
  void* args[] = {&log_, &value};
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel = KernelParams("append", args);
  CUgraphNode kernel = nullptr;
  ASSERT_CU(cuGraphAddNode(&kernel, graph, nullptr, 0, &params));
  std::atomic<int> calls{0};
  params = {};
  params.type = CU_GRAPH_NODE_TYPE_HOST;
  params.host = {[](void* p) { static_cast<std::atomic<int>*>(p)->fetch_add(1); }, &calls};
  CUgraphNode host = nullptr;
  ASSERT_CU(cuGraphAddNode_v2(&host, graph, &kernel, nullptr, 1, &params));
  params = {};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  CUgraphNode none = nullptr;
  EXPECT_NE(cuGraphAddNode(&none, graph, nullptr, 0, &params), CUDA_SUCCESS) << "on nothing";
  RunOnce(graph);
  EXPECT_EQ(calls.load(), 1);
  EXPECT_EQ(ReadLog(), std::vector<uint32_t>{5});
}

}  // namespace
}  // namespace sluice::contract
