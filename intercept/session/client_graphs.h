// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "intercept/session/client.h"

// Client's members for graphs that take the driver's call as a function. The rest of what it does
// for graphs is in client_graphs.cc.

namespace sluice {

template <class Issue>
CUresult Client::UploadGraph(CUgraphExec exec, CUstream stream, Issue issue) {
  if (!has_session()) return issue();
  if (const CUresult refused = ChargeLaunch(exec, stream); refused != CUDA_SUCCESS) {
    return refused;
  }
  const CUresult result = issue();
  if (TakePending(exec, result == CUDA_SUCCESS)) SettleLaunch();
  return result;
}

template <class Issue>
CUresult Client::GraphInstantiate(CUgraphExec* exec, CUgraph graph, Issue issue) {
  CUdevice device = kNoDevice;
  const uint64_t need = GraphNeed(graph, 0, &device);
  if (need > 0 && !LeftAlone()) return GraphWithMemory(exec, graph, need, device, issue);
  const CUresult result = issue();
  if (result == CUDA_SUCCESS) KeepGraph(*exec, graph, 0, 0);
  return result;
}

template <class Issue>
CUresult Client::GraphWithMemory(CUgraphExec* exec, CUgraph graph, uint64_t need, CUdevice device,
                                 Issue issue) {
  if (const CUresult result = device == kNoDevice ? EnsureSession() : EnsureSessionOn(device);
      result != CUDA_SUCCESS) {
    return result;
  }
  const LockGuard settling(settle_lock_);
  const CUresult charged = Charge(protocol::Family::kGraph, need, session_.device());
  if (charged != CUDA_SUCCESS) return charged;
  graphs_charged_ += need;
  driver_served_.store(true, std::memory_order_relaxed);
  const uint64_t before = GraphsReserved();
  CUresult result = issue();
  // Drivers differ in when they reserve. What they have not by now comes with the first launch.
  const uint64_t taken = GraphsReserved() - before;
  if (result == CUDA_SUCCESS) KeepGraph(*exec, graph, need, need > taken ? need - taken : 0);
  if (SettleLocked(true) != CUDA_SUCCESS && result == CUDA_SUCCESS) {
    // They reserve in steps, and for the last one there is no room.
    Holding gone{};
    static_cast<void>(Forget(Thing::kGraphExec, KeyOf(*exec), &gone));
    static_cast<void>(driver_->cuGraphExecDestroy(*exec));
    static_cast<void>(driver_->cuDeviceGraphMemTrim(session_.device()));
    static_cast<void>(SettleLocked(false));
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  return result;
}

}  // namespace sluice
