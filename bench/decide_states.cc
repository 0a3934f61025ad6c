// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/decide_states.h"

#include <algorithm>
#include <optional>

namespace sluice::bench {
namespace {

using scheduler::Extents;
using scheduler::JobId;
using scheduler::Ledger;
using scheduler::RequestKind;
using scheduler::Units;

constexpr uint32_t kSteps = 10;  // of an iteration; half of them up, half of them down
constexpr uint32_t kIterations = 12;

struct Cycler : DecidePool {
  Cycler(const DecideShape& shape, Units eighths) : DecidePool(shape, eighths), turns(shape.jobs) {
    config.lanes = jobs;
  }

  Units NeedAt(uint32_t step) const {
    const uint32_t height = std::min(step + 1, kSteps - step);
    return base + (peak - base) * height / (kSteps / 2);
  }

  void GiveBack(JobId job, Units keep) {
    if (const auto release = ReleaseTo(job, keep, From::kLow)) turns[job - 1].open = release;
  }

  void Fence(JobId job) {
    if (auto& open = turns[job - 1].open) {
      Must(ledger.Fenced(job, *open));
      open.reset();
    }
  }

  /// The job's next step; what it gave back in its last one is fenced now.
  void Step(JobId job) {
    Turn& turn = turns[job - 1];
    Fence(job);
    if (turn.step == kSteps) {
      GiveBack(job, base);
      Fence(job);
      Must(ledger.ReachTrough(job, true));
      turn.step = 0;
      ++turn.iterations;
      return;
    }
    const Units need = NeedAt(turn.step);
    if (turn.step > 0) GiveBack(job, need);
    Ask(job, turn.step == 0 ? RequestKind::kGate0 : RequestKind::kGate, turn.step, need);
    ++turn.step;
  }

  struct Turn {
    uint32_t step = 0;
    uint32_t iterations = 0;
    std::optional<scheduler::ReleaseId> open;
  };

  std::vector<Turn> turns;
  scheduler::Config config;
};

}  // namespace

DecideSequence Cycle(const DecideShape& shape) {
  Cycler cycler(shape, 3);
  DecideSequence result;
  for (uint32_t round = 0; round < kIterations * (kSteps + 1); ++round) {
    for (JobId job = 1; job <= shape.jobs; ++job) {
      if (cycler.Waits(job)) {
        cycler.Fence(job);  // its GPU goes on while it waits
      } else {
        cycler.Step(job);
      }
      for (;;) {
        result.states.push_back({cycler.ledger, cycler.waiting});
        result.considered += cycler.waiting.size();
        const auto decision = scheduler::Next(cycler.ledger, cycler.waiting, cycler.config);
        if (!decision) break;
        ++result.decided;
        cycler.Make(*decision);
      }
    }
  }
  for (const Cycler::Turn& turn : cycler.turns) {
    if (turn.iterations == 0) Must(Status(StatusCode::kInternal, "a job never came to its trough"));
  }
  return result;
}

DecideSequence WithoutAUnitOfTheBases(DecideSequence sequence) {
  for (DecideState& state : sequence.states) {
    const std::vector<scheduler::Job> jobs = state.ledger.jobs();
    for (const scheduler::Job& job : jobs) {
      const Extents unit = {{job.base.front().offset, 1}};
      if (!job.past_gate() || !job.missing.empty()) continue;
      constexpr scheduler::ReleaseId kRelease = 1'000'000;
      Must(state.ledger.Release(job.id, unit, kRelease));
      Must(state.ledger.Fenced(job.id, kRelease));
      Must(state.ledger.Reclaim(job.id, unit));
    }
  }
  return sequence;
}

DecideState AllWait(const DecideShape& shape) {
  Cycler cycler({shape.jobs + 1, shape.pool_units, shape.pieces}, 6);
  Ledger& ledger = cycler.ledger;
  const JobId last = shape.jobs + 1;
  const JobId inside = std::max(1u, shape.jobs / 2);
  const Units free = ledger.free();
  Units at = shape.pool_units - free;
  for (JobId job = 1; job <= inside; ++job) {
    const Units units = free / 4 / inside;
    Must(ledger.OpenGate(job, {.claim = cycler.peak, .piece = cycler.piece}));
    Must(ledger.Grant(job, {{at, units}}));
    at += units;
  }
  const Extents rest = {{at, cycler.peak - cycler.base}};
  Must(ledger.OpenGate(last, {.claim = cycler.peak, .piece = cycler.piece}));
  Must(ledger.Grant(last, rest));
  Must(ledger.Release(last, rest, 1));
  Must(ledger.ReachTrough(last, false));
  for (JobId job = 1; job <= shape.jobs; ++job) {
    const bool past = job <= inside;
    cycler.Ask(job, past ? RequestKind::kLease : RequestKind::kGate0, 0,
               past ? cycler.peak : cycler.base + free / 2);
  }
  if (scheduler::Next(ledger, cycler.waiting, cycler.config)) {
    Must(Status(StatusCode::kInternal, "somebody can go on"));
  }
  return {ledger, cycler.waiting};
}

}  // namespace sluice::bench
