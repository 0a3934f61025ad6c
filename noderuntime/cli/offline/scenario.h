// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "common/machine.h"
#include "common/status.h"
#include "noderuntime/cli/offline/scenario_options.h"
#include "scheduler/simulate/simulate.h"
#include "scheduler/trace/trace.h"

namespace sluice::cli {

/// A memory trace as it was read.
struct NamedTrace {
  std::string name;  // of its file, without folder and ending
  scheduler::trace::Trace trace;
};

/// An error names the file, and the line.
Result<NamedTrace> ReadTrace(const std::string& file);

/// What ScenarioOptions ask for, with the machine at hand.
class Scenario {
 public:
  /// `shipped`: the folder of the machine files that came with the program.
  static Result<Scenario> Load(const ScenarioOptions& options, const std::string& shipped);
  /// The same on this machine, whatever `options.gpu` says.
  static Result<Scenario> On(Machine machine, const ScenarioOptions& options);

  const Machine& machine() const { return machine_; }
  uint64_t PoolBytes(size_t jobs) const;
  /// What of it the jobs may use: no more than the budget.
  uint64_t UsableBytes(size_t jobs) const;
  /// What a job has to be given at most.
  uint64_t NeededBytes(const scheduler::simulate::Workload& job) const {
    return job.plan.peak_units * asked_.unit_bytes;
  }
  /// " and --placing pieces" where jobs ask for more than lives, for an error.
  std::string HowPlaced() const;
  /// Whether a budget was asked for.
  bool HasBudget() const { return asked_.setting.budget != 0; }
  /// kInvalidArgument: a flag asks for more than the pool. kResourceExhausted: the contexts of so
  /// many jobs leave none. Share asks as well.
  Status CheckPool(size_t jobs) const;
  /// The jobs of `traces`, each at its batch, as Share wants them.
  Result<std::vector<scheduler::simulate::Workload>> Make(
      const std::vector<NamedTrace>& traces, const std::vector<uint64_t>& batches) const;
  /// One of them. Share takes those that touch nothing as long as they fit.
  Result<scheduler::simulate::Workload> Make(
      const NamedTrace& trace, uint64_t batch,
      scheduler::simulate::Touched touched = scheduler::simulate::Touched::kNothing) const;

  /// How a pool is shared by these jobs.
  struct Answer {
    scheduler::simulate::Setting setting;  // found, or as asked for
    scheduler::simulate::Outcome outcome;
    double temporal = 0;   // Outcome::Throughput of taking turns; 0: does not fit
    bool paged = false;    // spatial: the peaks are more than the pool (Outcome::paging)
    bool tight = false;    // a job has room for what lives and for less than it asks for
    double unlimited = 0;  // the same with memory for everybody, at the best of three offsets
  };
  /// Each job begins `stagger_ns` after the one before it: those that begin together, and never
  /// wait for memory, may stay in step and be idle at the same time. kResourceExhausted: they do
  /// not fit, or what lives does not where they ask for more (ScenarioOptions::placing).
  /// kInvalidArgument: their iterations take longer than is simulated.
  Result<Answer> Share(std::vector<scheduler::simulate::Workload> jobs,
                       double stagger_ns = 0) const;
  /// Whether they fit at all under the policy; with spatial, without paging.
  bool Fits(const std::vector<scheduler::simulate::Workload>& jobs) const;

 private:
  Result<Answer> Play(const std::vector<scheduler::simulate::Workload>& jobs,
                      double stagger_ns) const;
  scheduler::simulate::Options Options(size_t jobs) const;
  scheduler::Units WholeUnits(uint64_t bytes) const;
  Status CheckSlices(size_t jobs) const;
  bool Pages(const std::vector<scheduler::simulate::Workload>& jobs) const;

  ScenarioOptions asked_;
  Machine machine_;
};

}  // namespace sluice::cli
