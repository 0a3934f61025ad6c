// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/unit/simgpu/virtual_model.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <optional>

namespace sluice::simgpu {
namespace {

struct Operation {
  uint64_t issued;
  uint64_t ns;
};

class Core {
 public:
  Core(const ModelPrograms& programs, uint64_t quantum)
      : programs_(programs),
        rules_(ModelRules(static_cast<double>(quantum))),
        next_action_(programs.size(), 0),
        queue_(programs.size()),
        issued_(programs.size(), 0),
        ends_(programs.size()) {
    time_->expected = static_cast<uint32_t>(programs.size());
    for (uint32_t i = 0; i < programs.size(); ++i) {
      Join(time_.get(), i, {static_cast<int32_t>(i + 1), 1}, 0);
      Attach(time_.get(), i, i);
      AwaitTurn(i);
    }
  }

  ModelTimes Run() {
    for (;;) {
      const Grant grant = PassOn(time_.get(), fluid_.get(), rules_);
      if (grant.kind == Grant::kNone) break;
      if (grant.kind == Grant::kWait) {
        const uint32_t rank = time_->wait[grant.index].rank;
        EndWait(time_.get(), grant.index);
        RunHost(rank);
      } else {
        RunExecutor(grant.index);
      }
    }
    ModelTimes times = ends_;
    for (uint32_t i = 0; i < times.size(); ++i) {
      times[i].push_back(time_->participant[i].clock_ns);
    }
    return times;
  }

 private:
  void AwaitTurn(uint32_t rank) {
    BeginWait(time_.get(), {VirtualWait::kTurn, rank, 0, 0, 0, 0, 0, 0}, NowNs(*fluid_));
  }

  void RunHost(uint32_t rank) {
    while (next_action_[rank] < programs_[rank].size()) {
      const ModelAction& action = programs_[rank][next_action_[rank]++];
      const uint64_t now = NowNs(*fluid_);
      if (action.kind == ModelAction::kCompute) {
        Spend(time_.get(), rank, action.ns, now);
        if (!MustYield(*time_, rank)) continue;
        AwaitTurn(rank);
        return;
      }
      if (action.kind == ModelAction::kIssue) {
        queue_[rank].push_back({Spend(time_.get(), rank, 0, now), action.ns});
        ++issued_[rank];
        time_->context[rank].awake = 1;
        continue;
      }
      const uint32_t over = ends_[rank].size() >= issued_[rank] ? 1 : 0;
      BeginWait(time_.get(), {VirtualWait::kOperation, rank, over, rank, 0, issued_[rank], 0, 0},
                now);
      return;
    }
    Leave(time_.get(), rank);
  }

  void RunExecutor(uint32_t me) {
    const uint64_t now = NowNs(*fluid_);
    FluidOp& op = fluid_->op[me][0];
    Rest rest;
    if (op.state == FluidOp::kEnded) {
      ends_[me].push_back(op.ended_ns);
      op.state = FluidOp::kFree;
      rest.progress = true;
    }
    if (op.state == FluidOp::kFree && !queue_[me].empty() && queue_[me].front().issued <= now) {
      const auto ns = static_cast<double>(queue_[me].front().ns);
      op = {FluidOp::kRunning, Engine::kCompute, 1, 0, ns, 0, {1, 0}, 0, 0};
      SetRates(fluid_.get(), rules_);
      queue_[me].pop_front();
    }
    for (const Operation& later : queue_[me]) {
      if (later.issued > now) rest.next_arrival_ns = std::min(rest.next_arrival_ns, later.issued);
    }
    for (VirtualWait& wait : time_->wait) {
      if (wait.kind == VirtualWait::kOperation && wait.executor == me &&
          ends_[me].size() >= wait.target) {
        MakeReady(&wait, now);
      }
    }
    EndTurn(time_.get(), me, rest, now);
  }

  const ModelPrograms& programs_;
  FluidRules rules_;
  std::unique_ptr<Fluid> fluid_ = EmptyFluid();
  std::unique_ptr<VirtualTime> time_ = std::make_unique<VirtualTime>();
  std::vector<size_t> next_action_;
  std::vector<std::deque<Operation>> queue_;
  std::vector<uint64_t> issued_;
  ModelTimes ends_;
};

class Reference {
 public:
  Reference(const ModelPrograms& programs, uint64_t quantum)
      : programs_(programs), quantum_(quantum), host_(programs.size()) {}

