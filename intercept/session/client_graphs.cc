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

// Bytes of all allocation nodes: the most that the graph can need, as the driver may let nodes
// share. `device`: where one of them is; as it was, if none says so.
uint64_t Client::GraphNeed(CUgraph graph, int depth, CUdevice* device) {
  constexpr size_t kAtOnce = 256;
  constexpr int kDeepest = 16;
  if (driver_->cuGraphMemAllocNodeGetParams == nullptr || depth > kDeepest) return 0;
  const RelaxedCapture relaxed(*driver_);
  size_t count = 0;
  if (driver_->cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count == 0) return 0;
  CUgraphNode few[kAtOnce];
  CUgraphNode* nodes = few;
  const size_t bytes = count * sizeof(CUgraphNode);
  if (count > kAtOnce) nodes = static_cast<CUgraphNode*>(MapMemory(bytes));
  if (nodes == nullptr) return 0;
  uint64_t need = 0;
  if (driver_->cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS) {
    for (size_t i = 0; i < count; ++i) {
      CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
      static_cast<void>(driver_->cuGraphNodeGetType(nodes[i], &type));
      CUDA_MEM_ALLOC_NODE_PARAMS_v1 params{};
      CUgraph child = nullptr;
      if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
          driver_->cuGraphMemAllocNodeGetParams(nodes[i], &params) == CUDA_SUCCESS) {
        need += params.bytesize;
        if (params.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
          *device = params.poolProps.location.id;
      } else if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
                 driver_->cuGraphChildGraphNodeGetGraph(nodes[i], &child) == CUDA_SUCCESS) {
        need += GraphNeed(child, depth + 1, device);
      }
    }
  }
  if (nodes != few) UnmapMemory(nodes, bytes);
  return need;
}

void Client::KeepGraph(CUgraphExec exec, CUgraph graph, uint64_t need, uint64_t pending) {
  Keep({KeyOf(exec), pending, need, GraphHash(graph), 0, 1, 0, Thing::kGraphExec});
}

// The driver takes memory for a graph when it is launched, from what earlier ones have left or
// anew: two graphs that shared it one after the other need it twice when they run side by side. So
// all that a launch may take is asked for before, and what it did not take is given back behind it.
// A launch of a graph without memory of its own, or into a capture, takes nothing.
CUresult Client::ChargeLaunch(CUgraphExec exec, CUstream stream) {
  constexpr uint64_t kStep = 2 << 20;  // in which drivers reserve
  {
    const LockGuard guard(outside_lock_);
    const Holding* known = holdings_.Find(Thing::kGraphExec, KeyOf(exec));
    if (known == nullptr || known->high == 0) return CUDA_SUCCESS;
  }
  if (Capturing(stream)) return CUDA_SUCCESS;
  const LockGuard settling(settle_lock_);
  for (bool trimmed = false;; trimmed = true) {
    uint64_t more = 0;
    {
      const LockGuard guard(outside_lock_);
      const Holding* known = holdings_.Find(Thing::kGraphExec, KeyOf(exec));
      if (known == nullptr) return CUDA_SUCCESS;
      const uint64_t most = (known->high + kStep - 1) / kStep * kStep;
      if (most > known->bytes) more = most - known->bytes;
    }
    const CUresult result =
        more == 0 ? CUDA_SUCCESS : Charge(protocol::Family::kGraph, more, session_.device());
    if (result == CUDA_SUCCESS) {
      graphs_charged_ += more;
      const LockGuard guard(outside_lock_);
      Holding* known = holdings_.Find(Thing::kGraphExec, KeyOf(exec));
      if (known != nullptr) known->bytes += more;
      return CUDA_SUCCESS;
    }
    if (trimmed || captures_.load() > 0) return result;
    // What the driver keeps for later launches may be all that is needed.
    static_cast<void>(driver_->cuDeviceGraphMemTrim(session_.device()));
    static_cast<void>(SettleLocked(false));
  }
}

// True when something of it was pending: the launch has taken that, or what it needed of it. One
// that failed has taken nothing; what the first one needs stays charged.
bool Client::TakePending(CUgraphExec exec, bool launched) {
  const LockGuard guard(outside_lock_);
  Holding* known = holdings_.Find(Thing::kGraphExec, KeyOf(exec));
  if (known == nullptr || known->bytes == 0) return false;
  if (launched || known->bytes > known->high) known->bytes = launched ? 0 : known->high;
  return true;
}

uint64_t Client::GraphId(CUgraphExec exec) {
  const LockGuard guard(outside_lock_);
  const Holding* known = holdings_.Find(Thing::kGraphExec, KeyOf(exec));
  return known == nullptr ? protocol::kHashSeed : known->link;
}

// The driver has reserved what the graph needs, in its own steps, and cannot be told to undo it:
// where the account has no room for the last step, the job has that much more than it is charged
// for.
void Client::SettleLaunch() {
  const LockGuard settling(settle_lock_);
  static_cast<void>(SettleLocked(true));
}

CUresult Client::GraphExecDestroy(CUgraphExec exec) {
  const CUresult result =
      FreeOutside(Thing::kGraphExec, exec, [=, this] { return driver_->cuGraphExecDestroy(exec); });
  SettleDriverMemory();
  return result;
}

CUresult Client::GraphMemTrim(CUdevice device) {
  const CUresult result = driver_->cuDeviceGraphMemTrim(device);
  SettleDriverMemory();
  return result;
}

}  // namespace sluice
