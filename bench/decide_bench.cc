// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "bench/decide_live.h"
#include "bench/decide_states.h"
#include "bench/report.h"
#include "scheduler/policy/policies.h"
#include "scheduler/safety/safety.h"

/// What a decision of the daemon costs, and a check of the safe state in it. A call of Next in
/// states as they follow one another; each with as many that answer nothing as a node has.
namespace sluice::bench {
namespace {

scheduler::Config ConfigOf(const DecideShape& shape) {
  scheduler::Config config;
  config.lanes = shape.jobs;
  return config;
}

void Decisions(benchmark::State& state, const DecideShape& shape) {
  const DecideSequence sequence = Cycle(shape);
  const scheduler::Config config = ConfigOf(shape);
  size_t at = 0;
  for (auto _ : state) {
    const DecideState& now = sequence.states[at];
    benchmark::DoNotOptimize(scheduler::Next(now.ledger, now.requests, config));
    if (++at == sequence.states.size()) at = 0;
  }
  state.counters[kWaitingCounter] =
      static_cast<double>(sequence.considered) / static_cast<double>(sequence.states.size());
  state.counters[kAnsweredCounter] =
      static_cast<double>(sequence.decided) / static_cast<double>(sequence.states.size());
}

void AllWaiting(benchmark::State& state, const DecideShape& shape) {
  const DecideState now = AllWait(shape);
  const scheduler::Config config = ConfigOf(shape);
  for (auto _ : state) {
    benchmark::DoNotOptimize(scheduler::Next(now.ledger, now.requests, config));
  }
}

void SafetyChecks(benchmark::State& state, const DecideShape& shape, bool whole_bases) {
  const DecideSequence sequence = whole_bases ? Cycle(shape) : WithoutAUnitOfTheBases(Cycle(shape));
  size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(scheduler::IsSafe(sequence.states[at].ledger));
    if (++at == sequence.states.size()) at = 0;
  }
}

/// A decision with all that it takes: the calls that answer nothing, when to ask again, and keeping
/// what is predicted. What else a node does is `replayed`, in the same run.
void Live(benchmark::State& state, const LiveShape& shape, bool replayed) {
  constexpr uint32_t kIterations = 16;
  const LiveNode known(shape);
  const Answers answers = LiveNode(known).Play(kIterations);
  const auto decided = static_cast<benchmark::IterationCount>(answers.decided());
  while (state.KeepRunningBatch(decided)) {
    LiveNode node = known;
    if (replayed) {
      node.Replay(kIterations, answers);
    } else {
      node.Play(kIterations);
    }
  }
  state.counters[kAnsweredCounter] =
      static_cast<double>(answers.decided()) / static_cast<double>(answers.next.size());
}

const int kRegistered = [] {
  for (const scheduler::PolicyEntry& policy : scheduler::Policies()) {
    for (const LiveCell& cell : kLiveCells) {
      const LiveShape shape{std::string(policy.name), cell.lanes, cell.gates};
      for (const bool replayed : {false, true}) {
        benchmark::RegisterBenchmark(LiveName(shape.policy, cell, replayed).c_str(), Live, shape,
                                     replayed);
      }
    }
  }
  for (const scheduler::JobId jobs : {2u, 4u, 8u}) {
    for (const scheduler::Units pool : {64u, 512u, 4096u}) {
      for (const uint32_t pieces : {10u, 1000u}) {
        if (pieces > pool / 4) continue;
        const DecideShape shape{jobs, pool, pieces};
        const std::string suffix = "/" + std::to_string(jobs) + "_jobs/" + std::to_string(pool) +
                                   "_units/" + std::to_string(pieces) + "_pieces";
        benchmark::RegisterBenchmark(("decide/next" + suffix).c_str(), Decisions, shape);
        benchmark::RegisterBenchmark(("decide/all_wait" + suffix).c_str(), AllWaiting, shape);
        benchmark::RegisterBenchmark(("decide/safety" + suffix).c_str(), SafetyChecks, shape, true);
        benchmark::RegisterBenchmark(("decide/safety_missing" + suffix).c_str(), SafetyChecks,
                                     shape, false);
      }
    }
  }
  return 0;
}();

}  // namespace
}  // namespace sluice::bench
