// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Zico, figures 7, 9 and 10: memory over time.
#include <algorithm>
#include <cmath>

#include "bench/papers.h"
#include "bench/papers_timeline.h"
#include "bench/papers_zico.h"

namespace sluice::bench {

namespace {

using scheduler::simulate::BudgetChange;
using scheduler::simulate::Outcome;

/// The paper's policy, and ours.
constexpr const char* kWays[] = {"timeshift", "auto"};

/// The last iterations of a run: so many of the job that takes longest.
Window LastIterations(const Outcome& outcome, double iterations) {
  double longest = 0;
  for (const auto& job : outcome.jobs) longest = std::max(longest, job.iteration_ns);
  return {std::max(0.0, outcome.elapsed_ns - iterations * longest), outcome.elapsed_ns};
}

Chart MemoryOverTime(std::string name, std::string title, const Outcome& outcome,
                     const std::vector<std::string>& jobs, const Window& window) {
  return {std::move(name), std::move(title), "ms", "GB",
          HeldOverTime(outcome.records, jobs, window)};
}

double WaitedPart(const Outcome& outcome) {
  double part = 0;
  for (const auto& job : outcome.jobs) {
    part += job.waited_ns / outcome.elapsed_ns / static_cast<double>(outcome.jobs.size());
  }
  return part;
}

}  // namespace

Result<PaperTable> ZicoFigure7(const Traces& traces) {
  struct Shown {
    const char* model;
    const char* card;
    const char* paper;
  };
  constexpr Shown kShown[] = {{"resnet110", "2080ti-11", "almost no delay"},
                              {"bert-base", "v100-32", "a slight delay"}};
  // The paper names no batch; at this one both peaks are more than the card.
  constexpr double kPart = 0.75;
  const Result<std::map<std::string, Card>> cards = ZicoCards(traces);
  if (!cards.ok()) return cards.status();
  PaperTable table;
  table.title = "Zico, figure 7: memory of two equal jobs over time";
  table.columns = {"model",     "card",  "batch",  "peaks/card",   "by",
                   "held/card", "waits", "gap ms", "iteration ms", "paper: before each iteration"};
  for (const Shown& shown : kShown) {
    const Card& card = cards->at(shown.card);
    const auto most = static_cast<double>(card.Bound({shown.model, shown.model})[0]);
    const auto batch = std::max<uint64_t>(1, static_cast<uint64_t>(std::floor(kPart * most)));
    const Card::Jobs jobs = {{shown.model, shown.model}, {batch, batch}};
    const auto memory = static_cast<double>(card.machine().memory);
    const auto peak = static_cast<double>(card.Job(shown.model, batch).peak_bytes);
    for (const char* way : kWays) {
      const Result<Outcome> run = card.Recorded(jobs, way);
      if (!run.ok()) return run.status();
      const Window window = LastIterations(*run, 3);
      const double held =
          static_cast<double>(run->most_held) * static_cast<double>(card.unit_bytes);
      table.rows.push_back({shown.model, shown.card, batch});
      table.rows.back().emplace_back(2 * peak / memory, 2);
      table.rows.back().emplace_back(way);
      table.rows.back().emplace_back(held / memory, 2);
      table.rows.back().emplace_back(WaitedPart(*run), 2);
      table.rows.back().emplace_back(MeanGapNs(run->records, {0, run->elapsed_ns}) / 1e6, 1);
      table.rows.back().emplace_back(run->jobs[0].iteration_ns / 1e6, 1);
      table.rows.back().emplace_back(std::string_view(way) == "timeshift" ? shown.paper : "-");
      const std::string model = shown.model;
      table.charts.push_back(MemoryOverTime("zico-figure7-" + model + "-" + way,
                                            "2 " + model + " under " + way, *run,
                                            {model + " 1", model + " 2"}, window));
    }
  }
  table.notes = {"waits: of a job's time, at gates. gap: from the trough to the next iteration."};
  return table;
}

Result<PaperTable> ZicoFigure9(const Traces& traces) {
  const std::string card_name = "2080ti-11";
  const std::vector<std::string> models = {"nasnetalarge", "resnet110"};
  const Result<Card> card = Card::Load(card_name, traces);
  if (!card.ok()) return card.status();
  // The paper names no batches, but that ResNet-110's iterations are the shorter ones.
  const auto nasnet = ZicoBatch(*card, models[0], 0.8);
  const auto resnet = ZicoBatch(*card, models[1], 0.4);
  if (!nasnet || !resnet) return Status(StatusCode::kInternal, "zico-figure9: no batch fits");
  const Card::Jobs jobs = {models, {*nasnet, *resnet}};
  PaperTable table;
  table.title = "Zico, figure 9: memory of nasnetalarge and resnet110 over time";
  table.columns = {"by",
                   "batches",
                   "nasnetalarge ms",
                   "resnet110 ms",
                   "iterations a while of nasnetalarge's",
                   "held/card"};
  for (const char* way : kWays) {
    const Result<Outcome> run = card->Recorded(jobs, way);
    if (!run.ok()) return run.status();
    const Window window = LastIterations(*run, 3);
    const auto begun = [&](scheduler::JobId job) {
      return static_cast<double>(IterationsIn(run->records, job, {0, run->elapsed_ns}));
    };
    table.rows.push_back(
        {way, std::to_string(jobs.batches[0]) + " + " + std::to_string(jobs.batches[1])});
    for (const auto& job : run->jobs) table.rows.back().emplace_back(job.iteration_ns / 1e6, 1);
    table.rows.back().emplace_back(begun(2) / begun(1), 2);
    table.rows.back().emplace_back(static_cast<double>(run->most_held) *
                                       static_cast<double>(card->unit_bytes) /
                                       static_cast<double>(card->machine().memory),
                                   2);
    table.charts.push_back(MemoryOverTime("zico-figure9-" + std::string(way),
                                          "nasnetalarge and resnet110 under " + std::string(way),
                                          *run, models, window));
  }
  table.notes = {
      "In the paper ResNet-110 runs more iterations than NASNet, in the times in which that "
      "holds little; it does not say how many."};
  return table;
}

Result<PaperTable> ZicoFigure10(const Traces& traces) {
  const Result<Card> card = Card::Load("2080ti-11", traces);
  if (!card.ok()) return card.status();
  const std::string model = "nasnetalarge";
  constexpr double kBudgets[] = {0.7, 0.5, 0.7};
  constexpr double kIterations = 8;  // of two jobs in turns, in each budget
  const auto memory = static_cast<double>(card->machine().memory);
  const auto pool = [&](double part) { return static_cast<uint64_t>(part * memory); };
  // The paper names no batch: the largest that runs in the smaller budget.
  uint64_t batch = card->Bound({model, model})[0];
  for (; batch > 1; --batch) {
    const Card::Jobs jobs = {{model, model}, {batch, batch}};
    if (card->Run(jobs, "temporal", pool(0.5)).error.empty()) break;
  }
  const Card::Jobs jobs = {{model, model}, {batch, batch}};
  const double phase_ns = 2 * kIterations * card->Job(model, batch).alone_ns;
  std::vector<BudgetChange> changes;
  for (size_t i = 1; i <= std::size(kBudgets); ++i) {
    // The last one changes nothing, and ends the run behind the last phase.
    const double budget = kBudgets[std::min(i, std::size(kBudgets) - 1)];
    changes.push_back({static_cast<double>(i) * phase_ns,
                       static_cast<scheduler::Units>(pool(budget) / card->unit_bytes)});
  }
  PaperTable table;
  table.title = "Zico, figure 10: two nasnetalarge under a budget that shrinks and grows";
  table.columns = {"by",    "from ms",   "budget/card", "in force after ms",
                   "batch", "held/card", "gap ms",      "iterations"};
  for (const char* way : kWays) {
    const Result<Outcome> run = card->Recorded(jobs, way, pool(kBudgets[0]), changes);
    if (!run.ok()) return run.status();
    for (size_t i = 0; i < std::size(kBudgets); ++i) {
      const double asked = static_cast<double>(i) * phase_ns;
      const double since = i == 0 ? 0 : run->budget_since_ns[i - 1];
      const Window window = {since, static_cast<double>(i + 1) * phase_ns};
      double held = 0;
      const auto series = HeldOverTime(run->records, {"1", "2"}, window);
      for (const auto& [x, y] : series.back().points) held = std::max(held, y);
      table.rows.push_back({way});
      table.rows.back().emplace_back(asked / 1e6, 0);
      table.rows.back().emplace_back(kBudgets[i], 2);
      table.rows.back().emplace_back((since - asked) / 1e6, 1);
      table.rows.back().emplace_back(batch);
      table.rows.back().emplace_back(held * 1e9 / memory, 2);
      table.rows.back().emplace_back(MeanGapNs(run->records, window) / 1e6, 1);
      table.rows.back().emplace_back(
          uint64_t{IterationsIn(run->records, 1, window) + IterationsIn(run->records, 2, window)});
    }
    table.charts.push_back(
        MemoryOverTime("zico-figure10-" + std::string(way),
                       "2 nasnetalarge, budget 70 %, 50 %, 70 %: " + std::string(way), *run,
                       {"job 1", "job 2"}, {0, 3 * phase_ns}));
  }
  table.notes = {
      "In the paper nobody waits at 70 %, iterations are 140 ms apart at 50 %, and all is as "
      "before when the budget is back.",
      "gap: from the trough to the next iteration. in force after: until then no iteration "
      "begins, because what is held has to become less."};
  return table;
}

}  // namespace sluice::bench
