// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <variant>
#include <vector>

#include "common/cuda/abi.h"

namespace sluice::simgpu {

class Context;

/// What nodes do. Parameters are copies: the program may reuse its memory after the call. `context`
/// is where the node runs.
struct KernelWork {
  Context* context = nullptr;
  CUfunction function = nullptr;
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned shared_bytes = 0;
  std::vector<unsigned char> args;
  std::vector<void*> params;  // into `args`, for who asks for the parameters
  int priority = 0;
};
struct CopyWork {
  Context* context = nullptr;
  CUDA_MEMCPY3D_v2 box{};
};
struct MemsetWork {
  Context* context = nullptr;
  CUDA_MEMSET_NODE_PARAMS_v1 area{};
};
struct HostWork {
  CUhostFn function = nullptr;
  void* user_data = nullptr;
};
struct ChildWork {
  CUgraph graph = nullptr;  // belongs to the node
};
struct EmptyWork {};
struct RecordWork {
  CUevent event = nullptr;
};
struct WaitWork {
  CUevent event = nullptr;
};
struct AllocWork {
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 params{};
  std::vector<CUmemAccessDesc> access;
};
struct FreeWork {
  CUdeviceptr address = 0;
};
struct MemOpsWork {
  Context* context = nullptr;
  std::vector<CUstreamBatchMemOpParams> ops;
};
using NodeWork = std::variant<KernelWork, CopyWork, MemsetWork, HostWork, ChildWork, EmptyWork,
                              RecordWork, WaitWork, AllocWork, FreeWork, MemOpsWork>;

CUgraphNodeType TypeOf(const NodeWork& work);

/// Copies work, so that the parameters of a kernel lead into the copy.
void AssignWork(NodeWork* target, const NodeWork& source);
inline bool OwnsMemory(const NodeWork& work) {
  return std::holds_alternative<AllocWork>(work) || std::holds_alternative<FreeWork>(work);
}

/// One end of an edge.
struct Link {
  CUgraphNode node = nullptr;
  CUgraphEdgeData data{};
};
using Links = std::vector<Link>;

inline bool SameEdge(const CUgraphEdgeData& a, const CUgraphEdgeData& b) {
  return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}
inline bool PlainEdge(const CUgraphEdgeData& data) { return SameEdge(data, CUgraphEdgeData{}); }

}  // namespace sluice::simgpu

struct CUgraphNode_st {
  static constexpr uint32_t kMagic = 0x4e4f4431;
  std::atomic<uint32_t> magic{0};
  CUgraph graph = nullptr;
  uint64_t serial = 0;    // unique in the process; handles are used again
  uint64_t original = 0;  // serial of the node that this one was copied from
  bool enabled = true;
  sluice::simgpu::NodeWork work;
  sluice::simgpu::Links dependencies;
  sluice::simgpu::Links dependents;
};

struct CUgraph_st {
  static constexpr uint32_t kMagic = 0x47525031;
  std::atomic<uint32_t> magic{0};
  std::vector<CUgraphNode> nodes;  // in the order of their making
  CUgraphNode parent = nullptr;    // the node that it is embedded in
  bool capturing = false;          // nodes may come, but it may not go
  uint64_t copied_from = 0;        // serial of the graph that this one was cloned from
  uint64_t serial = 0;
  uint32_t memory_nodes = 0;   // with those of embedded graphs
  CUgraphExec exec = nullptr;  // with memory nodes: the only one there may be
  std::map<CUuserObject, unsigned> user_objects;
};
