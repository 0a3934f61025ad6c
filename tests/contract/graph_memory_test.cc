// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/contract/graph_fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;
/// What a real driver takes at once for the memory of graphs; the simulated one takes what is
/// asked.
const size_t kPiece = RealDriver() ? 32 * kMiB : kMiB;
size_t Pieces(size_t bytes) { return (bytes + kPiece - 1) / kPiece * kPiece; }

/// Allocation nodes and the graph memory of the device.
class GraphMemory : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    ASSERT_CU(cuDeviceGraphMemTrim(0));
    free_at_start_ = FreeBytes();
  }
  void TearDown() override {
    // Every test gives back all it took.
    EXPECT_CU(cuCtxSynchronize());
    EXPECT_CU(cuDeviceGraphMemTrim(0));
    EXPECT_EQ(Attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0u);
    EXPECT_GE(FreeBytes() + Slack(), free_at_start_);
    GraphTest::TearDown();
  }
  static cuuint64_t Attribute(CUgraphMem_attribute attribute) {
    cuuint64_t value = 0;
    EXPECT_CU(cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
  }
  static cuuint64_t Used() { return Attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT); }
  static cuuint64_t Reserved() { return Attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT); }
  static CUgraphNode AddAlloc(CUgraph graph, const Nodes& after, size_t bytes, CUdeviceptr* out) {
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 params{};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytesize = bytes;
    CUgraphNode node = nullptr;
    EXPECT_CU(cuGraphAddMemAllocNode(&node, graph, after.data(), after.size(), &params));
    *out = params.dptr;
    return node;
  }
  static CUgraphNode AddFree(CUgraph graph, const Nodes& after, CUdeviceptr address) {
    CUgraphNode node = nullptr;
    EXPECT_CU(cuGraphAddMemFreeNode(&node, graph, after.data(), after.size(), address));
    return node;
  }
  CUgraphNode AddFill(CUgraph graph, const Nodes& after, CUdeviceptr target, uint32_t value) {
    uint64_t count = 16;
    return AddKernel(graph, after, "fill", {&target, &value, &count});
  }
  size_t free_at_start_ = 0;
};

TEST_F(GraphMemory, ChargesAtTheFirstLaunchAndKeepsUntilTrimmed) {
  const CUgraph graph = NewGraph();
  CUdeviceptr block = 0;
  const CUgraphNode alloc = AddAlloc(graph, {}, 4 * kMiB, &block);
  const CUgraphNode fill = AddFill(graph, {alloc}, block, 7);
  AddFree(graph, {fill}, block);
  const CUgraphExec exec = Instantiate(graph);
  EXPECT_EQ(Reserved(), 0u);
  EXPECT_GE(FreeBytes() + Slack(), free_at_start_);  // addresses only
  LaunchAndWait(exec);
  EXPECT_LE(FreeBytes() + 4 * kMiB, free_at_start_ + Slack());
  EXPECT_EQ(Used(), Pieces(4 * kMiB));
  ASSERT_CU(cuDeviceGraphMemTrim(0));
  EXPECT_GE(FreeBytes() + Slack(), free_at_start_);
  LaunchAndWait(exec);  // and again, at the same address
  EXPECT_EQ(Reserved(), Pieces(4 * kMiB));
  ASSERT_CU(cuGraphExecDestroy(exec));
  AnswerIf("a_destroyed_graph_uses_memory_until_it_is_trimmed", Used() != 0);
  EXPECT_EQ(Reserved(), Pieces(4 * kMiB));  // kept for the next graph
  EXPECT_EQ(Attribute(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), Pieces(4 * kMiB));
  cuuint64_t value = 1;
  EXPECT_EQ(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value),
            CUDA_ERROR_INVALID_VALUE);
  value = 0;
  ASSERT_CU(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
  EXPECT_EQ(Attribute(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), Used());
  ASSERT_CU(cuGraphDestroy(graph));
}

TEST_F(GraphMemory, UploadTakesTheMemoryAheadOfTheLaunch) {
  const CUgraph graph = NewGraph();
  CUdeviceptr block = 0;
  const CUgraphNode alloc = AddAlloc(graph, {}, kMiB, &block);
  AddFree(graph, {alloc}, block);
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  params.hUploadStream = stream_;
  ASSERT_CU(cuGraphInstantiateWithParams(&exec, graph, &params));
  EXPECT_EQ(Used(), Pieces(kMiB));
  cuuint64_t flags = 9;
  ASSERT_CU(cuGraphExecGetFlags(exec, &flags));
  EXPECT_EQ(flags, 0u);
  ASSERT_CU(cuGraphExecDestroy(exec));
  ASSERT_CU(cuGraphDestroy(graph));
}

