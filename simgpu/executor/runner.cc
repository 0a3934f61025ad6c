// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/executor/runner.h"

#include <algorithm>

#include "simgpu/executor/faults.h"
#include "simgpu/sharing/futex.h"

namespace sluice::simgpu {
namespace {

constexpr uint64_t kShortestPollNs = 20'000;
constexpr uint64_t kLongestPollNs = 500'000;
constexpr uint64_t kIdleSleepNs = 1'000'000'000;

}  // namespace

bool CostsTime(const Command& command) {
  return command.kind == CommandKind::kKernel || command.kind == CommandKind::kCopy ||
         command.kind == CommandKind::kMemset;
}

Runner::Runner(GpuState* gpu, uint32_t executor, Channel* channel, Mappings* mappings,
               Modules* modules, Peers* peers, VirtualExecutor* virtual_time)
    : gpu_(gpu),
      channel_(channel),
      mappings_(mappings),
      modules_(modules),
      peers_(peers),
      token_(gpu, executor),
      fluid_(gpu->machine().overlaps() || virtual_time != nullptr
                 ? std::make_unique<FluidDevice>(gpu, executor)
                 : nullptr),
      stream_clock_(kStreams, 0),
      virtual_time_(virtual_time) {}

void Runner::Run() {
  // After a failure what is queued only passes by, but for the host functions that must hear of it.
  const auto passes = [this](const Command& c) {
    return failed() && (c.kind != CommandKind::kHostFunction || (c.flags & kEvenInFailure) == 0);
  };
  const StreamQueues::Ready ready = [&](const Command& c) {
    return passes(c) || (!InFlight(c.stream) && Ready(c) && MayStart(c));
  };
  const StreamQueues::Ready costs = [&](const Command& c) {
    if (failed()) return false;
    if (c.kind != CommandKind::kGraph) return CostsTime(c);
    const std::optional<uint32_t> step = NextStep(c);
    return step && CostsTime(RunOf(c).step(*step));
  };
  if (virtual_time_ != nullptr) virtual_time_->AwaitTurn();
  for (;;) {
    Ingest();
    if (failed() && !failure_seen_) {
      failure_seen_ = true;
      host_function_ = 0;  // nobody waits for it any more
      CancelFlights();
    }
    Land();
    looks_outside_ = false;
    const Command* next = queues_.Pick(ready, costs);
    if (next == nullptr) {
      token_.Release();
      Sleep();
      continue;
    }
    poll_ns_ = 0;
    progress_ = true;
    if (fluid_ == nullptr && costs(*next) && !token_.held()) {
      token_.Acquire();
      continue;  // it may have taken long: an earlier operation may be runnable by now
    }
    const Command command = *next;
    starting_stream_ = command.stream;
    starting_flags_ = command.flags;
    starting_seen_ns_ = command.seen_ns;
    if (!passes(command)) {
      if (command.kind == CommandKind::kGraph) {
        ExecuteStep(command);
      } else {
        Execute(command);
      }
    }
    if (InFlight(command.stream)) continue;
    const auto graph = graphs_.find(command.stream);
    if (graph == graphs_.end() || graph->second.over() || failed()) {
      if (graph != graphs_.end()) graphs_.erase(graph);
      Complete(command);
    }
    token_.YieldIfDue();
  }
}

void Runner::Ingest() {
  const uint64_t end = channel_->submitted.load(std::memory_order_acquire);
  const uint64_t now = fluid_ != nullptr && ingested_ < end ? fluid_->Clock() : 0;
  while (ingested_ < end) {
    Command command = channel_->Slot(ingested_ + 1);
    if (virtual_time_ == nullptr) {
      command.seen_ns = now;
    } else if (command.seen_ns > now) {
      return;  // the program's clock is ahead of the device's: it comes when that is there
    }
    ++ingested_;
    if (command.stream < kStreams) queues_.Push(command);
  }
}

void Runner::YieldVirtually() {
  Rest rest;
  if (ingested_ < channel_->submitted.load(std::memory_order_acquire)) {
    rest.next_arrival_ns = channel_->Slot(ingested_ + 1).seen_ns;
  }
  rest.looks_outside = looks_outside_;
  rest.function_out = host_function_ != 0;
  rest.progress = progress_;
  progress_ = false;
  virtual_time_->Yield(rest);
}

/// Until the client rings, or a little while if some stream waits for a value in memory.
void Runner::Sleep() {
  if (virtual_time_ != nullptr) {
    YieldVirtually();
    return;
  }
  uint64_t timeout = kIdleSleepNs;
  if (!queues_.empty()) {
    poll_ns_ = std::clamp(poll_ns_ * 2, kShortestPollNs, kLongestPollNs);
    timeout = poll_ns_;
  }
  if (!flights_.empty()) timeout = std::min(timeout, fluid_->RealTimeToNext());
  const uint32_t bell = channel_->doorbell.load();
  channel_->sleeping.store(1);
  // The client stores `submitted` and then reads `sleeping`; this side does the reverse.
  if (channel_->submitted.load() == ingested_) FutexWait(&channel_->doorbell, bell, timeout);
  channel_->sleeping.store(0);
}

bool Runner::Ready(const Command& command) {
  switch (command.kind) {
    case CommandKind::kWaitEvent:
      return EventReached(command);
    case CommandKind::kWaitValue:
      return ValueReached(command);
    case CommandKind::kHostFunction:
      return HostFunctionReturned(command);
    case CommandKind::kGraph:
      return RunOf(command).over() || NextStep(command).has_value();
    default:
      return true;
  }
}

bool Runner::EventReached(const Command& command) {
  const auto& wait = command.wait_event;
  looks_outside_ = looks_outside_ || wait.shared != 0 || wait.peer != 0;
  if (wait.shared != 0) return Board() == nullptr || Board()->Reached(wait.shared - 1, wait.id);
  if (wait.peer != 0) return peers_->Reached(wait.peer, wait.stream, wait.id);
  return wait.stream >= kStreams ||
         channel_->completed[wait.stream].load(std::memory_order_relaxed) >= wait.id;
}

EventBoard* Runner::Board() {
  if (board_ == nullptr) board_ = EventBoard::Open(*gpu_);
  return board_.get();
}

bool Runner::ValueReached(const Command& command) {
  const auto& v = command.value;
  looks_outside_ = true;
  const uint32_t width = v.width == 4 ? 4 : 8;
  struct Look {
    const unsigned char* address;
    uint32_t width;
    uint64_t value;
  } look{mappings_->Resolve(v.address, width), width, 0};
  CUresult result = CUDA_ERROR_ILLEGAL_ADDRESS;
  if (look.address != nullptr) {
    result = RunGuarded(
        "cuStreamWaitValue",
        [](void* p) {
          auto* l = static_cast<Look*>(p);
          l->value = l->width == 4 ? __atomic_load_n(reinterpret_cast<const uint32_t*>(l->address),
                                                     __ATOMIC_ACQUIRE)
                                   : __atomic_load_n(reinterpret_cast<const uint64_t*>(l->address),
                                                     __ATOMIC_ACQUIRE);
        },
        &look);
  }
  if (result != CUDA_SUCCESS) {
    Fail(result);
    return true;
  }
  if (v.equal != 0) return look.value == v.value;
  if (width == 4) return static_cast<int32_t>(look.value - v.value) >= 0;
  return static_cast<int64_t>(look.value - v.value) >= 0;
}

/// Asks the client to call it when its turn has come.
bool Runner::HostFunctionReturned(const Command& command) {
  const uint64_t ticket = command.host.ticket;
  if (host_function_ != ticket) {
    if (host_function_ != 0) return false;  // one at a time
    host_function_ = ticket;
    channel_->host_function.store(ticket);
    channel_->host_function_bell.fetch_add(1);
    FutexWakeAll(&channel_->host_function_bell);
  }
  return channel_->host_function_done.load(std::memory_order_acquire) == ticket;
}

ProgramRun& Runner::RunOf(const Command& graph) {
  const auto found = graphs_.find(graph.stream);
  if (found != graphs_.end()) return found->second;
  const unsigned char* program = Staged(graph.graph.program, graph.graph.bytes);
  return graphs_.try_emplace(graph.stream, program, graph.graph.bytes).first->second;
}

/// The step of a graph to take next: as among streams, what costs no time goes first.
std::optional<uint32_t> Runner::NextStep(const Command& graph) {
  const ProgramRun& run = RunOf(graph);
  std::optional<uint32_t> best;
  for (const uint32_t index : run.ready()) {
    const bool costs = CostsTime(run.step(index));
    if ((costs && best) || !Ready(run.step(index))) continue;
    best = index;
    if (!costs) break;
  }
  return best;
}

void Runner::ExecuteStep(const Command& graph) {
  ProgramRun& run = RunOf(graph);
  const std::optional<uint32_t> index = NextStep(graph);
  if (!index) return;
  Execute(run.step(*index));
  if (InFlight(graph.stream)) {
    flights_.back().command = graph;
    flights_.back().step = *index;
    return;
  }
  run.Finish(*index);
}

void Runner::Execute(const Command& command) {
  CUresult result = CUDA_SUCCESS;
  switch (command.kind) {
    case CommandKind::kKernel:
      result = RunKernel(command);
      break;
    case CommandKind::kCopy:
      result = RunCopy(command);
      break;
    case CommandKind::kMemset:
      result = RunMemset(command);
      break;
    case CommandKind::kWriteValue:
      result = WriteValue(command);
      break;
    case CommandKind::kRecordEvent:
      RecordEvent(command);
      break;
    case CommandKind::kHostFunction:
      host_function_ = 0;
      break;
    case CommandKind::kWaitEvent:
    case CommandKind::kWaitValue:
    case CommandKind::kNothing:
    case CommandKind::kGraph:
      break;
  }
  if (fluid_ != nullptr && !CostsTime(command)) CarryClock(command);
  if (result != CUDA_SUCCESS) Fail(result);
}

void Runner::Complete(const Command& command) {
  queues_.Pop(command.stream);
  channel_->completed[command.stream].store(command.id, std::memory_order_release);
  channel_->finished.fetch_add(1, std::memory_order_release);
  channel_->progress.fetch_add(1);
  if (channel_->waiters.load() != 0) FutexWakeAll(&channel_->progress);
}

void Runner::Fail(CUresult error) {
  uint32_t none = 0;
  channel_->error.compare_exchange_strong(none, error);
}

}  // namespace sluice::simgpu
