// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>

#include "simgpu/executor/runner.h"

/// The part of Runner for a GPU whose operations may overlap. The host carries an operation out as
/// soon as it may start; it stays at the head of its stream until its time is over.
namespace sluice::simgpu {

Engine Runner::EngineOf(const Command& command) {
  if (command.kind != CommandKind::kCopy) return Engine::kCompute;
  const bool to_host =
      (command.flags & kTargetStaged) != 0 || mappings_->IsHost(command.copy.target);
  const bool from_host =
      (command.flags & kSourceStaged) != 0 || mappings_->IsHost(command.copy.source);
  if (to_host) return Engine::kToHost;
  if (from_host) return Engine::kToDevice;
  // Over the link to another GPU: with the copy engine of that direction.
  if (!BetweenGpus(command)) return Engine::kCompute;
  return mappings_->HomeOf(command.copy.target) == mappings_->own_gpu() ? Engine::kToDevice
                                                                        : Engine::kToHost;
}

bool Runner::BetweenGpus(const Command& command) {
  constexpr unsigned kStaged = kTargetStaged | kSourceStaged;
  return command.kind == CommandKind::kCopy && (command.flags & kStaged) == 0 &&
         !mappings_->IsHost(command.copy.target) && !mappings_->IsHost(command.copy.source) &&
         mappings_->HomeOf(command.copy.target) != mappings_->HomeOf(command.copy.source);
}

bool Runner::InFlight(uint32_t stream) const {
  return std::any_of(flights_.begin(), flights_.end(),
                     [stream](const Flight& f) { return f.command.stream == stream; });
}

bool Runner::MayStart(const Command& command) {
  if (fluid_ == nullptr) return true;
  const Command* work = &command;
  if (command.kind == CommandKind::kGraph) {
    const std::optional<uint32_t> step = NextStep(command);
    if (!step) return true;
    work = &RunOf(command).step(*step);
  }
  if (!CostsTime(*work)) return true;
  const Machine& machine = gpu_->machine();
  const Engine engine = EngineOf(*work);
  uint64_t same = 0;
  uint64_t kernels = 0;
  for (const Flight& flight : flights_) {
    if (flight.engine == engine) ++same;
    if (flight.engine == Engine::kCompute) ++kernels;
  }
  const uint64_t copies = flights_.size() - kernels;
  // Without copy engines, copies and kernels of a context take turns.
  if (engine == Engine::kCompute) {
    return same < machine.concurrent_kernels && (machine.copy_engines > 0 || copies == 0);
  }
  if (machine.copy_engines == 0) return flights_.empty();
  return machine.copy_engines == 1 ? copies == 0 : same == 0;
}

uint64_t Runner::Since() const {
  uint64_t since = std::max(starting_seen_ns_, stream_clock_[starting_stream_]);
  if (starting_stream_ == kLegacyStream) return std::max(since, blocking_clock_);
  if ((starting_flags_ & kBlocking) != 0) since = std::max(since, stream_clock_[kLegacyStream]);
  return since;
}

void Runner::Begin(const Command& command, uint64_t declared_ns, const GpuDemand& demand) {
  if (fluid_ == nullptr) {
    token_.BeginOperation(declared_ns);
    return;
  }
  // There is room: MayStart lets fewer of them go than there are places.
  const Engine engine = EngineOf(command);
  uint64_t since = std::max(Since(), engine_clock_[static_cast<size_t>(engine)]);
  if (gpu_->machine().copy_engines < 2) {  // engines that wait for each other
    for (const uint64_t clock : engine_clock_) since = std::max(since, clock);
  }
  started_ =
      fluid_->Begin(declared_ns, engine, demand, since, command.kind == CommandKind::kKernel);
}

void Runner::End(const Command& command) {
  if (fluid_ == nullptr) {
    token_.EndOperation(command.kind == CommandKind::kKernel);
    return;
  }
  if (!started_) return;
  fluid_->BodyDone(*started_);
  flights_.push_back({*started_, EngineOf(command), command, std::nullopt});
  flights_.back().command.stream = starting_stream_;
  started_.reset();
}

void Runner::Land() {
  for (size_t i = 0; i < flights_.size();) {
    const std::optional<uint64_t> ended = fluid_->Land(flights_[i].number);
    if (!ended) {
      ++i;
      continue;
    }
    const Flight flight = flights_[i];
    progress_ = true;
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
    uint64_t& clock = stream_clock_[flight.command.stream];
    clock = std::max(clock, *ended);
    uint64_t& engine = engine_clock_[static_cast<size_t>(flight.engine)];
    engine = std::max(engine, *ended);
    if ((flight.command.flags & kBlocking) != 0 && flight.command.stream != kLegacyStream) {
      blocking_clock_ = std::max(blocking_clock_, clock);
    }
    if (flight.step) {
      FinishStep(flight.command, *flight.step);
    } else {
      Complete(flight.command);
    }
  }
}

void Runner::FinishStep(const Command& graph, uint32_t step) {
  ProgramRun& run = RunOf(graph);
  run.Finish(step);
  if (!run.over()) return;
  graphs_.erase(graph.stream);
  Complete(graph);
}

/// After a failure: their streams' heads only pass by then.
void Runner::CancelFlights() {
  for (const Flight& flight : flights_) fluid_->Cancel(flight.number);
  flights_.clear();
}

void Runner::CarryClock(const Command& command) {
  uint64_t& clock = stream_clock_[starting_stream_];
  const bool waited_outside = command.kind == CommandKind::kWaitValue ||
                              command.kind == CommandKind::kHostFunction ||
                              (command.kind == CommandKind::kWaitEvent &&
                               (command.wait_event.peer != 0 || command.wait_event.shared != 0));
  if (waited_outside) {
    clock = fluid_->Clock();
  } else if (command.kind == CommandKind::kWaitEvent && command.wait_event.stream < kStreams) {
    clock = std::max(clock, stream_clock_[command.wait_event.stream]);
  }
}

}  // namespace sluice::simgpu
