// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/client.h"

namespace sluice {

// Graphs. To the daemon a graph is a function like any other: one launch, timed as a whole. It is
// recorded by what it consists of, so that a program that instantiates the same graph anew in each
// iteration repeats itself.

uint64_t Client::GraphHash(CUgraph graph) {
  constexpr size_t kLooked = 256;
  CUgraphNode nodes[kLooked];
  size_t count = kLooked;
  const RelaxedCapture relaxed(*driver_);
  if (driver_->cuGraphGetNodes == nullptr ||
      driver_->cuGraphGetNodes(graph, nodes, &count) != CUDA_SUCCESS) {
    return protocol::kHashSeed;
  }
  uint64_t hash = protocol::FoldLaunch(protocol::kHashSeed, count);
  for (size_t i = 0; i < count && i < kLooked; ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    static_cast<void>(driver_->cuGraphNodeGetType(nodes[i], &type));
    hash = protocol::FoldLaunch(hash, static_cast<uint64_t>(type));
    CUDA_KERNEL_NODE_PARAMS_v2 params{};
    if (type == CU_GRAPH_NODE_TYPE_KERNEL && gate_ != nullptr &&
        driver_->cuGraphKernelNodeGetParams_v2 != nullptr &&
        driver_->cuGraphKernelNodeGetParams_v2(nodes[i], &params) == CUDA_SUCCESS &&
        params.func != nullptr) {
      hash = protocol::FoldLaunch(hash, gate_->functions.Of(*driver_, params.func));
    }
  }
  return hash;
}

void Client::KeepGraph(CUgraphExec exec, CUgraph graph) {
  Keep({KeyOf(exec), 0, 0, GraphHash(graph), 0, 1, 0, Thing::kGraphExec});
}

uint64_t Client::GraphId(CUgraphExec exec) {
  const LockGuard guard(outside_lock_);
  const Holding* known = holdings_.Find(Thing::kGraphExec, KeyOf(exec));
  return known == nullptr ? protocol::kHashSeed : known->link;
}

CUresult Client::GraphExecDestroy(CUgraphExec exec) {
  return FreeOutside(Thing::kGraphExec, exec,
                     [=, this] { return driver_->cuGraphExecDestroy(exec); });
}

}  // namespace sluice
