// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cmath>

#include "bench/papers.h"
#include "bench/papers_zico.h"

namespace sluice::bench {

namespace {

using scheduler::simulate::Workload;
namespace simulate = scheduler::simulate;

struct PaperRow {
  const char* model;
  double all, fine, coarse;
};
constexpr PaperRow kPaper[] = {{"nasnetalarge", 0.78, 1.00, 1.00}, {"resnet110", 0.91, 1.00, 1.00},
                               {"resnet50", 0.97, 1.00, 1.00},     {"gnmt", 0.44, 0.89, 0.97},
                               {"rhn", 0.94, 0.99, 0.99},          {"bert-base", 0.97, 0.99, 1.00}};

/// How often a stream is marked: behind so many launches, or so many bytes that were allocated.
struct Tracking {
  const char* name;
  uint64_t launches = 0;
  uint64_t bytes = 0;
};
constexpr Tracking kTracking[] = {{"all", 1, 0},
                                  {"8 MiB", 0, uint64_t{8} << 20},
                                  {"256 MiB", 0, uint64_t{256} << 20},
                                  {"every 16th launch", 16, 0}};

/// Bytes that the iteration allocates before each of its launches.
std::vector<uint64_t> AllocatedBefore(const scheduler::trace::Trace& trace,
                                      const scheduler::trace::BatchTrace& at) {
  std::vector<uint64_t> bytes;
  uint64_t since = 0;
  for (const auto& event : trace.events) {
    if (event.kind == scheduler::trace::EventKind::kAlloc) since += at.block_bytes[event.index];
    if (event.kind != scheduler::trace::EventKind::kOperator) continue;
    bytes.push_back(since);
    since = 0;
  }
  return bytes;
}

/// The job with what its marks cost the host.
Workload Tracked(Workload job, const std::vector<uint64_t>& allocated, const Tracking& tracking,
                 double mark_ns) {
  uint64_t launches = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < job.kernels.size(); ++i) {
    launches += 1;
    bytes += allocated[i];
    const bool due =
        tracking.launches > 0 ? launches >= tracking.launches : bytes >= tracking.bytes;
    if (!due) continue;
    job.kernels[i].host_ns += mark_ns;
    launches = bytes = 0;
  }
  return job;
}

/// What the host needs for an iteration.
double HostNs(const Workload& job, const Machine& machine) {
  double calls = job.calls_after;
  for (const simulate::Kernel& kernel : job.kernels) calls += kernel.calls;
  return static_cast<double>(job.kernels.size()) * static_cast<double>(machine.launch_ns) +
         calls * static_cast<double>(machine.alloc_ns);
}

Result<double> IterationNs(const Workload& job, const Card& card) {
  simulate::Options options;
  options.managed = false;  // alone: nobody waits for memory
  options.unit_bytes = card.unit_bytes;
  options.pool_units = static_cast<scheduler::Units>(card.PoolBytes(1) / card.unit_bytes);
  const auto run = simulate::Simulate({{&job, 0}}, card.machine(), options);
  if (!run.ok()) return run.status();
  return run->jobs[0].iteration_ns;
}

}  // namespace

Result<PaperTable> ZicoTable1(const Traces& traces) {
  // From a launch's on: an event is recorded as a kernel is launched, and later asked for.
  constexpr double kLaunches[] = {1, 2, 4};
  // The paper names no batches.
  constexpr double kPart = 0.25;
  const Result<std::map<std::string, Card>> cards = ZicoCards(traces);
  if (!cards.ok()) return cards.status();
  PaperTable table;
  table.title =
      "Zico, table 1: throughput of one job whose stream is marked, over that of one that is not";
  table.columns = {"model", "card", "batch", "launches", "host/GPU", "a mark costs"};
  for (const Tracking& tracking : kTracking) {
    if (tracking.launches != 16) table.columns.push_back("paper: " + std::string(tracking.name));
    table.columns.emplace_back(tracking.name);
  }
  for (const PaperRow& paper : kPaper) {
    const auto model = std::find_if(
        std::begin(kZicoModels), std::end(kZicoModels),
        [&](const ZicoModel& one) { return one.name == std::string_view(paper.model); });
    const Card& card = cards->at(model->card);
    const auto batch = std::max<uint64_t>(
        1, static_cast<uint64_t>(std::floor(kPart * static_cast<double>(card.Alone(paper.model)))));
    const Workload job = card.Job(paper.model, batch);
    const auto at = scheduler::trace::AtBatch(traces.at(paper.model), batch);
    if (!at.ok()) return at.status();
    const std::vector<uint64_t> allocated = AllocatedBefore(traces.at(paper.model), *at);
    const Result<double> alone = IterationNs(job, card);
    if (!alone.ok()) return alone.status();
    for (const double launches : kLaunches) {
      const double mark_ns = launches * static_cast<double>(card.machine().launch_ns);
      table.rows.push_back({paper.model, model->card, batch, uint64_t{job.kernels.size()}});
      std::vector<Cell>& row = table.rows.back();
      row.emplace_back(HostNs(job, card.machine()) / job.alone_ns, 2);
      row.push_back(std::to_string(static_cast<int>(mark_ns / 1000)) + " us");
      for (const Tracking& tracking : kTracking) {
        const Result<double> tracked =
            IterationNs(Tracked(job, allocated, tracking, mark_ns), card);
        if (!tracked.ok()) return tracked.status();
        const std::string_view name = tracking.name;
        if (name == "all") row.emplace_back(paper.all, 2);
        if (name == "8 MiB") row.emplace_back(paper.fine, 2);
        if (name == "256 MiB") row.emplace_back(paper.coarse, 2);
        row.emplace_back(*alone / *tracked, 2);
      }
    }
  }
  table.notes = {
      "every 16th launch: as Sluice does while somebody waits for memory; else a stream is "
      "seldom marked. What our mark costs is measured: bench/run.",
      "What a mark costs the host is an assumption, and nothing is lost where the GPU takes "
      "longer than the host (host/GPU, without marks). A mark's GPU time is not simulated. The "
      "traces have fewer operators "
      "than the paper's programs launch kernels."};
  return table;
}

}  // namespace sluice::bench
