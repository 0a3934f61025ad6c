// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <map>
#include <string>

#include "noderuntime/gateway/metric_rows.h"
#include "noderuntime/gateway/metric_table.h"

namespace sluice::gateway {
namespace {

/// So that a phase in which nobody is counts as 0 and not as unknown.
constexpr const char* kPhases[] = {"registered", "connecting", "waiting", "resting", "unprofiled",
                                   "parked",     "running",    "evicted", "dying",   "ended"};

void Held(const GpuView& gpu, Family* family) {
  if (!gpu.pool_bytes.has_value()) return;
  uint64_t sum = 0;
  for (const JobView& job : gpu.jobs) sum += job.held_bytes.value_or(0);
  family->Add(static_cast<double>(sum));
}

void Fragmentation(const GpuView& gpu, Family* family) {
  if (!gpu.free_bytes.has_value() || !gpu.largest_free_bytes.has_value()) return;
  const auto free = static_cast<double>(*gpu.free_bytes);
  family->Add(free > 0 ? 1 - static_cast<double>(*gpu.largest_free_bytes) / free : 0.0);
}

void Jobs(const GpuView& gpu, Family* family) {
  std::map<std::string, uint64_t> counts;
  for (const char* phase : kPhases) counts[phase] = 0;
  for (const JobView& job : gpu.jobs) {
    if (!job.phase.empty()) ++counts[metrics::LabelValue(job.phase)];
  }
  if (gpu.ended.has_value()) {
    counts["ended"] = gpu.ended->size();
  } else {
    counts.erase("ended");
  }
  for (const auto& [phase, count] : counts) {
    family->Add(static_cast<double>(count), {{"phase", phase}});
  }
}

}  // namespace

const Table<GpuView>& DaemonTable() {
  static const Table<GpuView> table = {
      {{"sluice_up", kGauge, "", "1: the GPU's daemon answers, 0: it does not"},
       [](const GpuView& gpu, Family* family) { family->Add(gpu.up ? 1.0 : 0.0); }},
      {{"sluice_scrape_seconds", kGauge, "", "How long the daemon took to say all this"},
       [](const GpuView& gpu, Family* family) {
         family->Add(static_cast<double>(gpu.look_ns) * 1e-9);
       }},
      {{"sluice_answer_age_seconds", kGauge, "",
        "How long ago a daemon that is there last answered this gateway; 0: it just did. One that "
        "is stopped or hangs is there; none where there is no daemon"},
       Seconds(&GpuView::answer_age_ns)},
  };
  return table;
}

const Table<GpuView>& PoolTable() {
  static const Table<GpuView> table = {
      {{"sluice_gpu_memory_bytes", kGauge, "", "Memory of the GPU"}, Plain(&GpuView::memory_bytes)},
      {{"sluice_pool_bytes", kGauge, "",
        "Memory of the GPU that Sluice manages: held, free and reserve add up to it"},
       Plain(&GpuView::pool_bytes)},
      {{"sluice_pool_budget_bytes", kGauge, "", "How much of the pool is lent (`sluice budget`)"},
       Plain(&GpuView::budget_bytes)},
      {{"sluice_pool_held_bytes", kGauge, "", "What all jobs hold of the pool"}, Held},
      {{"sluice_pool_free_bytes", kGauge, "", "What nobody holds of the pool and may be had"},
       Plain(&GpuView::free_bytes)},
      {{"sluice_pool_reserve_bytes", kGauge, "",
        "What nobody holds of the pool and is kept back, beyond the budget"},
       Plain(&GpuView::reserve_bytes)},
      {{"sluice_pool_largest_free_bytes", kGauge, "", "The longest free run of the pool"},
       Plain(&GpuView::largest_free_bytes)},
      {{"sluice_pool_fragmentation_ratio", kGauge, "",
        "What of the free memory is not in its longest run; 0 when nothing is free"},
       Fragmentation},
      {{"sluice_outside_reserve_bytes", kGauge, "",
        "Memory beside the pool, for contexts, arrays and all else that is charged outside it"},
       Plain(&GpuView::outside_reserve_bytes)},
      {{"sluice_outside_bytes", kGauge, "", "What is charged outside the pool, of all jobs"},
       Plain(&GpuView::outside_bytes)},
      {{"sluice_nvml_used_bytes", kGauge, "", "Memory of the GPU that is used, as NVML says"},
       Plain(&GpuView::nvml_used_bytes)},
      {{"sluice_drift_bytes", kGauge, "",
        "What NVML says is used, less what Sluice knows of: the pool, what is charged outside it, "
        "contexts"},
       [](const GpuView& gpu, Family* family) {
         if (gpu.drift_bytes.has_value()) family->Add(static_cast<double>(*gpu.drift_bytes));
       }},
      {{"sluice_host_tier_capacity_bytes", kGauge, "", "Host memory that evicted jobs may take up"},
       Plain(&GpuView::host_tier_capacity_bytes)},
      {{"sluice_host_tier_used_bytes", kGauge, "", "Host memory that evicted jobs take up"},
       Plain(&GpuView::host_tier_used_bytes)},
  };
  return table;
}

const Table<GpuView>& SchedulerTable() {
  static const Table<GpuView> table = {
      {{"sluice_build_info", kGauge, "version", "1; which version the daemon is of"},
       [](const GpuView& gpu, Family* family) {
         family->Add(1.0, {{"version", metrics::LabelValue(gpu.version)}});
       }},
      {{"sluice_daemon_start_time_seconds", kGauge, "", "When the daemon began, since 1970"},
       [](const GpuView& gpu, Family* family) { family->Add(gpu.started_unix_ms, 1e-3); }},
      {{"sluice_policy_info", kGauge, "policy, lanes, claims",
        "1; by what is decided who begins an iteration and who waits"},
       [](const GpuView& gpu, Family* family) {
         if (gpu.policy.empty()) return;
         family->Add(1.0, {{"policy", metrics::LabelValue(gpu.policy)},
                           {"lanes", std::to_string(gpu.lanes)},
                           {"claims", metrics::LabelValue(gpu.claims)}});
       }},
      {{"sluice_policy_switches_total", kCounter, "",
        "Changes of policy, lanes, claims or soft budget"},
       Plain(&GpuView::policy_switches)},
      {{"sluice_decisions_total", kCounter, "", "How often the scheduler was asked what may go on"},
       Plain(&GpuView::decisions)},
      {{"sluice_decision_seconds", kHistogram, "",
        "How long a decision took: of those made at once, their average for each"},
       Times(&GpuView::decision)},
      {{"sluice_lease_service_seconds", kHistogram, "",
        "From a lease's request to its answer, of those that waited for nothing"},
       Times(&GpuView::service)},
      {{"sluice_handover_seconds", kHistogram, "",
        "From when a job gave memory up until its GPU was done with it"},
       Times(&GpuView::handover)},
      {{"sluice_reclaim_seconds", kHistogram, "",
        "From the end of a job until all that it held was free"},
       Times(&GpuView::reclaim)},
      {{"sluice_keeper_up", kGauge, "",
        "1: what outlives the daemon (its keeper) is there, 0: it is not, and jobs get no more "
        "memory if the daemon is killed; none where the daemon is not to have one"},
       [](const GpuView& gpu, Family* family) {
         if (gpu.keeper.has_value()) family->Add(*gpu.keeper ? 1.0 : 0.0);
       }},
      {{"sluice_keeper_losses_total", kCounter, "",
        "Keepers that ended or did not answer; another one takes the place of each"},
       Plain(&GpuView::keeper_losses)},
      {{"sluice_fences_pending", kGauge, "",
        "Releases whose memory is not free yet, because work queued before them is under way"},
       Plain(&GpuView::fences_pending)},
      {{"sluice_draining", kGauge, "", "1: no new jobs are taken (`sluice drain on`)"},
       [](const GpuView& gpu, Family* family) {
         if (gpu.draining.has_value()) family->Add(*gpu.draining ? 1.0 : 0.0);
       }},
      {{"sluice_jobs", kGauge, "phase", "Jobs by what they are doing"}, Jobs},
      {{"sluice_sessions", kGauge, "version", "Jobs by the protocol that their library speaks"},
       Each("version", &GpuView::sessions)},
      {{"sluice_bypassed_processes_total", kCounter, "of",
        "Processes found on the GPU without Sluice's library; `of`: pod, other; none where nobody "
        "looks"},
       [](const GpuView& gpu, Family* family) {
         if (!gpu.bypassed_pods.has_value() || !gpu.bypassed_others.has_value()) return;
         family->Add(static_cast<double>(*gpu.bypassed_pods), {{"of", "pod"}});
         family->Add(static_cast<double>(*gpu.bypassed_others), {{"of", "other"}});
       }},
  };
  return table;
}

const Table<LoanView>& LoanTable() {
  static const Table<LoanView> table = {
      {{"sluice_loan_bytes", kGauge, "", "What the borrower holds of the lender's at the moment"},
       Plain(&LoanView::bytes)},
      {{"sluice_loan_bytes_total", kCounter, "", "What the lender lent to the borrower"},
       Plain(&LoanView::lent_bytes)},
      {{"sluice_loan_returned_bytes_total", kCounter, "", "What of that is no loan any more"},
       Plain(&LoanView::returned_bytes)},
      {{"sluice_loans_total", kCounter, "", "Grants with memory of the lender in them"},
       Plain(&LoanView::loans)},
  };
  return table;
}

}  // namespace sluice::gateway
