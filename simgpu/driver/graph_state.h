// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <mutex>

#include "simgpu/driver/driver.h"
#include "simgpu/driver/graph_allocations.h"
#include "simgpu/driver/janitor.h"
#include "simgpu/graph/capture.h"
#include "simgpu/graph/graph.h"

struct CUgraphExec_st {
  static constexpr uint32_t kMagic = 0x45584531;
  std::atomic<uint32_t> magic{0};
  CUgraph graph = nullptr;   // a copy of its own
  CUgraph source = nullptr;  // compared with source_serial before it is used
  uint64_t source_serial = 0;
  uint64_t flags = 0;
  // The last launch.
  sluice::simgpu::Context* context = nullptr;
  uint64_t mark = 0;
};

namespace sluice::simgpu {

/// Graphs of the process. `mutex` comes before the driver's and the contexts' in the lock order.
struct GraphState {
  explicit GraphState(Driver* driver) : allocations(driver) {
    store.before_destroy = [this](CUgraph graph) { allocations.Drop(graph); };
  }
  std::mutex mutex;
  GraphStore store;
  Slab<CUgraphExec_st> execs;
  GraphAllocations allocations;
  Captures captures;  // has a lock of its own, which comes last
  Janitor janitor;
};

/// A call about graphs, with the lock held. No context is needed to build a graph.
class GraphCall {
 public:
  GraphCall() {
    Driver* driver = Driver::Get();
    if (driver == nullptr) {
      result_ = CUDA_ERROR_NOT_INITIALIZED;
    } else if (InHostFunction()) {
      result_ = CUDA_ERROR_NOT_PERMITTED;
    } else {
      state_ = driver->graphs;
      lock_ = std::unique_lock<std::mutex>(state_->mutex);
    }
  }
  /// What nobody refers to any more is destroyed by another thread.
  ~GraphCall() {
    if (state_ == nullptr) return;
    for (const UserObjects::Destructor& due : state_->store.users.TakeDue()) {
      state_->janitor.Run([due] { due.function(due.pointer); });
    }
  }
  GraphCall(const GraphCall&) = delete;
  GraphCall& operator=(const GraphCall&) = delete;

  CUresult result() const { return result_; }
  GraphState* operator->() const { return state_; }
  GraphState* state() const { return state_; }
  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  CUresult result_ = CUDA_SUCCESS;
  GraphState* state_ = nullptr;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace sluice::simgpu
