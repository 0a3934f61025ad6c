// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "common/cuda/abi.h"
#include "simgpu/executor/mappings.h"
#include "simgpu/executor/modules.h"
#include "simgpu/executor/peers.h"
#include "simgpu/executor/stream_queues.h"
#include "simgpu/graph/program.h"
#include "simgpu/sharing/device_token.h"
#include "simgpu/sharing/event_board.h"
#include "simgpu/streams/channel.h"

namespace sluice::simgpu {

/// Takes the operations of one context from the channel and runs them, one at a time. One thread.
class Runner {
 public:
  Runner(GpuState* gpu, uint32_t executor, Channel* channel, Mappings* mappings, Modules* modules,
         Peers* peers);
  [[noreturn]] void Run();

 private:
  void Ingest();
  void Sleep();
  bool Ready(const Command& command);
  bool EventReached(const Command& command);
  bool ValueReached(const Command& command);
  bool HostFunctionReturned(const Command& command);
  void Execute(const Command& command);
  ProgramRun& RunOf(const Command& graph);
  std::optional<uint32_t> NextStep(const Command& graph);
  void ExecuteStep(const Command& graph);
  void Complete(const Command& command);
  CUresult RunKernel(const Command& command);
  CUresult RunCopy(const Command& command);
  CUresult RunMemset(const Command& command);
  CUresult WriteValue(const Command& command);
  void RecordEvent(const Command& command);
  EventBoard* Board();
  unsigned char* Staged(uint64_t offset, uint64_t bytes);
  void Fail(CUresult error);
  bool failed() const { return channel_->error.load(std::memory_order_relaxed) != 0; }

  GpuState* gpu_;
  Channel* channel_;
  Mappings* mappings_;
  Modules* modules_;
  Peers* peers_;
  std::unique_ptr<EventBoard> board_;  // opened when a shared event is first met
  DeviceToken token_;
  StreamQueues queues_;
  std::map<uint32_t, ProgramRun> graphs_;  // under way, by stream
  uint64_t ingested_ = 0;
  uint64_t host_function_ = 0;  // ticket of the one whose turn it is
  bool failure_seen_ = false;
  uint64_t poll_ns_ = 0;  // how long to sleep between looks at a waited-for value
};

}  // namespace sluice::simgpu
