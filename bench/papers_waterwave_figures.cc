// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cmath>

#include "bench/papers.h"
#include "bench/parallel.h"
#include "scheduler/trace/at_batch.h"

namespace sluice::bench {

namespace {

using scheduler::simulate::Workload;

constexpr double kGigabyte = 1e9;

/// One iteration alone, from an idle GPU: when the host issues each event, and when the GPU is done
/// with what was launched before it.
struct Issued {
  std::vector<double> host_ns;
  std::vector<double> done_ns;
};

Issued IssueOf(const scheduler::trace::Trace& trace, const Workload& job, const Machine& machine) {
  Issued issued;
  std::vector<double> ends;  // of the kernels
  double host = 0;
  for (const auto& event : trace.events) {
    const bool launch = event.kind == scheduler::trace::EventKind::kOperator;
    host += static_cast<double>(launch ? machine.launch_ns : machine.alloc_ns);
    if (launch) {
      if (ends.size() >= machine.launch_queue) {
        host = std::max(host, ends[ends.size() - machine.launch_queue]);
      }
      const double start = std::max(host, ends.empty() ? 0 : ends.back());
      ends.push_back(start + job.kernels[ends.size()].alone_ns);
    }
    issued.host_ns.push_back(host);
    issued.done_ns.push_back(std::max(host, ends.empty() ? 0 : ends.back()));
  }
  return issued;
}

/// What is held over time, in GB over milliseconds, if frees count when the host issues them or
/// when the GPU is done.
Series HeldOver(const scheduler::trace::Trace& trace, const scheduler::trace::BatchTrace& at,
                const Issued& issued, bool when_done) {
  std::vector<std::pair<double, double>> changes;
  double held = static_cast<double>(at.persistent_bytes + at.input_bytes);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const auto& event = trace.events[i];
    if (event.kind == scheduler::trace::EventKind::kOperator) continue;
    const bool frees = event.kind == scheduler::trace::EventKind::kFree;
    const auto bytes = static_cast<double>(at.block_bytes[event.index]);
    changes.emplace_back(frees && when_done ? issued.done_ns[i] : issued.host_ns[i],
                         frees ? -bytes : bytes);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Series series{when_done ? "freed when the GPU is done" : "freed when scheduled", {}};
  for (const auto& [ns, bytes] : changes) {
    held += bytes;
    series.points.emplace_back(ns / 1e6, held / kGigabyte);
  }
  return series;
}

double Highest(const Series& series) {
  double most = 0;
  for (const auto& [x, y] : series.points) most = std::max(most, y);
  return most;
}

double Over(double value, double base) { return base > 0 ? value / base : 0; }

}  // namespace

Result<PaperTable> WaterwaveFigure2(const Traces& traces) {
  const Result<Card> card = Card::Load("p100-16", traces);
  if (!card.ok()) return card.status();
  // The paper names no batch; at this one the trace has the paper's peak.
  constexpr uint64_t kBatch = 64;
  const auto& trace = traces.at("resnet50");
  const auto at = scheduler::trace::AtBatch(trace, kBatch);
  if (!at.ok()) return at.status();
  const Issued issued = IssueOf(trace, card->Job("resnet50", kBatch), card->machine());
  PaperTable table;
  table.title =
      "Waterwave, figure 2: memory of one resnet50 iteration on a P100, by when frees "
      "count (batch 64)";
  table.columns = {"frees count", "paper: peak GB", "peak GB", "paper: over scheduled",
                   "over scheduled"};
  Chart chart{"waterwave-figure2", "resnet50, batch 64, one iteration on a P100", "ms", "GB", {}};
  for (const bool when_done : {false, true}) {
    chart.series.push_back(HeldOver(trace, *at, issued, when_done));
  }
  const double scheduled = Highest(chart.series[0]);
  const double done = Highest(chart.series[1]);
  table.rows = {{"when scheduled", {5.4, 1}, {scheduled, 1}, {1.0, 2}, {1.0, 2}},
                {"when computed", {13.0, 1}, {done, 1}, {13.0 / 5.4, 2}, {done / scheduled, 2}}};
  table.notes = {
      "The paper says \"over 13 GB\". Without a bound on how far the host runs ahead "
      "everything is allocated before anything is free again."};
  table.charts = {std::move(chart)};
  return table;
}

Result<PaperTable> WaterwaveFigure3(const Traces& traces) {
  struct Model {
    const char* name;
    uint64_t batch;
    double paper_loss;
  };
  constexpr Model kModels[] = {
      {"resnet50", 64, 24.6}, {"bert-base", 32, 34.6}, {"tacotron2", 32, 70.7}};
  const Result<Card> card = Card::Load("v100-32", traces);
  if (!card.ok()) return card.status();
  PaperTable table;
  table.title =
      "Waterwave, figure 3: what it costs to launch a kernel only when the one before is "
      "done";
  table.columns = {"model",    "batch",   "launches", "paper: loss %", "loss % at 6 us a launch",
                   "at 15 us", "at 50 us"};
  for (const Model& model : kModels) {
    const Workload job = card->Job(model.name, model.batch);
    table.rows.push_back({model.name, model.batch, uint64_t{job.kernels.size()}});
    table.rows.back().emplace_back(model.paper_loss, 1);
    for (const double launch_ns : {6000.0, 15000.0, 50000.0}) {
      const double host = launch_ns * static_cast<double>(job.kernels.size());
      const double overlapped = std::max(host, job.alone_ns);
      table.rows.back().emplace_back(100 * (1 - overlapped / (host + job.alone_ns)), 1);
    }
  }
  table.notes = {
      "A launch costs the host's time, which overlaps with the GPU or does not. The "
      "paper's frameworks launch some 7,000 kernels (bert-base) and 80,000 (tacotron2) "
      "per iteration, the traces have fewer operators; batches are not named there."};
  return table;
}

Result<PaperTable> WaterwaveFigure7(const Traces& traces) {
  struct Claim {
    const char* model;
    double over_paging;  // "over 12 times", at the largest batch
  };
  constexpr Claim kClaims[] = {{"resnet50", 12}, {"bert-base", 6.8}, {"tacotron2", 3.1}};
  constexpr double kParts[] = {0.05, 0.25, 0.5, 0.75, 1.0};
  const Result<Card> card = Card::Load("v100-32", traces);
  if (!card.ok()) return card.status();
  std::vector<std::string> ways = PolicyNames();
  ways.insert(ways.end(), {"auto", "paging"});
  PaperTable table;
  table.title = "Waterwave, figure 7: throughput of two equal jobs over taking turns, by batch";
  table.columns = {"model", "batch", "peaks/card", "turns samples/s"};
  table.columns.insert(table.columns.end(), ways.begin(), ways.end());
  table.columns.insert(table.columns.end(), {"auto/paging", "paper: /paging"});
  const size_t points = std::size(kParts);
  table.rows.resize(ModelNames().size() * points);
  std::vector<std::vector<double>> figures(table.rows.size());
  std::vector<uint64_t> bounds;
  for (const std::string& model : ModelNames()) bounds.push_back(card->Bound({model, model})[0]);
  InParallel(table.rows.size(), [&](size_t i) {
    const std::string& model = ModelNames()[i / points];
    const double part = kParts[i % points];
    const auto batch = std::max<uint64_t>(
        1, static_cast<uint64_t>(std::floor(part * static_cast<double>(bounds[i / points]))));
    const Card::Jobs jobs = {{model, model}, {batch, batch}};
    const Together turns = card->Run(jobs, "temporal");
    std::vector<Cell>& row = table.rows[i];
    row = {model, batch};
    row.emplace_back(2 * static_cast<double>(card->Job(model, batch).peak_bytes) /
                         static_cast<double>(card->machine().memory),
                     2);
    row.emplace_back(turns.samples_per_s, 1);
    figures[i] = {static_cast<double>(batch), turns.samples_per_s};
    double tuned = 0;
    for (const std::string& way : ways) {
      const Together run = card->Run(jobs, way);
      if (way == "auto") tuned = run.throughput;
      row.push_back(run.error.empty() ? Cell(Over(run.throughput, turns.throughput), 3) : Cell());
      figures[i].push_back(run.samples_per_s);
      if (way == "paging") row.emplace_back(Over(tuned, run.throughput), 2);
    }
    row.emplace_back();
    for (const Claim& claim : kClaims) {
      if (part == 1 && model == claim.model) row.back() = Cell(claim.over_paging, 1);
    }
  });
  for (size_t m = 0; m < ModelNames().size(); ++m) {
    Chart chart{"waterwave-figure7-" + ModelNames()[m],
                "2 " + ModelNames()[m] + " on a V100",
                "batch of each",
                "samples/s",
                {{"turns", {}}}};
    for (const std::string& way : ways) chart.series.push_back({way, {}});
    for (size_t i = m * points; i < (m + 1) * points; ++i) {
      for (size_t s = 0; s < chart.series.size(); ++s) {
        chart.series[s].points.emplace_back(figures[i][0], figures[i][s + 1]);
      }
    }
    table.charts.push_back(std::move(chart));
  }
  table.notes = {
      "The paper's best over taking turns: 1.14 (resnet152, batch 32), 1.49 (tacotron2); "
      "at the largest batches MPS with UVM loses more than 90 %.",
      "peaks/card: both peaks over the card's memory; up to 1 nothing is paged."};
  return table;
}

Result<PaperTable> WaterwaveFigure8(const Traces& traces) {
  constexpr double kSplits[] = {1, 2, 4, 6, 8, 12};  // GB
  const Result<Card> loaded = Card::Load("v100-32", traces);
  if (!loaded.ok()) return loaded.status();
  PaperTable table;
  table.title =
      "Waterwave, figure 8: throughput over taking turns at the largest batch, by the "
      "size of groups (GiB)";
  table.columns = {"model", "policy", "batch"};
  for (const double split : kSplits) table.columns.push_back(std::to_string(int(split)) + " GiB");
  const std::vector<std::string> policies = PolicyNames();
  table.rows.resize(ModelNames().size() * policies.size());
  InParallel(table.rows.size(), [&](size_t i) {
    const std::string& model = ModelNames()[i / policies.size()];
    const std::string& policy = policies[i % policies.size()];
    Card card = *loaded;
    const std::vector<uint64_t> bound = card.Bound({model, model});
    const uint64_t peak = card.Job(model, bound[0]).peak_bytes;
    std::vector<Cell>& row = table.rows[i];
    row = {model, policy, bound[0]};
    for (const double split : kSplits) {
      card.gates = GatesEvery(split, peak);
      const Card::Jobs jobs = {{model, model}, bound};
      const Together run = card.Run(jobs, policy);
      const Together turns = card.Run(jobs, "temporal");
      row.push_back(run.error.empty() ? Cell(Over(run.throughput, turns.throughput), 3) : Cell());
    }
  });
  table.notes = {
      "In the paper small groups cost synchronisation of the streams and large ones "
      "order: 6 GB is its best for most models, and the largest batch hangs on it. Gates "
      "synchronise nothing, and the largest batch is the bound whatever the groups: "
      "finer ones are better."};
  return table;
}

}  // namespace sluice::bench
