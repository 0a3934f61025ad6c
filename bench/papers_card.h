// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/machine.h"
#include "common/status.h"
#include "scheduler/profile/gates.h"
#include "scheduler/simulate/simulate.h"
#include "scheduler/trace/trace.h"

namespace sluice::bench {

using Traces = std::map<std::string, scheduler::trace::Trace>;

/// The recorded models (data/traces). An error names the file.
Result<Traces> ReadTraces();

/// Their names, in the order of the papers' tables.
const std::vector<std::string>& ModelNames();
/// With those that only Zico's tables look at.
const std::vector<std::string>& TraceNames();

/// All policies that share memory within iterations, as they are registered. Taking turns
/// (`temporal`) is what they are measured by.
std::vector<std::string> PolicyNames();

inline constexpr double kGibibyte = 1024.0 * 1024 * 1024;

/// Groups of the papers' `split_size`: a gate wherever memory has changed by `split_gib`, of a job
/// with a peak of `peak_bytes`.
scheduler::GateOptions GatesEvery(double split_gib, uint64_t peak_bytes);

/// How jobs did together.
struct Together {
  double throughput = 0;       // Outcome::Throughput; 0: they did not run
  double samples_per_s = 0;    // of all jobs
  double most_held_bytes = 0;  // by all at once; 0 where nobody counts
  double waited_part = 0;      // of the time of a job, at gates; the mean of the jobs
  double moved_bytes = 0;      // paging, per iteration of a job
  std::string shared_by;       // the setting that was found
  std::string error;           // why they did not run
};

/// One of the cards that come with the program, with jobs side by side on it (MPS).
class Card {
 public:
  /// `traces` outlives it. Kernels leave to others what they do not use, unless `variant` says
  /// otherwise. An error names the file.
  static Result<Card> Load(const std::string& name, const Traces& traces,
                           SharingVariant variant = SharingVariant::kRoofline);

  const Machine& machine() const { return machine_; }
  /// The card's memory less a context for each job.
  uint64_t PoolBytes(size_t jobs) const;
  scheduler::simulate::Workload Job(
      const std::string& model, uint64_t batch,
      scheduler::simulate::Touched touched = scheduler::simulate::Touched::kNothing) const;

  /// The largest batch with the card for itself; 0: none.
  uint64_t Alone(const std::string& model) const;
  /// The largest batches, each at the same part of its Alone, at which all bases and one peak fit:
  /// no policy can keep more resident. Empty: none.
  std::vector<uint64_t> Bound(const std::vector<std::string>& models) const;
  /// Whether that holds for these batches.
  bool Fits(const std::vector<std::string>& models, const std::vector<uint64_t>& batches) const;

  struct Jobs {
    std::vector<std::string> models;
    std::vector<uint64_t> batches;
  };
  /// How: "auto", "auto by turns" (which may keep bases in host memory, as large as the pool), a
  /// registered policy (claims by curve, two lanes), "unlimited" (memory for
  /// everybody), "paging" (UVM: nobody waits, what does not fit is paged; frameworks keep what they
  /// free) or "paging at best" (what they free is gone). `pool_bytes`: 0 for PoolBytes.
  Together Run(const Jobs& jobs, const std::string& how, uint64_t pool_bytes = 0) const;
  /// A run under a policy or "auto" with its records, which tell memory over time. `changes`: of
  /// the budget, which begins as `pool_bytes`; all of the card is the pool then. An error: why they
  /// did not run.
  Result<scheduler::simulate::Outcome> Recorded(
      const Jobs& jobs, const std::string& how, uint64_t pool_bytes = 0,
      const std::vector<scheduler::simulate::BudgetChange>& changes = {}) const;
  /// As `how`, "paging" or "paging at best", with other parameters.
  Together Page(const Jobs& jobs, const std::string& how,
                const scheduler::simulate::PagingOptions& paging) const;

  uint64_t unit_bytes = uint64_t{8} << 20;  // of leases
  scheduler::GateOptions gates = scheduler::simulate::WorkloadOptions().gates;

 private:
  Card(Machine machine, const Traces& traces) : machine_(std::move(machine)), traces_(&traces) {}
  std::vector<scheduler::simulate::Workload> Workloads(const Jobs& jobs,
                                                       scheduler::simulate::Touched touched) const;
  scheduler::simulate::Options OptionsFor(size_t jobs, uint64_t pool_bytes) const;
  Together Share(const Jobs& jobs, const std::string& how, uint64_t pool_bytes,
                 const scheduler::simulate::PagingOptions& paging) const;

  Machine machine_;
  const Traces* traces_;
};

}  // namespace sluice::bench
