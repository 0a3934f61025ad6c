// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/decide_states.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace sluice::bench {
namespace {

using scheduler::Extents;
using scheduler::JobId;
using scheduler::Ledger;
using scheduler::Request;
using scheduler::RequestKind;
using scheduler::Units;

constexpr uint32_t kSteps = 10;  // of an iteration; half of them up, half of them down
constexpr uint32_t kIterations = 12;

void Must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "sluice_bench: %s\n", status.message().c_str());
  std::abort();
}

struct Cycler {
  /// `eighths` of what the bases leave may one job use beside its base.
  Cycler(const DecideShape& shape, Units eighths)
      : jobs(shape.jobs), ledger(shape.pool_units, uint64_t{8} << 20), turns(shape.jobs) {
    config.lanes = jobs;
    const uint32_t each = std::max(1u, shape.pieces / jobs);
    const Units length = std::max(1u, shape.pool_units / 4 / (each * jobs));
    base = each * length;
    piece = std::max(2u, shape.pool_units / 64);
    peak = base + (shape.pool_units - base * jobs) * eighths / 8;
    for (JobId job = 1; job <= jobs; ++job) {
      Extents pieces;
      for (uint32_t k = 0; k < each; ++k) pieces.push_back({(k * jobs + job - 1) * length, length});
      Must(ledger.Admit(job, "job", base, peak));
      Must(ledger.StartUnprofiled(job));
      Must(ledger.Grant(job, pieces));
      Must(ledger.ReachTrough(job, true));
    }
  }

  Units NeedAt(uint32_t step) const {
    const uint32_t height = std::min(step + 1, kSteps - step);
    return base + (peak - base) * height / (kSteps / 2);
  }

  bool Waits(JobId job) const {
    return std::any_of(waiting.begin(), waiting.end(),
                       [job](const Request& request) { return request.job == job; });
  }

  void Ask(JobId job, RequestKind kind, Units need) {
    Request request;
    request.job = job;
    request.kind = kind;
    request.gate = turns[job - 1].step;
    request.units = need - std::min(need, ledger.Find(job)->leased);
    request.contiguous = std::min(request.units, piece);
    request.claim = peak;
    request.piece = piece;
    request.ticket = next_ticket++;
    waiting.push_back(request);
  }

  void ReleaseTo(JobId job, Units keep) {
    const scheduler::Job& known = *ledger.Find(job);
    Extents loose = Subtract(ledger.map().Held(job, scheduler::UnitState::kLeased), known.base);
    Units surplus = known.leased - std::min(keep, known.leased);
    Extents released;
    for (const scheduler::Extent& extent : loose) {
      const Units length = std::min(surplus, extent.length);
      if (length > 0) released.push_back({extent.offset, length});
      surplus -= length;
    }
    if (released.empty()) return;
    Must(ledger.Release(job, released, next_release));
    turns[job - 1].open = next_release++;
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
      ReleaseTo(job, base);
      Fence(job);
      Must(ledger.ReachTrough(job, true));
      turn.step = 0;
      ++turn.iterations;
      return;
    }
    const Units need = NeedAt(turn.step);
    if (turn.step > 0) ReleaseTo(job, need);
    Ask(job, turn.step == 0 ? RequestKind::kGate0 : RequestKind::kGate, need);
    ++turn.step;
  }

  struct Turn {
    uint32_t step = 0;
    uint32_t iterations = 0;
    std::optional<scheduler::ReleaseId> open;
  };

  JobId jobs;
  Ledger ledger;
  std::vector<Turn> turns;
  scheduler::Config config;
  Units base = 0;
  Units peak = 0;
  Units piece = 0;
  std::vector<Request> waiting;
  uint64_t next_ticket = 1;
  scheduler::ReleaseId next_release = 1;
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
        Must(scheduler::Apply(*decision, cycler.waiting, &cycler.ledger));
        CountOvertaken(*decision, &cycler.waiting);
        if (decision->kind == scheduler::Decision::Kind::kReclaim) continue;
        cycler.waiting.erase(cycler.waiting.begin() +
                             static_cast<std::ptrdiff_t>(decision->request));
      }
    }
  }
  for (const Cycler::Turn& turn : cycler.turns) {
    if (turn.iterations == 0) Must(Status(StatusCode::kInternal, "a job never came to its trough"));
  }
  return result;
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
    cycler.Ask(job, past ? RequestKind::kLease : RequestKind::kGate0,
               past ? cycler.peak : cycler.base + free / 2);
  }
  if (scheduler::Next(ledger, cycler.waiting, cycler.config)) {
    Must(Status(StatusCode::kInternal, "somebody can go on"));
  }
  return {ledger, cycler.waiting};
}

}  // namespace sluice::bench
