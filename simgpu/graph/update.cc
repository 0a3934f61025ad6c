// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/graph/update.h"

#include <map>

namespace sluice::simgpu {
namespace {

CUgraphExecUpdateResultInfo Refusal(CUgraphExecUpdateResult why, CUgraphNode node,
                                    CUgraphNode from = nullptr) {
  return {why, node, from};
}

CUgraphExecUpdateResult CompareWork(const NodeWork& now, const NodeWork& then) {
  if (now.index() != then.index()) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  const auto unless = [](bool good, CUgraphExecUpdateResult otherwise) {
    return good ? CU_GRAPH_EXEC_UPDATE_SUCCESS : otherwise;
  };
  if (const auto* kernel = std::get_if<KernelWork>(&now)) {
    return unless(kernel->context == std::get<KernelWork>(then).context,
                  CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE);
  }
  if (const auto* copy = std::get_if<CopyWork>(&now)) {
    const CopyWork& other = std::get<CopyWork>(then);
    const bool same_kind = copy->context == other.context &&
                           copy->box.srcMemoryType == other.box.srcMemoryType &&
                           copy->box.dstMemoryType == other.box.dstMemoryType;
    return unless(same_kind, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
  }
  if (const auto* set = std::get_if<MemsetWork>(&now)) {
    return unless(MemsetMayBecome(*set, std::get<MemsetWork>(then)),
                  CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
  }
  if (const auto* ops = std::get_if<MemOpsWork>(&now)) {
    return unless(ops->ops.size() == std::get<MemOpsWork>(then).ops.size(),
                  CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
  }
  if (const auto* alloc = std::get_if<AllocWork>(&now)) {
    return unless(alloc->params.dptr == std::get<AllocWork>(then).params.dptr,
                  CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
  }
  if (const auto* freed = std::get_if<FreeWork>(&now)) {
    return unless(freed->address == std::get<FreeWork>(then).address,
                  CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

}  // namespace

bool CopyMayBecome(const CopyWork& now, const CopyWork& then) {
  const auto flat = [](const CUDA_MEMCPY3D_v2& box) { return box.Height == 1 && box.Depth == 1; };
  return now.context == then.context && flat(now.box) && flat(then.box) &&
         now.box.srcMemoryType == then.box.srcMemoryType &&
         now.box.dstMemoryType == then.box.dstMemoryType;
}

bool MemsetMayBecome(const MemsetWork& now, const MemsetWork& then) {
  const auto& a = now.area;
  const auto& b = then.area;
  if (now.context != then.context || a.height != b.height) return false;
  return a.height == 1 ||
         (a.width == b.width && a.elementSize == b.elementSize && a.pitch == b.pitch);
}

CUgraphExecUpdateResultInfo PairForUpdate(CUgraph executable, CUgraph graph, NodePairs* pairs) {
  if (executable->nodes.size() != graph->nodes.size()) {
    return Refusal(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  }
  const std::vector<CUgraphNode> ours = Leaves(executable);
  const std::vector<CUgraphNode> theirs = Leaves(graph);
  if (ours.size() != theirs.size()) {
    return Refusal(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
                   theirs.empty() ? nullptr : theirs.back());
  }
  std::map<CUgraphNode, CUgraphNode> ours_of;  // by the node of `graph`
  std::map<CUgraphNode, CUgraphNode> theirs_of;
  NodePairs open;
  const auto pair = [&](CUgraphNode mine, CUgraphNode other) {
    ours_of[other] = mine;
    theirs_of[mine] = other;
    open.emplace_back(mine, other);
  };
  for (size_t i = 0; i < ours.size(); ++i) pair(ours[i], theirs[i]);
  for (size_t next = 0; next < open.size(); ++next) {
    const auto [mine, other] = open[next];
    if (mine->dependencies.size() != other->dependencies.size()) {
      return Refusal(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, other);
    }
    for (size_t i = 0; i < mine->dependencies.size(); ++i) {
      const CUgraphNode from = mine->dependencies[i].node;
      const CUgraphNode other_from = other->dependencies[i].node;
      const bool known = theirs_of.contains(from);
      if (known != ours_of.contains(other_from) || (known && theirs_of.at(from) != other_from)) {
        return Refusal(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, other, other_from);
      }
      if (!known) pair(from, other_from);
    }
  }
  // What no exit node leads to lies in a cycle, which an executable graph cannot have.
  if (open.size() != graph->nodes.size()) {
    return Refusal(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  }
  for (const auto& [mine, other] : open) {
    const CUgraphExecUpdateResult result = CompareWork(mine->work, other->work);
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return Refusal(result, other);
    pairs->emplace_back(mine, other);
    const auto* child = std::get_if<ChildWork>(&mine->work);
    if (child == nullptr) continue;
    const CUgraphExecUpdateResultInfo inner =
        PairForUpdate(child->graph, std::get<ChildWork>(other->work).graph, pairs);
    if (inner.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return inner;
  }
  return {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
}

}  // namespace sluice::simgpu