TEST_F(GraphMemory, WhatAGraphLeavesIsFreedOutside) {
  const CUgraph graph = NewGraph();
  CUdeviceptr block = 0;
  const CUgraphNode alloc = AddAlloc(graph, {}, kMiB, &block);
  AddFill(graph, {alloc}, block, 7);
  const CUgraphExec exec = Instantiate(graph);
  EXPECT_EQ(cuMemFreeAsync(block, stream_), CUDA_ERROR_INVALID_VALUE);  // not allocated yet
  LaunchAndWait(exec);
  EXPECT_EQ(Read32(block), 7u);
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE);  // it is still allocated
  ASSERT_CU(cuDeviceGraphMemTrim(0));
  EXPECT_EQ(Read32(block), 7u);
  ASSERT_CU(cuMemFreeAsync(block, stream_));
  EXPECT_EQ(cuMemFreeAsync(block, stream_), CUDA_ERROR_INVALID_VALUE);
  LaunchAndWait(exec);
  // It outlives its graph.
  ASSERT_CU(cuGraphExecDestroy(exec));
  ASSERT_CU(cuGraphDestroy(graph));
  EXPECT_EQ(Read32(block), 7u);
  EXPECT_EQ(Used(), Pieces(kMiB));
  ASSERT_CU(cuMemFree_v2(block));
  ASSERT_CU(cuDeviceGraphMemTrim(0));
  EXPECT_EQ(Used(), 0u);
}

TEST_F(GraphMemory, AutoFreeMakesRoomForTheNextLaunch) {
  const CUgraph graph = NewGraph();
  CUdeviceptr block = 0;
  const CUgraphNode alloc = AddAlloc(graph, {}, kMiB, &block);
  AddFill(graph, {alloc}, block, 7);
  const CUgraphExec exec = Instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  LaunchAndWait(exec);
  LaunchAndWait(exec);
  EXPECT_EQ(Reserved(), Pieces(kMiB));
  ASSERT_CU(cuMemFree_v2(block));
  ASSERT_CU(cuGraphExecDestroy(exec));
  ASSERT_CU(cuGraphDestroy(graph));
}

TEST_F(GraphMemory, AnotherGraphMayFree) {
  const CUgraph first = NewGraph();
  const CUgraph second = NewGraph();
  CUdeviceptr block = 0;
  const CUgraphNode alloc = AddAlloc(first, {}, kMiB, &block);
  const CUgraphNode read = AddFill(second, {}, block, 9);
  AddFree(second, {read}, block);
  CUgraphNode node = nullptr;
  EXPECT_EQ(cuGraphAddMemFreeNode(&node, second, nullptr, 0, block), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddMemFreeNode(&node, first, &alloc, 1, block), CUDA_ERROR_INVALID_VALUE);
  const CUgraphExec make = Instantiate(first);
  const CUgraphExec take = Instantiate(second);
  EXPECT_EQ(cuGraphLaunch(take, stream_), CUDA_ERROR_INVALID_VALUE);
  for (int i = 0; i < 2; ++i) {
    LaunchAndWait(make);
    LaunchAndWait(take);
  }
  for (const CUgraphExec exec : {make, take}) ASSERT_CU(cuGraphExecDestroy(exec));
  for (const CUgraph graph : {first, second}) ASSERT_CU(cuGraphDestroy(graph));
}

TEST_F(GraphMemory, OneGraphUsesABlockAgain) {
  const CUgraph graph = NewGraph();
  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  CUdeviceptr c = 0;
  const CUgraphNode first = AddAlloc(graph, {}, kMiB, &a);
  const CUgraphNode freed = AddFree(graph, {first}, a);
  const CUgraphNode second = AddAlloc(graph, {freed}, kMiB, &b);
  EXPECT_EQ(b, a);
  const CUgraphNode parallel = AddAlloc(graph, {first}, kMiB, &c);
  EXPECT_NE(c, a);
  AddFree(graph, {second}, b);
  AddFree(graph, {parallel}, c);
  RunOnce(graph);
  EXPECT_EQ(Reserved(), Pieces(2 * kMiB));
  ASSERT_CU(cuGraphDestroy(graph));
}

