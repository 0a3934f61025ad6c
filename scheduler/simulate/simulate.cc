// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/simulate.h"

#include <algorithm>
#include <limits>

#include "scheduler/policy/policies.h"
#include "scheduler/simulate/world.h"

namespace sluice::scheduler::simulate {

double CreditOf(const Workload& job, const Options& options, const Setting& setting) {
  constexpr double kMostNs = 5e6;
  constexpr double kNoBound = std::numeric_limits<double>::infinity();
  // Else the next iteration would begin with this one's memory in its way.
  const bool drains = setting.drain != Drain::kNever;
  if (TakesTurns(setting.policy) && drains) return options.most_credit_ns.value_or(kNoBound);
  return std::min(options.most_credit_ns.value_or(kMostNs), job.alone_ns / setting.credit_parts);
}

uint64_t LeastPool(const std::vector<JobRun>& runs) {
  uint64_t bases = 0;
  uint64_t transient = 0;
  for (const JobRun& run : runs) {
    const Workload& job = *run.workload;
    const uint64_t base = std::min(job.base_units, job.plan.peak_units);
    bases += job.base_units;
    transient = std::max(transient, job.plan.peak_units - base);
  }
  return bases + transient;
}

double Outcome::Throughput() const {
  double sum = 0;
  for (const JobOutcome& job : jobs) sum += job.progress;
  return sum;
}

Result<Outcome> Simulate(const std::vector<JobRun>& runs, const Machine& machine,
                         const Options& options) {
  const auto invalid = [](const std::string& text) {
    return Status(StatusCode::kInvalidArgument, text);
  };
  if (runs.empty()) return invalid("runs: allowed: at least one job");
  for (const JobRun& run : runs) {
    if (run.workload == nullptr || run.workload->kernels.empty())
      return invalid("runs: every job needs a workload with kernels");
  }
  if (options.unit_bytes == 0) return invalid("unit_bytes: allowed: above 0");
  if (!(options.setting.credit_parts > 0)) return invalid("credit_parts: allowed: above 0");
  if (options.iterations == 0) return invalid("iterations: allowed: above 0");
  if (options.managed && options.pool_units == 0) return invalid("pool: allowed: above 0");
  if (options.managed && FindPolicy(options.setting.policy.policy) == nullptr)
    return invalid("policy '" + options.setting.policy.policy + "' is not known");
  if (options.paging) {
    const PagingOptions& paging = *options.paging;
    if (options.managed) return invalid("paging: only where memory is not managed");
    if (options.pool_units == 0) return invalid("pool: allowed: above 0");
    if (paging.page_bytes == 0 || paging.block_bytes < paging.page_bytes ||
        !(paging.link_bytes_per_s > 0) || paging.fault_group_ns < 0 || paging.groups_per_block < 0)
      return invalid("paging: allowed: pages and a link above 0, blocks of a page at least");
    for (const JobRun& run : runs) {
      if (run.workload->touches.touch_ends.size() != run.workload->kernels.size())
        return invalid("paging: nothing tells what the kernels of '" + run.workload->name +
                       "' touch; allowed: workloads made with it (WorkloadOptions::touched)");
    }
  }
  return World(runs, machine, options).Play();
}

double UnlimitedThroughput(std::vector<JobRun> runs, const Machine& machine, Options options) {
  options.managed = false;
  options.paging.reset();
  double longest = 0;
  for (const JobRun& run : runs) longest = std::max(longest, run.workload->alone_ns);
  double most = 0;
  for (const double offset : {0.1, 0.25, 0.5}) {
    for (size_t i = 0; i < runs.size(); ++i) {
      runs[i].start_ns = offset * longest * static_cast<double>(i);
    }
    const Result<Outcome> outcome = Simulate(runs, machine, options);
    if (outcome.ok()) most = std::max(most, outcome->Throughput());
  }
  return most;
}

}  // namespace sluice::scheduler::simulate
