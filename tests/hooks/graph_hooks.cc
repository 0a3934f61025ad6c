// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/hook_fixture.h"

// A graph is one launch of one function, by what it consists of.

namespace sluice::hooks {
namespace {

class GraphHook : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
  }
  /// `nodes` kernels, one after the other.
  CUgraph Chain(int nodes) {
    CUgraph graph = nullptr;
    EXPECT_CU(cuGraphCreate(&graph, 0));
    CUDA_KERNEL_NODE_PARAMS_v2 params{};
    params.func = Kernel("nothing");
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    CUgraphNode last = nullptr;
    for (int i = 0; i < nodes; ++i) {
      CUgraphNode node = nullptr;
      EXPECT_CU(cuGraphAddKernelNode_v2(&node, graph, &last, i > 0 ? 1 : 0, &params));
      last = node;
    }
    return graph;
  }
  /// The same graph made anew is the same function, another one is not.
  void ExpectTold(const std::function<CUresult(CUgraphExec*, CUgraph)>& instantiate) {
    for (const int nodes : {1, 2, 2, 3}) {
      CUgraphExec exec = nullptr;
      ASSERT_CU(instantiate(&exec, Chain(nodes)));
      ASSERT_CU(cuGraphLaunch(exec, nullptr));
    }
    ExpectSoon([this] { return Says("functions"); }, 3);
  }
  void ExpectCounted(const std::function<CUresult(CUgraphExec)>& launch) {
    CUgraphExec exec = nullptr;
    ASSERT_CU(cuGraphInstantiateWithFlags(&exec, Chain(4), 0));
    const uint64_t before = Says("launches");
    for (int i = 0; i < 5; ++i) ASSERT_CU(launch(exec));
    ExpectSoon([this] { return Says("launches"); }, before + 5);
  }
};

/// Graphs with memory of their own: charged from the instantiation until the driver has it back.
class GraphMemoryHook : public GraphHook {
 protected:
  /// An allocation and its free.
  static CUgraph WithMemory(size_t bytes) {
    CUgraph graph = nullptr;
    EXPECT_CU(cuGraphCreate(&graph, 0));
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 params{};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytesize = bytes;
    CUgraphNode alloc = nullptr;
    EXPECT_CU(cuGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &params));
    CUgraphNode free = nullptr;
    EXPECT_CU(cuGraphAddMemFreeNode(&free, graph, &alloc, 1, params.dptr));
    return graph;
  }
  uint64_t Reserved() {
    uint64_t bytes = 0;
    EXPECT_CU(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes));
    return bytes;
  }
  void ExpectGraphs(uint64_t bytes) {
    ExpectSoon([this] { return Outside("graph"); }, bytes);
  }
};

TEST_F(GraphMemoryHook, cuGraphExecDestroy) {
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, WithMemory(kMoreThanLimit), 0),
            CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuGraphInstantiateWithFlags(&exec, WithMemory(3 * kMiB), 0));
  EXPECT_GE(Outside("graph"), 3 * kMiB) << "before the first launch already";
  ASSERT_CU(cuGraphExecDestroy(exec));
  ExpectGraphs(Reserved());
  EXPECT_LT(Reserved(), 3 * kMiB) << "this test needs a driver that reserves late";
}

TEST_F(GraphMemoryHook, cuDeviceGraphMemTrim) {
  CUgraphExec exec = nullptr;
  ASSERT_CU(cuGraphInstantiateWithFlags(&exec, WithMemory(3 * kMiB), 0));
  ASSERT_CU(cuGraphLaunch(exec, nullptr));
  ASSERT_CU(cuStreamSynchronize(nullptr));
  ASSERT_CU(cuGraphExecDestroy(exec));
  ExpectGraphs(Reserved());
  EXPECT_GE(Outside("graph"), 3 * kMiB) << "kept for the next graph";
  ASSERT_CU(cuDeviceGraphMemTrim(0));
  EXPECT_EQ(Reserved(), 0u);
  ExpectGraphs(0);
}

class GraphUploadHook : public GraphMemoryHook {
 protected:
  void ExpectSettled(const std::function<CUresult(CUgraphExec)>& upload) {
    CUgraphExec exec = nullptr;
    ASSERT_CU(cuGraphInstantiateWithFlags(&exec, WithMemory(3 * kMiB), 0));
    ASSERT_LT(Reserved(), 3 * kMiB) << "this test needs a driver that reserves late";
    ASSERT_CU(upload(exec));
    ASSERT_GE(Reserved(), 3 * kMiB);
    // Once, not as what it has and what it will take.
    ExpectGraphs(Reserved());
    CUgraphExec other = nullptr;
    ASSERT_CU(cuGraphInstantiateWithFlags(&other, WithMemory(kMiB), 0));
    ASSERT_CU(cuGraphLaunch(other, nullptr));
    ExpectGraphs(Reserved());
    ASSERT_CU(cuGraphLaunch(exec, nullptr));
    ExpectGraphs(Reserved());
  }
};

TEST_F(GraphUploadHook, cuGraphUpload) {
  ExpectSettled([](CUgraphExec exec) { return cuGraphUpload(exec, nullptr); });
}

TEST_F(GraphUploadHook, cuGraphUpload_ptsz) {
  ExpectSettled([](CUgraphExec exec) { return cuGraphUpload_ptsz(exec, nullptr); });
}

TEST_F(GraphHook, cuGraphInstantiate) {
  ExpectTold([](CUgraphExec* exec, CUgraph graph) {
    return cuGraphInstantiate(exec, graph, nullptr, nullptr, 0);
  });
}

TEST_F(GraphHook, cuGraphInstantiate_v2) {
  ExpectTold([](CUgraphExec* exec, CUgraph graph) {
    return cuGraphInstantiate_v2(exec, graph, nullptr, nullptr, 0);
  });
}

TEST_F(GraphHook, cuGraphInstantiateWithFlags) {
  ExpectTold(
      [](CUgraphExec* exec, CUgraph graph) { return cuGraphInstantiateWithFlags(exec, graph, 0); });
}

TEST_F(GraphHook, cuGraphInstantiateWithParams) {
  ExpectTold([](CUgraphExec* exec, CUgraph graph) {
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    return cuGraphInstantiateWithParams(exec, graph, &params);
  });
}

TEST_F(GraphHook, cuGraphInstantiateWithParams_ptsz) {
  ExpectTold([](CUgraphExec* exec, CUgraph graph) {
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    return cuGraphInstantiateWithParams_ptsz(exec, graph, &params);
  });
}

TEST_F(GraphHook, cuGraphLaunch) {
  ExpectCounted([](CUgraphExec exec) { return cuGraphLaunch(exec, nullptr); });
}

TEST_F(GraphHook, cuGraphLaunch_ptsz) {
  ExpectCounted([](CUgraphExec exec) { return cuGraphLaunch_ptsz(exec, nullptr); });
}

}  // namespace
}  // namespace sluice::hooks
