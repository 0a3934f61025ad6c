// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/machine.h"
#include "common/status.h"
#include "scheduler/policy/claims.h"
#include "scheduler/policy/policy.h"
#include "scheduler/record/record.h"
#include "scheduler/simulate/paging.h"
#include "scheduler/simulate/run.h"
#include "scheduler/simulate/workload.h"

/// Jobs on one GPU as a discrete-event model: hosts that issue calls, streams that execute them, a
/// pool, and the very code that decides on a live node (scheduler/policy on scheduler/ledger).
/// Every figure that comes out of here is `simulated`. Pure and deterministic: equal inputs, equal
/// results to the last bit on one machine.
namespace sluice::scheduler::simulate {

/// Whether a host waits for its GPU at the trough: while others wait for memory, while there are
/// others (as a node has it, which promises the others what comes back there), or never. Who goes
/// on keeps what its GPU has not passed yet, and that may be what the others wait for; who waits
/// leaves the GPU idle where launches are what takes the time.
enum class Drain : uint8_t { kWhenOthersWait, kWhenOthersAreThere, kNever };

/// What is chosen anew when jobs come and go; `auto` finds it (tune.h).
struct Setting {
  Config policy;
  Claims claims = Claims::kContract;
  uint32_t steps = 4;
  /// Less than the pool: the policy does as if the rest were not there. Where memory is tight jobs
  /// fall into a phase in which they suit each other, and throughput is not monotone in the pool.
  Units budget = 0;  // 0: the pool
  Drain drain = Drain::kWhenOthersWait;
  /// A host runs ahead of its GPU by at most this part of its iteration, in GPU time, and by at
  /// most Options::most_credit_ns (Zico 6.1 bounds the number of kernels instead).
  double credit_parts = 8;
};

/// The operator gives the jobs another part of the pool. Less takes effect when it is safe and
/// what is held fits; until then no iteration begins.
struct BudgetChange {
  double at_ns = 0;
  Units budget = 0;
};

/// Host memory for what a job has that left its claim (I5).
struct HostMemory {
  Units units = 0;  // 0: there is none
  double bytes_per_ns = 20;
};

struct Options {
  uint64_t unit_bytes = uint64_t{8} << 20;
  Units pool_units = 0;
  /// False: nobody waits for memory and nothing is counted (`spatial`, and what unlimited memory
  /// would give). `setting` means nothing then.
  bool managed = true;
  /// Of who is not managed: what is beyond the pool is paged over the host link.
  std::optional<PagingOptions> paging;
  Setting setting;
  std::vector<BudgetChange> budget_changes;  // in order of time
  HostMemory host;
  /// Not given: 5 ms, and as far as a host gets where jobs take turns and drain (CreditOf).
  std::optional<double> most_credit_ns;
  /// What a gate that opens at once costs its host, where a job is not alone and needs more than it
  /// has: a question to the daemon and the answer. As measured (p50 of bench/run --area round-trip,
  /// docs/results/2026-11-22-bench.json: 8 to 15 us).
  double gate_ns = 10'000;
  /// A job claims more than its peak, up to its limit, as a live node has it do (WithClaimMargin).
  bool claim_margin = false;
  uint32_t warm_up = 2;     // iterations of each job before it is measured
  uint32_t iterations = 6;  // at least so many of each job are measured
  double most_ns = 1e13;    // of simulated time; beyond, the run is an error
  bool record = false;      // Outcome::records
};

/// GPU time that the job's host may run ahead under `setting`. Where jobs take turns and drain only
/// a credit that was given counts: nobody is lent anything of it before its trough (docs/adr/0034).
double CreditOf(const Workload& job, const Options& options, const Setting& setting);
/// Kernels that may be queued however long they are, one of them at work.
inline constexpr uint64_t kAlwaysQueued = 2;

/// The smallest pool in which these jobs can take turns: the bases of all and the largest peak.
uint64_t LeastPool(const std::vector<JobRun>& runs);

struct JobOutcome {
  uint32_t iterations = 0;  // done in all
  double iteration_ns = 0;  // mean over what was measured
  /// GPU time, alone, of what it did since the last job had warmed up, over that time. All are
  /// measured over the same time: who waits longest at its end gains nothing by it.
  double progress = 0;
  double waited_ns = 0;  // at gates, in all
  double longest_wait_ns = 0;
  double slowdown = 1;  // of its kernels while they ran, from what ran beside them
  Units most_held = 0;
  uint32_t evictions = 0;       // to host memory and back
  uint32_t most_overtaken = 0;  // others that came after it and were let in before it
  std::vector<double> ends_ns;  // of its iterations, on the GPU
  /// Why it was told that there is no memory, which ended it; only a job with deviations is. Empty:
  /// it was not.
  std::string refused;
};

struct Outcome {
  std::vector<JobOutcome> jobs;  // in the order of the runs
  double elapsed_ns = 0;
  Units most_held = 0;  // by all at once
  /// When each change of the budget took effect, or the one after it.
  std::vector<double> budget_since_ns;
  uint64_t decisions = 0;
  PagingTotals paging;          // of the whole run, `warm_up` included
  std::vector<Record> records;  // as a live node's event log has them

  /// Sum over the jobs of JobOutcome::progress: how much the GPU gets done, in iterations alone.
  double Throughput() const;
};

/// Ends when each job that is still there has done its iterations and no change of the budget is
/// to come. kInvalidArgument: no jobs, an empty pool, a policy that is not known.
/// kResourceExhausted: a job does not fit (which, and what would), or was refused memory.
/// kInternal: nothing moves any more, which is a bug.
Result<Outcome> Simulate(const std::vector<JobRun>& runs, const Machine& machine,
                         const Options& options);

/// Throughput with memory for everybody, at the best of three offsets of the jobs' starts (0.1,
/// 0.25 and 0.5 of the longest iteration): jobs that start together may stay in step. 0: it cannot
/// run.
double UnlimitedThroughput(std::vector<JobRun> runs, const Machine& machine, Options options);

}  // namespace sluice::scheduler::simulate
