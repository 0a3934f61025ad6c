// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/fluid_device.h"

#include <algorithm>
#include <cmath>

#include "simgpu/sharing/futex.h"

namespace sluice::simgpu {
namespace {

static_assert(kFluidContexts == kMaxExecutors);

/// What a host that is late may make good of an operation if others used the SMs meanwhile: more
/// would give away the same time twice.
constexpr double kMostCreditNs = 1e6;
/// Rates rise when an operation of another context ends, which nobody tells: look again after this.
constexpr uint64_t kLookAgainNs = 200'000;
constexpr uint64_t kShortestSleepNs = 1'000;

/// Operations of an executor that was killed while it carried them out stop nobody.
void DropTheDead(StatePage* page, const FluidRules& rules) {
  Fluid& fluid = page->fluid;
  for (uint32_t e = 0; e < kMaxExecutors; ++e) {
    bool stuck = false;
    for (const FluidOp& op : fluid.op[e]) {
      stuck = stuck || (op.state == FluidOp::kRunning && op.body_done == 0);
    }
    if (!stuck || (page->executor[e].used != 0 && !ProcessGone(page->executor[e].id))) continue;
    for (FluidOp& op : fluid.op[e]) op.state = FluidOp::kFree;
    SetRates(&fluid, rules);
  }
}

void AdvanceToNow(const GpuState& gpu, const FluidRules& rules) {
  StatePage* page = gpu.page();
  const uint64_t now = MonotonicNs();
  const double passed = now > page->fluid_mark_ns ? static_cast<double>(now - page->fluid_mark_ns) /
                                                        gpu.machine().time_scale
                                                  : 0;
  page->fluid_mark_ns = std::max(now, page->fluid_mark_ns);
  const uint64_t switches = page->fluid.switches;
  Advance(&page->fluid, rules, passed);
  if (page->fluid.stalled != 0) DropTheDead(page, rules);
  page->token_switches += page->fluid.switches - switches;
  page->busy_ns = static_cast<uint64_t>(page->fluid.busy_ns);
}

/// The time since the operation could have started counts for it. If it would be over by now, it
/// ended when it would have, and the next one of its stream starts from there.
void MakeGood(Fluid* fluid, uint32_t me, FluidOp* op, double since) {
  double late = std::max(fluid->clock_ns - since, 0.0);
  for (uint32_t context = 0; context < kFluidContexts; ++context) {
    if (context == me || fluid->computed_until[context] <= since) continue;
    late = std::min(late, kMostCreditNs);
  }
  const double used = std::min(late, TimeToEnd(*op));
  if (op->rate <= 0 || used <= 0) return;
  op->remaining_ns -= used * op->rate;
  op->early_ns = late - used;
  if (op->engine != Engine::kCompute) return;
  for (const auto& flights : fluid->op) {
    for (const FluidOp& other : flights) {
      if (&other != op && other.engine == Engine::kCompute && other.rate > 0 &&
          other.state == FluidOp::kRunning) {
        return;  // the GPU was busy anyway
      }
    }
  }
  fluid->busy_ns += used;
}

}  // namespace

uint64_t FluidClockLocked(const GpuState& gpu) {
  if (gpu.machine().virtual_time) return NowNs(gpu.page()->fluid);
  AdvanceToNow(gpu, RulesOf(gpu.machine()));
  return static_cast<uint64_t>(gpu.page()->fluid.clock_ns);
}

FluidDevice::FluidDevice(GpuState* gpu, uint32_t executor)
    : gpu_(gpu), me_(executor), rules_(RulesOf(gpu->machine())) {
  const StateLock lock(gpu_->page());
  AdvanceLocked();
  // The place may be that of an executor that died.
  for (FluidOp& op : gpu_->page()->fluid.op[me_]) op.state = FluidOp::kFree;
  SetRates(&gpu_->page()->fluid, rules_);
}

/// In virtual time the clock stands while an executor works.
void FluidDevice::AdvanceLocked() {
  if (!gpu_->machine().virtual_time) AdvanceToNow(*gpu_, rules_);
}

uint64_t FluidDevice::Clock() {
  const StateLock lock(gpu_->page());
  return FluidClockLocked(*gpu_);
}

std::optional<uint32_t> FluidDevice::Begin(uint64_t declared_ns, Engine engine,
                                           const GpuDemand& demand, uint64_t since,
                                           bool is_kernel) {
  StatePage* page = gpu_->page();
  const StateLock lock(page);
  AdvanceLocked();
  Fluid& fluid = page->fluid;
  if (rules_.exclusive) engine = Engine::kCompute;  // it is alone, wherever it runs
  for (uint32_t i = 0; i < kFlights; ++i) {
    FluidOp& op = fluid.op[me_][i];
    if (op.state != FluidOp::kFree) continue;
    op = {FluidOp::kRunning, engine, 0, 0, static_cast<double>(declared_ns), 0, demand, 0, 0};
    SetRates(&fluid, rules_);
    if (!gpu_->machine().virtual_time) MakeGood(&fluid, me_, &op, static_cast<double>(since));
    declared_[i] = {declared_ns, is_kernel};
    if (page->first_start_ns == UINT64_MAX) {
      page->first_start_ns = static_cast<uint64_t>(fluid.clock_ns);
    }
    return i;
  }
  return std::nullopt;
}

void FluidDevice::BodyDone(uint32_t flight) {
  const StateLock lock(gpu_->page());
  // First the time until now, in which the clock may have waited for this.
  AdvanceLocked();
  gpu_->page()->fluid.op[me_][flight].body_done = 1;
  if (!gpu_->machine().virtual_time) Advance(&gpu_->page()->fluid, rules_, 0);
}

std::optional<uint64_t> FluidDevice::Land(uint32_t flight) {
  StatePage* page = gpu_->page();
  const StateLock lock(page);
  AdvanceLocked();
  FluidOp& op = page->fluid.op[me_][flight];
  if (op.state == FluidOp::kRunning) return std::nullopt;
  op.state = FluidOp::kFree;
  page->last_end_ns = std::max(page->last_end_ns, op.ended_ns);
  ProcessEntry& process = page->process[page->executor[me_].process];
  process.busy_ns.fetch_add(declared_[flight].ns);
  if (declared_[flight].is_kernel) {
    ++page->kernels;
    process.kernels.fetch_add(1);
  }
  return op.ended_ns;
}

void FluidDevice::Cancel(uint32_t flight) {
  const StateLock lock(gpu_->page());
  AdvanceLocked();
  gpu_->page()->fluid.op[me_][flight].state = FluidOp::kFree;
  SetRates(&gpu_->page()->fluid, rules_);
}

uint64_t FluidDevice::RealTimeToNext() {
  const StateLock lock(gpu_->page());
  AdvanceLocked();
  double next = static_cast<double>(kLookAgainNs);
  for (const FluidOp& op : gpu_->page()->fluid.op[me_]) {
    if (op.state == FluidOp::kEnded) return kShortestSleepNs;
    if (op.state != FluidOp::kRunning) continue;
    next = std::min(next, TimeToEnd(op) * gpu_->machine().time_scale);
  }
  return std::max(static_cast<uint64_t>(next), kShortestSleepNs);
}

}  // namespace sluice::simgpu
