// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/fluid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace sluice::simgpu {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kOver = 1e-3;  // less than this is nothing left (ns)

bool Computes(const FluidOp& op) {
  return op.state == FluidOp::kRunning && op.engine == Engine::kCompute;
}

bool HasWork(const Fluid& fluid, uint32_t context) {
  return std::any_of(std::begin(fluid.op[context]), std::end(fluid.op[context]), Computes);
}

/// The context with work that follows `turn` in a circle; `turn` itself comes last.
uint32_t NextTurn(const Fluid& fluid) {
  const uint32_t start = fluid.turn == kNoTurn ? kFluidContexts - 1 : fluid.turn;
  for (uint32_t i = 1; i <= kFluidContexts; ++i) {
    const uint32_t context = (start + i) % kFluidContexts;
    if (HasWork(fluid, context)) return context;
  }
  return kNoTurn;
}

bool OthersWait(const Fluid& fluid) {
  const uint32_t next = NextTurn(fluid);
  return next != kNoTurn && next != fluid.turn;
}

void PassTurn(Fluid* fluid, const FluidRules& rules) {
  const uint32_t next = NextTurn(*fluid);
  if (next == kNoTurn) return;  // the last one keeps it: coming back to it costs nothing
  fluid->slice_ns = 0;
  if (next == fluid->turn) return;
  if (fluid->turn != kNoTurn) {
    ++fluid->switches;
    fluid->slice_ns = -rules.switch_ns;
  }
  fluid->turn = next;
}

template <typename Use>
void ForRunning(Fluid* fluid, const Use& use) {
  for (uint32_t context = 0; context < kFluidContexts; ++context) {
    for (FluidOp& op : fluid->op[context]) {
      if (op.state == FluidOp::kRunning) use(context, op);
    }
  }
}

}  // namespace

FluidRules RulesOf(const Machine& machine) {
  const bool exclusive = machine.virtual_time && !machine.overlaps();
  return {machine.sharing,
          static_cast<double>(machine.quantum_ns),
          exclusive ? 0.0 : static_cast<double>(machine.switch_ns),
          machine.copy_engines < 2,
          machine.virtual_time,
          exclusive};
}

double TimeToEnd(const FluidOp& op) { return op.rate > 0 ? op.remaining_ns / op.rate : kNever; }

void SetRates(Fluid* fluid, const FluidRules& rules) {
  const bool slices = rules.sharing == Sharing::kTimeSlice;
  if (slices && !rules.settles && (fluid->turn == kNoTurn || !HasWork(*fluid, fluid->turn))) {
    PassTurn(fluid, rules);
  }
  std::vector<FluidOp*> compute;
  std::vector<GpuDemand> demands;
  std::vector<FluidOp*> link[2];
  ForRunning(fluid, [&](uint32_t context, FluidOp& op) {
    op.rate = 0;
    if (op.engine != Engine::kCompute) {
      link[op.engine == Engine::kToHost && !rules.one_copy_engine ? 1 : 0].push_back(&op);
    } else if (!slices || (context == fluid->turn && fluid->slice_ns >= 0)) {
      compute.push_back(&op);
      demands.push_back(op.demand);
    }
  });
  const std::vector<double> rates = SharedRates(demands);
  for (size_t i = 0; i < compute.size(); ++i) compute[i]->rate = rates[i];
  for (const std::vector<FluidOp*>& copies : link) {
    for (FluidOp* op : copies) op->rate = 1.0 / static_cast<double>(copies.size());
  }
}

void Advance(Fluid* fluid, const FluidRules& rules, double ns) {
  const bool slices = rules.sharing == Sharing::kTimeSlice;
  for (;;) {
    double step = ns;
    bool computes = false;
    bool ended = false;
    bool late = false;
    ForRunning(fluid, [&](uint32_t, FluidOp& op) {
      step = std::min(step, TimeToEnd(op));
      computes = computes || (op.engine == Engine::kCompute && op.rate > 0);
      if (op.rate > 0 && op.remaining_ns <= kOver) (op.body_done != 0 ? ended : late) = true;
    });
    if (ended) {
      ForRunning(fluid, [&](uint32_t, FluidOp& op) {
        if (op.rate <= 0 || op.remaining_ns > kOver || op.body_done == 0) return;
        op.state = FluidOp::kEnded;
        op.ended_ns = static_cast<uint64_t>(std::llround(fluid->clock_ns - op.early_ns));
      });
      SetRates(fluid, rules);
      continue;
    }
    fluid->stalled = late ? 1 : 0;
    if (late) return;
    const bool changing = slices && fluid->slice_ns < 0 && fluid->turn != kNoTurn;
    const bool waited_for = slices && !rules.exclusive && computes && OthersWait(*fluid);
    if (waited_for && fluid->slice_ns >= rules.quantum_ns - kOver) {
      PassTurn(fluid, rules);
      SetRates(fluid, rules);
      continue;
    }
    if (ns <= kOver) return;
    if (waited_for) step = std::min(step, rules.quantum_ns - fluid->slice_ns);
    if (changing) step = std::min(step, -fluid->slice_ns);
    fluid->clock_ns += step;
    ForRunning(fluid, [&](uint32_t context, FluidOp& op) {
      op.remaining_ns = std::max(op.remaining_ns - step * op.rate, 0.0);
      if (op.rate > 0) op.begun = 1;
      if (op.engine != Engine::kCompute || op.rate <= 0) return;
      fluid->computed_until[context] = fluid->clock_ns;
    });
    if (computes) {
      fluid->busy_ns += step;
      fluid->slice_ns += step;
    }
    if (changing) {
      fluid->slice_ns += step;
      if (fluid->slice_ns > -kOver) {
        fluid->slice_ns = 0;
        SetRates(fluid, rules);
      }
    }
    ns -= step;
  }
}

void Settle(Fluid* fluid, const FluidRules& rules) {
  if (rules.sharing == Sharing::kTimeSlice) {
    const bool works = fluid->turn != kNoTurn && HasWork(*fluid, fluid->turn);
    if (!works) {
      fluid->slice_ns = std::min(fluid->slice_ns, 0.0);  // whoever was idle begins a new slice
      PassTurn(fluid, rules);
    } else if (rules.exclusive && OthersWait(*fluid) &&
               fluid->slice_ns >= rules.quantum_ns - kOver &&
               std::none_of(std::begin(fluid->op[fluid->turn]), std::end(fluid->op[fluid->turn]),
                            [](const FluidOp& op) { return Computes(op) && op.begun != 0; })) {
      PassTurn(fluid, rules);
    }
  }
  SetRates(fluid, rules);
}

double TimeToNext(const Fluid& fluid, const FluidRules& rules) {
  double next = kNever;
  bool computes = false;
  for (const auto& flights : fluid.op) {
    for (const FluidOp& op : flights) {
      if (op.state != FluidOp::kRunning) continue;
      next = std::min(next, TimeToEnd(op));
      computes = computes || (op.engine == Engine::kCompute && op.rate > 0);
    }
  }
  if (rules.sharing != Sharing::kTimeSlice || fluid.turn == kNoTurn) return next;
  if (fluid.slice_ns < 0 && HasWork(fluid, fluid.turn)) next = std::min(next, -fluid.slice_ns);
  if (computes && !rules.exclusive && OthersWait(fluid)) {
    next = std::min(next, std::max(rules.quantum_ns - fluid.slice_ns, 0.0));
  }
  return next;
}

}  // namespace sluice::simgpu
