// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "simgpu/driver/driver.h"
#include "simgpu/graph/graph.h"
#include "simgpu/graph/memory_nodes.h"

namespace sluice::simgpu {

/// Who may use which block of graph memory: graphs and executable graphs that contain its nodes,
/// the program between a launch that allocates and whatever frees, and launches under way. The lock
/// of the graphs is held; memory is changed under the driver's.
class GraphAllocations {
 public:
  explicit GraphAllocations(Driver* driver) : driver_(driver) {}

  /// The address of an allocation on GPU `ordinal`, which exists, that a node of `graph` behind
  /// `dependencies` will make.
  CUresult New(CUgraph graph, const Links& dependencies, int ordinal, uint64_t bytes,
               CUdeviceptr* out);
  /// Whether `graph` may get a node that frees `address`.
  CUresult AllowFree(CUgraph graph, CUdeviceptr address) const;
  /// It got one.
  void NoteFree(CUgraph graph, CUdeviceptr address);
  /// An executable graph was made or is gone, or a graph is.
  void Hold(CUgraph executable);
  void Drop(CUgraph graph);

  /// Puts memory behind all that a launch allocates.
  CUresult Back(CUgraph executable);
  /// The same before a launch. Refuses a launch that would allocate what is
  /// still allocated, or free what is not. Its memory stays until Launched, which is told the same
  /// effects: in between the lock is free, and others trim and sweep.
  CUresult Prepare(CUgraph executable, bool free_first, MemoryEffects* effects);
  /// `mark` 0: it was not launched after all.
  void Launched(const MemoryEffects& effects, Context* context, uint64_t mark);
  /// cuMemFree and cuMemFreeAsync: `marks` must be reached before the memory may go.
  CUresult Free(CUdeviceptr address, Context* context, const std::vector<uint64_t>& marks);
  /// Gives back all memory of a GPU that is in no use.
  void Trim(const Device* device);
  /// Brings the counts up to date with what launches have finished.
  void Sweep();

 private:
  struct Use {
    GraphMemory* memory = nullptr;     // of the GPU that it is on
    std::map<uint64_t, bool> holders;  // serial of a graph; whether it is executable
    bool live = false;                 // allocated by a launch and not freed
    bool freed_at_home = false;        // a node of the graph that allocates it frees it
    bool freed_elsewhere = false;      // a node of another graph does
    uint32_t launching = 0;            // launches that are prepared and have no mark yet
    std::vector<std::pair<Context*, uint64_t>> marks;
  };
  bool Idle(Use* use);

  Driver* driver_;
  std::map<CUdeviceptr, Use> uses_;
};

}  // namespace sluice::simgpu
