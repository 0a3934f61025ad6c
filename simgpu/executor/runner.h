// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/cuda/abi.h"
#include "simgpu/executor/mappings.h"
#include "simgpu/executor/modules.h"
#include "simgpu/executor/peers.h"
#include "simgpu/executor/stream_queues.h"
#include "simgpu/graph/program.h"
#include "simgpu/sharing/device_token.h"
#include "simgpu/sharing/event_board.h"
#include "simgpu/sharing/fluid_device.h"
#include "simgpu/streams/channel.h"
#include "simgpu/streams/virtual_executor.h"

namespace sluice::simgpu {

/// Kernels, copies and settings; the rest is over as soon as its turn has come.
bool CostsTime(const Command& command);

/// Takes the operations of one context from the channel and runs them, one at a time. One thread.
class Runner {
 public:
  /// `virtual_time` is null where the clock follows real time.
  Runner(GpuState* gpu, uint32_t executor, Channel* channel, Mappings* mappings, Modules* modules,
         Peers* peers, VirtualExecutor* virtual_time);
  [[noreturn]] void Run();

 private:
  void Ingest();
  void Sleep();
  void YieldVirtually();
  bool Ready(const Command& command);
  bool EventReached(const Command& command);
  bool ValueReached(const Command& command);
  bool HostFunctionReturned(const Command& command);
  void Execute(const Command& command);
  ProgramRun& RunOf(const Command& graph);
  std::optional<uint32_t> NextStep(const Command& graph);
  void ExecuteStep(const Command& graph);
  void Complete(const Command& command);

  // Where operations may overlap (runner_overlap.cc).
  struct Flight {
    uint32_t number;  // of FluidDevice
    Engine engine;
    Command command;
    std::optional<uint32_t> step;  // of the graph that `command` is
  };
  /// The engine that an operation which costs time runs on.
  Engine EngineOf(const Command& command);
  /// Whether a copy goes from one GPU to another.
  bool BetweenGpus(const Command& command);
  /// Whether the command may start beside what is under way.
  bool MayStart(const Command& command);
  bool InFlight(uint32_t stream) const;
  /// Ends what is over.
  void Land();
  void CancelFlights();
  void FinishStep(const Command& graph, uint32_t step);
  /// Brackets an operation on the device; `since` follows from `command` and what it waited for.
  void Begin(const Command& command, uint64_t declared_ns, const GpuDemand& demand);
  void End(const Command& command);
  /// The device clock from which on the operation could have started.
  uint64_t Since() const;
  /// What a command that costs no time does to the clock of its stream.
  void CarryClock(const Command& command);

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
  std::unique_ptr<FluidDevice> fluid_;  // instead of the token where operations may overlap
  std::vector<Flight> flights_;
  std::optional<uint32_t> started_;  // flight of the operation that is being carried out
  // Of the operation that is being carried out, or of the graph that it is a step of.
  uint32_t starting_stream_ = 0;
  uint8_t starting_flags_ = 0;
  uint64_t starting_seen_ns_ = 0;
  std::vector<uint64_t> stream_clock_;  // by stream: when its last operation was over
  uint64_t blocking_clock_ = 0;         // the latest of the blocking streams
  uint64_t engine_clock_[3] = {};       // by engine: when its last operation was over
  StreamQueues queues_;
  std::map<uint32_t, ProgramRun> graphs_;  // under way, by stream
  uint64_t ingested_ = 0;
  uint64_t host_function_ = 0;  // ticket of the one whose turn it is
  bool failure_seen_ = false;
  uint64_t poll_ns_ = 0;  // how long to sleep between looks at a waited-for value
  VirtualExecutor* virtual_time_;
  bool looks_outside_ = false;  // some stream waits for what is not in this context's own order
  bool progress_ = false;       // something was carried out since the last Yield
};

}  // namespace sluice::simgpu
