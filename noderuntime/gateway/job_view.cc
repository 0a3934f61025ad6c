// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/job_view.h"

#include "noderuntime/gateway/view_json.h"

namespace sluice::gateway {
namespace {

/// Of a job: with dozens of jobs its buckets are most of what a scrape carries.
constexpr size_t kMostBounds = 5;

/// With the last bound and every second one before it, as many as are allowed.
std::optional<metrics::Histogram> Thinned(const std::optional<metrics::Histogram>& all) {
  if (!all.has_value() || all->counts.size() != all->bounds_ns.size() + 1) return all;
  metrics::Histogram thin;
  thin.sum_ns = all->sum_ns;
  const size_t bounds = all->bounds_ns.size();
  uint64_t below = 0;
  for (size_t i = 0; i < bounds; ++i) {
    below += all->counts[i];
    const size_t from_last = bounds - 1 - i;
    if (from_last % 2 != 0 || from_last / 2 >= kMostBounds) continue;
    thin.bounds_ns.push_back(all->bounds_ns[i]);
    thin.counts.push_back(below);
    below = 0;
  }
  thin.counts.push_back(all->counts[bounds]);
  return thin;
}

void TakeFigures(const Json& json, const std::vector<uint64_t>& wait_bounds_ns, JobView* job) {
  job->iterations = Number(json, "iterations");
  job->lent_bytes = Number(json, "lent_bytes");
  job->borrowed_bytes = Number(json, "borrowed_bytes");
  job->lent_total_bytes = Number(json, "lent_total_bytes");
  job->borrowed_total_bytes = Number(json, "borrowed_total_bytes");
  job->claim_raises = Number(json, "claim_raises");
  job->returns = Number(json, "returns");
  job->swaps = Number(json, "swaps");
  job->waits = Counts(json, "waits");
  job->refusals = Counts(json, "refusals");
  job->deviations = Counts(json, "deviations_by");
  job->evictions = Counts(json, "evictions_by");
  job->gate_wait = Thinned(HistogramIn(json, "gate_wait", wait_bounds_ns));
  job->lease_wait = Thinned(HistogramIn(json, "lease_wait", wait_bounds_ns));
}

}  // namespace

JobView ParseJob(const nlohmann::json& json, const std::vector<uint64_t>& wait_bounds_ns) {
  JobView job;
  job.id = static_cast<uint32_t>(Number(json, "id").value_or(0));
  job.name = Text(json, "name");
  job.phase = Text(json, "phase");
  job.request_bytes = Number(json, "request_bytes");
  job.limit_bytes = Number(json, "limit_bytes");
  job.claim_bytes = Number(json, "claim_bytes");
  job.held_bytes = Number(json, "held_bytes");
  job.peak_held_bytes = Number(json, "peak_held_bytes");
  job.live_bytes = Number(json, "live_bytes");
  job.base_bytes = Number(json, "base_bytes");
  job.unfenced_bytes = Number(json, "unfenced_bytes");
  job.spare_bytes = Number(json, "spare_bytes");
  job.outside_bytes = Number(json, "outside_bytes");
  job.away_bytes = Number(json, "away_bytes");
  job.launches = Number(json, "launches");
  job.run_ahead_ns = Number(json, "run_ahead_ns");
  job.credit_ns = Number(Member(json, "profile"), "credit_ns");
  job.iteration_ns = Number(Member(json, "profile"), "iteration_ns");
  const Json& waiting = Member(json, "waiting");
  job.waits_for = Text(waiting, "reason");
  job.wait_code = Text(waiting, "code");
  job.waits_ms = Number(waiting, "since_ms").value_or(0);
  // Who was refused waits for nothing any more; this is why it has none.
  if (job.waits_for.empty()) job.waits_for = Text(json, "refused");
  TakeFigures(Member(json, "figures"), wait_bounds_ns, &job);
  return job;
}

}  // namespace sluice::gateway
