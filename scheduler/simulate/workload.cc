// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/workload.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "scheduler/simulate/paging.h"
#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/measured.h"

namespace sluice::scheduler::simulate {

namespace {

using trace::BatchTrace;
using trace::EventKind;
using trace::Trace;

Status Invalid(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

Status CheckInputs(const Trace& trace, const Machine& machine) {
  if (trace.operators.empty()) return Invalid("the trace has no operators: nothing tells its time");
  if (trace::IsMeasured(trace)) return Status();
  if (machine.flops_per_s <= 0 || machine.memory_bytes_per_s == 0) {
    return Invalid("machine '" + machine.name +
                   "': flops_per_s and memory_bytes_per_s have to be known");
  }
  return Status();
}

/// The two times whose larger one an operator takes.
struct Bounds {
  double compute_ns;
  double memory_ns;
};

Bounds BoundsOf(const trace::OperatorCost& cost, const Machine& machine) {
  // What a measured operator computes is not known, and neither is the machine perhaps.
  if (cost.ns != 0) return {0, 0};
  return {static_cast<double>(cost.flops) / machine.flops_per_s * 1e9,
          static_cast<double>(cost.bytes) / static_cast<double>(machine.memory_bytes_per_s) * 1e9};
}

double AloneNs(const trace::OperatorCost& cost, const Machine& machine) {
  if (cost.ns != 0) return cost.ns;
  const Bounds bounds = BoundsOf(cost, machine);
  return std::max({bounds.compute_ns, bounds.memory_ns, machine.default_cost.base_ns, 1.0});
}

/// Each block, and the sums that WalkOver reads.
void RoundBlocks(const Trace& trace, uint64_t granule, BatchTrace* at) {
  if (granule == 1) return;
  const uint64_t beside = at->trough_bytes - at->persistent_bytes - at->input_bytes;
  at->persistent_bytes = at->input_bytes = 0;
  for (size_t id = 0; id < at->block_bytes.size(); ++id) {
    uint64_t& bytes = at->block_bytes[id];
    bytes = (bytes + granule - 1) / granule * granule;
    if (trace.blocks[id].kind == trace::BlockKind::kPersistent) at->persistent_bytes += bytes;
    if (trace.blocks[id].kind == trace::BlockKind::kInput) at->input_bytes += bytes;
  }
  at->trough_bytes = at->persistent_bytes + at->input_bytes + beside;
  uint64_t load = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const trace::Event& event = trace.events[i];
    if (event.kind == EventKind::kAlloc) load += at->block_bytes[event.index];
    if (event.kind == EventKind::kFree) load -= at->block_bytes[event.index];
    at->load[i] = load;
  }
}

/// One pass over the events: what the profiler notes at each launch, and the host's calls between.
struct Walk {
  Profile profile;
  std::vector<uint32_t> calls;  // before each launch, and behind the last
};

Walk WalkOver(const Trace& trace, const BatchTrace& at, const Machine& machine) {
  const uint64_t base = at.persistent_bytes + at.input_bytes;
  const std::vector<double> times = LaunchTimes(at, machine);
  double iteration_ns = 0;
  Walk walk;
  Profile& profile = walk.profile;
  profile.base_bytes = at.trough_bytes;
  profile.peak_bytes = std::max(base, at.trough_bytes);
  walk.calls.push_back(0);
  uint64_t before_first = base;  // most that lives before the first launch
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const trace::Event& event = trace.events[i];
    const uint64_t live = base + at.load[i];
    profile.peak_bytes = std::max(profile.peak_bytes, live);
    if (event.kind == EventKind::kOperator) {
      profile.live_before.push_back(live);
      profile.max_live.push_back(live);
      profile.largest_alloc.push_back(0);
      const double ns = times[event.index];
      profile.launch_ns.push_back(static_cast<uint32_t>(std::min<double>(ns, UINT32_MAX)));
      iteration_ns += ns;
      walk.calls.push_back(0);
      continue;
    }
    ++walk.calls.back();
    if (profile.max_live.empty()) {
      before_first = std::max(before_first, live);
      continue;
    }
    profile.max_live.back() = std::max(profile.max_live.back(), live);
    if (event.kind == EventKind::kAlloc) {
      profile.largest_alloc.back() =
          std::max(profile.largest_alloc.back(), at.block_bytes[event.index]);
    }
  }
  constexpr double kMostNs = 0x1p63;  // an iteration of three centuries
  profile.iteration_ns = static_cast<uint64_t>(std::min(iteration_ns, kMostNs));
  profile.live_before.front() = before_first;
  profile.period = static_cast<uint32_t>(profile.live_before.size());
  profile.repetitions = 1;
  profile.timed = true;
  return walk;
}

}  // namespace

std::vector<double> LaunchTimes(const BatchTrace& at, const Machine& machine) {
  std::vector<double> times;
  times.reserve(at.costs.size());
  for (const trace::OperatorCost& cost : at.costs) {
    times.push_back(std::round(AloneNs(cost, machine)));
  }
  return times;
}

Result<Profile> ProfileOf(const Trace& trace, uint64_t batch, const Machine& machine) {
  if (Status bad = CheckInputs(trace, machine); !bad.ok()) return bad;
  const Result<BatchTrace> at = AtBatch(trace, batch);
  if (!at.ok()) return at.status();
  return WalkOver(trace, *at, machine).profile;
}