TEST_F(GraphMemory, GraphsWithMemoryAreSingleAndWhole) {
  const CUgraph graph = NewGraph();
  CUdeviceptr block = 0;
  const CUgraphNode alloc = AddAlloc(graph, {}, kMiB, &block);
  const CUgraphNode freed = AddFree(graph, {alloc}, block);
  CUgraph other = nullptr;
  CUgraphNode node = nullptr;
  EXPECT_EQ(cuGraphClone(&other, graph), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuGraphDestroyNode(freed), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(cuGraphRemoveDependencies(graph, &alloc, &freed, 1), CUDA_SUCCESS);
  const CUgraph parent = NewGraph();
  EXPECT_EQ(cuGraphAddChildGraphNode(&node, parent, nullptr, 0, graph), CUDA_ERROR_NOT_SUPPORTED);
  CUgraphExec exec = Instantiate(graph);
  CUgraphExec twin = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&twin, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
  ASSERT_CU(cuGraphExecDestroy(exec));
  // Moved into another graph it works there, and belongs there.
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph = {graph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE};
  ASSERT_CU(cuGraphAddNode(&node, parent, nullptr, 0, &params));
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&twin, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
  RunOnce(parent);
  // A real driver has kept another piece by then.
  EXPECT_GE(Reserved(), Pieces(kMiB));
  EXPECT_LE(Reserved(), RealDriver() ? 2 * Pieces(kMiB) : Pieces(kMiB));
  ASSERT_CU(cuGraphDestroy(parent));
}

TEST_F(GraphMemory, CapturedAllocationsAreNodes) {
  CUdeviceptr block = 0;
  CUdeviceptr plain = Alloc(4096);
  ASSERT_CU(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CU(cuMemAllocAsync(&block, kMiB, stream_));
  ASSERT_CU(Fill(block, 3, 16, stream_));
  ASSERT_CU(cuMemcpyDtoDAsync_v2(plain, block, 4, stream_));
  EXPECT_EQ(cuMemFreeAsync(plain, stream_), CUDA_ERROR_INVALID_VALUE);  // no graph allocation
  ASSERT_CU(cuMemFreeAsync(block, stream_));
  CUgraph graph = nullptr;
  ASSERT_CU(cuStreamEndCapture(stream_, &graph));
  CUgraphNode nodes[4];
  size_t count = 4;
  ASSERT_CU(cuGraphGetNodes(graph, nodes, &count));
  ASSERT_EQ(count, 4u);
  CUgraphNodeType type{};
  ASSERT_CU(cuGraphNodeGetType(nodes[0], &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 params{};
  ASSERT_CU(cuGraphMemAllocNodeGetParams(nodes[0], &params));
  EXPECT_EQ(params.dptr, block);
  EXPECT_EQ(params.bytesize, kMiB);
  CUdeviceptr freed = 0;
  ASSERT_CU(cuGraphMemFreeNodeGetParams(nodes[3], &freed));
  EXPECT_EQ(freed, block);
  RunOnce(graph);
  EXPECT_EQ(Read32(plain), 3u);
  ASSERT_CU(cuGraphDestroy(graph));
  ASSERT_CU(cuMemFree_v2(plain));
}

TEST_F(GraphMemory, AFailedCaptureKeepsNoMemory) {
  CUdeviceptr block = 0;
  ASSERT_CU(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  ASSERT_CU(cuMemAllocAsync(&block, kMiB, stream_));
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  EXPECT_NE(cuMemGetAddressRange_v2(&base, &bytes, block), CUDA_SUCCESS);
}

TEST_F(GraphMemory, ALaunchFailsWhenTheGpuIsFull) {
  OnlySimulated("it fills a GPU whose size it knows");
  const CUgraph graph = NewGraph();
  CUdeviceptr block = 0;
  const CUgraphNode alloc = AddAlloc(graph, {}, 8 * kMiB, &block);
  AddFree(graph, {alloc}, block);
  const CUgraphExec exec = Instantiate(graph);
  const CUdeviceptr rest = Alloc((FreeBytes() / kMiB - 4) * kMiB);
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuMemFree_v2(rest));
  LaunchAndWait(exec);
  ASSERT_CU(cuGraphExecDestroy(exec));
  ASSERT_CU(cuGraphDestroy(graph));
}

TEST_F(GraphMemory, LaunchesUnderWayKeepTheirMemory) {
  SharedWord gate;
  const CUgraph graph = NewGraph();
  CUdeviceptr block = 0;
  CUdeviceptr flag = gate.device();
  const CUgraphNode alloc = AddAlloc(graph, {}, kMiB, &block);
  const CUgraphNode wait = AddKernel(graph, {alloc}, "wait_flag", {&flag});
  const CUgraphNode fill = AddFill(graph, {wait}, block, 1);
  AddFree(graph, {fill}, block);
  const CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  ASSERT_CU(cuGraphExecDestroy(exec));
  ASSERT_CU(cuGraphDestroy(graph));
  ASSERT_CU(cuDeviceGraphMemTrim(0));
  EXPECT_EQ(Reserved(), Pieces(kMiB));
  gate.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream_));  // no illegal address
  EXPECT_TRUE(Eventually([] {
    EXPECT_CU(cuDeviceGraphMemTrim(0));
    return Used() == 0;
  }));
}

TEST_F(GraphMemory, KnowsItsAddresses) {
  const CUgraph graph = NewGraph();
  CUdeviceptr block = 0;
  AddAlloc(graph, {}, kMiB, &block);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  AnswerIf("addresses_of_a_graph_are_known_before_its_launch",
           cuMemGetAddressRange_v2(&base, &bytes, block + 100) == CUDA_SUCCESS);
  RunOnce(graph);  // leaves it allocated
  EXPECT_CU(cuMemGetAddressRange_v2(&base, &bytes, block + 100));
  EXPECT_EQ(base, block);
  EXPECT_EQ(bytes, kMiB);
  unsigned type = 0;
  ASSERT_CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  EXPECT_CU(cuMemFree_v2(block));
  ASSERT_CU(cuGraphDestroy(graph));
}

}  // namespace
}  // namespace sluice::contract