  ModelTimes Run() {
    constexpr uint64_t kLongest = 20'000;
    for (now_ = 0; now_ < kLongest; ++now_) {
      EndOperation();
      for (Host& host : host_) RunHost(&host);
      BeginOperation();
      if (running_) {
        ++slice_;
      } else {
        slice_ = 0;
      }
    }
    ModelTimes times;
    for (Host& host : host_) {
      host.ends.push_back(host.clock);
      times.push_back(host.ends);
    }
    return times;
  }

 private:
  struct Host {
    size_t next = 0;
    uint64_t clock = 0;
    bool waits = false;
    size_t issued = 0;
    std::deque<uint64_t> queue;  // all issued by now
    std::vector<uint64_t> ends;
  };

  void EndOperation() {
    if (!running_ || now_ < until_) return;
    running_ = false;
    Host& host = host_[turn_];
    host.ends.push_back(now_);
    if (!host.waits || host.ends.size() < host.issued) return;
    host.waits = false;
    host.clock = now_;
  }

  /// The one whose turn it is goes on, unless it has used up its slice and others want to.
  void BeginOperation() {
    if (running_) return;
    const size_t n = host_.size();
    const size_t first = turn_ < n && (slice_ < quantum_) ? turn_ : turn_ + 1;
    for (size_t i = 0; i < n; ++i) {
      const size_t candidate = (first + i) % n;
      if (host_[candidate].queue.empty()) continue;
      // Only who was idle or follows another one begins a new slice.
      if (candidate != turn_) slice_ = 0;
      turn_ = candidate;
      until_ = now_ + host_[candidate].queue.front();
      host_[candidate].queue.pop_front();
      running_ = true;
      return;
    }
  }

  void RunHost(Host* host) {
    const std::vector<ModelAction>& program = programs_[static_cast<size_t>(host - host_.data())];
    while (!host->waits && host->clock <= now_ && host->next < program.size()) {
      const ModelAction& action = program[host->next++];
      if (action.kind == ModelAction::kCompute) {
        host->clock += action.ns;
      } else if (action.kind == ModelAction::kIssue) {
        host->queue.push_back(action.ns);
        ++host->issued;
      } else {
        host->waits = host->ends.size() < host->issued;
      }
    }
  }

  const ModelPrograms& programs_;
  uint64_t quantum_;
  std::vector<Host> host_;
  uint64_t now_ = 0;
  bool running_ = false;
  uint64_t until_ = 0;
  size_t turn_ = SIZE_MAX;
  uint64_t slice_ = 0;
};

}  // namespace

FluidRules ModelRules(double quantum_ns) {
  FluidRules rules;
  rules.quantum_ns = quantum_ns;
  rules.one_copy_engine = true;
  rules.settles = true;
  rules.exclusive = true;
  return rules;
}

std::unique_ptr<Fluid> EmptyFluid() {
  auto fluid = std::make_unique<Fluid>();
  fluid->turn = kNoTurn;
  return fluid;
}

ModelPrograms RandomPrograms(std::mt19937* random) {
  ModelPrograms programs(1 + (*random)() % 3);
  for (auto& program : programs) {
    const size_t actions = 1 + (*random)() % 20;
    for (size_t i = 0; i < actions; ++i) {
      const uint64_t kind = (*random)() % 5;
      const uint64_t ns = 1 + (*random)() % 30;
      program.push_back({kind < 2   ? ModelAction::kIssue
                         : kind < 4 ? ModelAction::kCompute
                                    : ModelAction::kAwait,
                         ns});
    }
    program.push_back({ModelAction::kAwait, 0});  // who leaves takes its work with it
  }
  return programs;
}

ModelTimes TimesOfCore(const ModelPrograms& programs, uint64_t quantum_ns) {
  return Core(programs, quantum_ns).Run();
}

ModelTimes TimesOfReference(const ModelPrograms& programs, uint64_t quantum_ns) {
  return Reference(programs, quantum_ns).Run();
}

}  // namespace sluice::simgpu
