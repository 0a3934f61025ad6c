// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <vector>

#include "tests/contract/fixture.h"

namespace sluice::contract {

/// What the tests about graphs share: a log that kernels append to, and short forms of the calls.
class GraphTest : public ContextTest {
 protected:
  using Nodes = std::vector<CUgraphNode>;

  void SetUp() override {
    ContextTest::SetUp();
    ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    log_ = Alloc(65536);
    ClearLog();
  }
  void ClearLog() {
    EXPECT_CU(cuMemsetD8_v2(log_, 0, 65536));
    EXPECT_CU(cuCtxSynchronize());
  }
  std::vector<uint32_t> ReadLog() {
    EXPECT_CU(cuCtxSynchronize());
    std::vector<uint32_t> values(Read32(log_));
    EXPECT_CU(cuMemcpyDtoH_v2(values.data(), log_ + 4, values.size() * 4));
    return values;
  }
  CUgraph NewGraph() {
    CUgraph graph = nullptr;
    EXPECT_CU(cuGraphCreate(&graph, 0));
    return graph;
  }
  CUgraphExec Instantiate(CUgraph graph, unsigned long long flags = 0) {
    CUgraphExec exec = nullptr;
    EXPECT_CU(cuGraphInstantiateWithFlags(&exec, graph, flags));
    return exec;
  }
  /// Parameters of a kernel of one thread. The arguments must live until they are used.
  CUDA_KERNEL_NODE_PARAMS_v2 KernelParams(const char* name, void** params) {
    CUDA_KERNEL_NODE_PARAMS_v2 p{};
    p.func = Kernel(name);
    p.gridDimX = p.gridDimY = p.gridDimZ = 1;
    p.blockDimX = p.blockDimY = p.blockDimZ = 1;
    p.kernelParams = params;
    return p;
  }
  CUgraphNode AddKernel(CUgraph graph, const Nodes& after, const char* name,
                        std::vector<void*> params) {
    const CUDA_KERNEL_NODE_PARAMS_v2 p = KernelParams(name, params.data());
    CUgraphNode node = nullptr;
    EXPECT_CU(cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(), &p));
    return node;
  }
  CUgraphNode AddAppend(CUgraph graph, const Nodes& after, uint32_t value) {
    return AddKernel(graph, after, "append", {&log_, &value});
  }
  CUgraphNode AddHost(CUgraph graph, const Nodes& after, CUhostFn fn, void* data) {
    const CUDA_HOST_NODE_PARAMS_v1 p{fn, data};
    CUgraphNode node = nullptr;
    EXPECT_CU(cuGraphAddHostNode(&node, graph, after.data(), after.size(), &p));
    return node;
  }
  void LaunchAndWait(CUgraphExec exec) {
    EXPECT_CU(cuGraphLaunch(exec, stream_));
    EXPECT_CU(cuStreamSynchronize(stream_));
  }
  /// Makes an executable graph, runs it once and throws it away.
  void RunOnce(CUgraph graph) {
    const CUgraphExec exec = Instantiate(graph);
    LaunchAndWait(exec);
    EXPECT_CU(cuGraphExecDestroy(exec));
  }

  CUstream stream_ = nullptr;
  CUdeviceptr log_ = 0;
};

}  // namespace sluice::contract