Result<Workload> MakeWorkload(std::string name, const Trace& trace, uint64_t batch,
                              const Machine& machine, const WorkloadOptions& options) {
  if (Status bad = CheckInputs(trace, machine); !bad.ok()) return bad;
  Result<BatchTrace> at = AtBatch(trace, batch);
  if (!at.ok()) return at.status();
  if (options.granule_bytes == 0) return Invalid("granule: 0 bytes; allowed: from 1");
  RoundBlocks(trace, options.granule_bytes, &*at);
  const Walk walk = WalkOver(trace, *at, machine);
  // With a margin and room for the bases of others.
  constexpr uint64_t kMostUnits = UINT32_MAX / 4;
  if (options.unit_bytes == 0 || walk.profile.peak_bytes / kMostUnits >= options.unit_bytes) {
    return Invalid("unit: " + std::to_string(options.unit_bytes) + " bytes; allowed: from " +
                   std::to_string(walk.profile.peak_bytes / kMostUnits + 1) + ", for a peak of " +
                   std::to_string(walk.profile.peak_bytes));
  }
  Workload workload;
  workload.name = std::move(name);
  workload.gap_ns = options.gap_ns;
  workload.kernels.reserve(at->costs.size());
  for (size_t i = 0; i < at->costs.size(); ++i) {
    const Bounds bounds = BoundsOf(at->costs[i], machine);
    Kernel kernel;
    kernel.alone_ns = AloneNs(at->costs[i], machine);
    kernel.calls = walk.calls[i];
    kernel.demand = machine.DemandOf(
        {bounds.compute_ns / kernel.alone_ns, bounds.memory_ns / kernel.alone_ns}, kernel.alone_ns);
    workload.alone_ns += kernel.alone_ns;
    workload.kernels.push_back(kernel);
  }
  if (options.touched == Touched::kKept) {
    Result<Touches> kept = KeptTouchesOf(trace, *at, PagingOptions().block_bytes);
    if (!kept.ok()) return kept.status();
    workload.touches = *std::move(kept);
  } else if (options.touched == Touched::kBlocks) {
    workload.touches = TouchesOf(trace, *at);
  }
  workload.calls_after = walk.calls.back();
  workload.plan = PlanGates(walk.profile, options.unit_bytes, options.gates);
  workload.base_bytes = walk.profile.base_bytes;
  workload.peak_bytes = walk.profile.peak_bytes;
  workload.base_units =
      static_cast<Units>((workload.base_bytes + options.unit_bytes - 1) / options.unit_bytes);
  return workload;
}

Result<Workload> LiveWorkload(std::string name, const Profile& profile, const CyclePlan& plan,
                              uint64_t unit_bytes, double iteration_ns) {
  if (profile.period == 0 || plan.gates.empty() || unit_bytes == 0) {
    return Invalid("job '" + name + "': its profile has no launches or gates");
  }
  // A daemon that took over knows how long an iteration takes, and not each launch.
  const bool timed = profile.launch_ns.size() >= profile.period;
  const double mean = static_cast<double>(profile.iteration_ns) / profile.period;
  Workload workload;
  workload.name = std::move(name);
  workload.kernels.resize(profile.period);
  for (uint32_t n = 0; n < profile.period; ++n) {
    Kernel& kernel = workload.kernels[n];
    kernel.alone_ns = std::max(1.0, timed ? profile.launch_ns[n] : mean);
    kernel.host_ns = iteration_ns / profile.period;
    workload.alone_ns += kernel.alone_ns;
  }
  workload.plan = plan;
  for (GatePlan& gate : workload.plan.gates) gate.launch = std::min(gate.launch, profile.period);
  workload.base_bytes = profile.base_bytes;
  workload.peak_bytes = profile.peak_bytes;
  workload.base_units = static_cast<Units>((profile.base_bytes + unit_bytes - 1) / unit_bytes);
  return workload;
}

bool WithinPool(std::vector<Workload>* jobs, Units pool_units, uint64_t unit_bytes) {
  uint64_t bases = 0;
  for (const Workload& job : *jobs) bases += job.base_units;
  bool tight = false;
  for (Workload& job : *jobs) {
    uint64_t left = pool_units - std::min<uint64_t>(pool_units, bases - job.base_units);
    if (job.limit != 0) left = std::min<uint64_t>(left, job.limit);
    const uint64_t lives = (job.peak_bytes + unit_bytes - 1) / unit_bytes;
    const uint64_t most = std::max(left, lives);
    if (job.plan.peak_units <= most) continue;
    job.plan = WithinLimit(std::move(job.plan), static_cast<Units>(most));
    tight = true;
  }
  return tight;
}

Workload Coarse(const Workload& workload, size_t most) {
  if (workload.kernels.size() <= most) return workload;
  Workload coarse = workload;
  coarse.kernels.clear();
  const double piece = workload.alone_ns / static_cast<double>(most);
  size_t gate = 0;
  for (size_t i = 0; i < workload.kernels.size(); ++i) {
    bool at_gate = false;
    for (; gate < coarse.plan.gates.size() && workload.plan.gates[gate].launch == i; ++gate) {
      coarse.plan.gates[gate].launch = static_cast<uint32_t>(coarse.kernels.size());
      at_gate = true;
    }
    const Kernel& next = workload.kernels[i];
    if (at_gate || coarse.kernels.empty() ||
        coarse.kernels.back().alone_ns + next.alone_ns > piece) {
      coarse.kernels.push_back(next);
      continue;
    }
    Kernel& kernel = coarse.kernels.back();
    const double part = next.alone_ns / (kernel.alone_ns + next.alone_ns);
    kernel.demand.sm += (next.demand.sm - kernel.demand.sm) * part;
    kernel.demand.bandwidth += (next.demand.bandwidth - kernel.demand.bandwidth) * part;
    kernel.alone_ns += next.alone_ns;
    kernel.calls += next.calls;
    kernel.host_ns += next.host_ns;
    kernel.launches += next.launches;
  }
  return coarse;
}

}  // namespace sluice::scheduler::simulate
