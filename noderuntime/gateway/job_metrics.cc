// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <string>

#include "noderuntime/gateway/metric_rows.h"
#include "noderuntime/gateway/metric_table.h"
#include "scheduler/record/reason.h"

namespace sluice::gateway {
namespace {

/// The usual reason from the beginning, so that its first time is a rise; the others as they come.
auto WithUsual(ByReason JobView::*counts, std::string_view usual) {
  return [counts, usual](const JobView& job, Family* family) {
    if (!(job.*counts).has_value()) return;
    const std::string reason(usual);
    if (!(job.*counts)->contains(reason)) family->Add(0.0, {{"reason", reason}});
    Each("reason", counts)(job, family);
  };
}

}  // namespace

const Table<JobView>& JobTable() {
  static const Table<JobView> table = {
      {{"sluice_job_request_bytes", kGauge, "", "What it is guaranteed"},
       Plain(&JobView::request_bytes)},
      {{"sluice_job_limit_bytes", kGauge, "", "Most that it may ever hold"},
       Plain(&JobView::limit_bytes)},
      {{"sluice_job_claim_bytes", kGauge, "",
        "Most that it may hold in this iteration; 0 between two"},
       Plain(&JobView::claim_bytes)},
      {{"sluice_job_held_bytes", kGauge, "", "What it holds of the pool"},
       Plain(&JobView::held_bytes)},
      {{"sluice_job_peak_held_bytes", kGauge, "", "Most that it ever held"},
       Plain(&JobView::peak_held_bytes)},
      {{"sluice_job_live_bytes", kGauge, "", "What its program has allocated of that"},
       Plain(&JobView::live_bytes)},
      {{"sluice_job_base_bytes", kGauge, "", "What it holds at its trough"},
       Plain(&JobView::base_bytes)},
      {{"sluice_job_spare_bytes", kGauge, "", "What it holds and does not need just now"},
       Plain(&JobView::spare_bytes)},
      {{"sluice_job_unfenced_bytes", kGauge, "",
        "What it gave up and its GPU is not done with yet"},
       Plain(&JobView::unfenced_bytes)},
      {{"sluice_job_lent_bytes", kGauge, "", "What others hold of its memory at the moment"},
       Plain(&JobView::lent_bytes)},
      {{"sluice_job_borrowed_bytes", kGauge, "", "What it holds of others' at the moment"},
       Plain(&JobView::borrowed_bytes)},
      {{"sluice_job_outside_bytes", kGauge, "", "What is charged to it outside the pool"},
       Plain(&JobView::outside_bytes)},
      {{"sluice_job_host_tier_bytes", kGauge, "", "What of it is in host memory"},
       Plain(&JobView::away_bytes)},
      {{"sluice_job_credit_seconds", kGauge, "",
        "GPU time that its CPU may run ahead; none without a profile"},
       Seconds(&JobView::credit_ns)},
      {{"sluice_job_run_ahead_seconds", kGauge, "",
        "GPU time that it has issued and that is not completed, as it last told"},
       Seconds(&JobView::run_ahead_ns)},
      {{"sluice_job_iteration_seconds", kGauge, "",
        "GPU time of an iteration, by its profile; none without one"},
       Seconds(&JobView::iteration_ns)},
      {{"sluice_job_waiting_seconds", kGauge, "reason",
        "Since when it waits, and for what; there only while it does"},
       [](const JobView& job, Family* family) {
         if (job.wait_code.empty()) return;
         family->Add(static_cast<double>(job.waits_ms) * 1e-3,
                     {{"reason", metrics::LabelValue(job.wait_code)}});
       }},
      {{"sluice_job_phase", kGauge, "phase", "1; what it is doing"},
       [](const JobView& job, Family* family) {
         if (!job.phase.empty()) family->Add(1.0, {{"phase", metrics::LabelValue(job.phase)}});
       }},
  };
  return table;
}

const Table<JobView>& JobCountsTable() {
  static const Table<JobView> table = {
      {{"sluice_job_iterations_total", kCounter, "", "Iterations that it has gone through"},
       Plain(&JobView::iterations)},
      {{"sluice_job_launches_total", kCounter, "", "Launches of its present process"},
       Plain(&JobView::launches)},
      {{"sluice_job_lent_bytes_total", kCounter, "", "What others got of its memory"},
       Plain(&JobView::lent_total_bytes)},
      {{"sluice_job_borrowed_bytes_total", kCounter, "", "What it got of others'"},
       Plain(&JobView::borrowed_total_bytes)},
      {{"sluice_job_gate_wait_seconds", kHistogram, "",
        "How long it stood at its gates, also in vain; one that opened at once counts, too"},
       Times(&JobView::gate_wait)},
      {{"sluice_job_lease_wait_seconds", kHistogram, "",
        "How long it waited for memory between two gates, also in vain; what came at once counts, "
        "too"},
       Times(&JobView::lease_wait)},
      {{"sluice_job_waits_total", kCounter, "reason",
        "How often it waited, and for what; a wait of which the reason changes is one of each"},
       Each("reason", &JobView::waits)},
      {{"sluice_job_refusals_total", kCounter, "reason",
        "How often it did not get memory, and why"},
       Each("reason", &JobView::refusals)},
      {{"sluice_job_claim_raises_total", kCounter, "",
        "How often it was allowed more than it claimed"},
       Plain(&JobView::claim_raises)},
      {{"sluice_job_deviations_total", kCounter, "reason",
        "How often it left its profile, and how (`launches`: they are not those of its cycle)"},
       WithUsual(&JobView::deviations,
                 scheduler::ReasonName(scheduler::DeviationReason::kLaunches))},
      {{"sluice_job_evictions_total", kCounter, "reason",
        "How often it was moved to host memory, and what it waited for then"},
       WithUsual(&JobView::evictions, scheduler::ReasonName(scheduler::WaitReason::kMemory))},
      {{"sluice_job_returns_total", kCounter, "", "How often it came back from there"},
       Plain(&JobView::returns)},
      {{"sluice_job_swaps_total", kCounter, "",
        "How often what it has at its trough was moved to host memory, by turns"},
       Plain(&JobView::swaps)},
  };
  return table;
}

}  // namespace sluice::gateway
