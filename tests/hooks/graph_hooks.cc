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
  ExpectTold([](CUgraphExec* exec, CUgraph graph) {
    return cuGraphInstantiateWithFlags(exec, graph, 0);
  });
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
