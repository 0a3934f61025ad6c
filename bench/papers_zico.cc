// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cmath>

#include "bench/papers.h"
#include "bench/parallel.h"

namespace sluice::bench {

namespace {

double Over(double value, double base) { return base > 0 ? value / base : 0; }

/// Zico's models of which there is a trace, on the cards that it has them on (section 7).
struct Model {
  const char* name;
  const char* card;
};
constexpr Model kModels[] = {
    {"resnet50", "v100-32"}, {"bert-base", "v100-32"}, {"nasnetalarge", "2080ti-11"}};

}  // namespace

Result<PaperTable> ZicoFigure5(const Traces& traces) {
  constexpr double kParts[] = {0.125, 0.25, 0.5, 0.75, 1.0};
  constexpr size_t kPoints = std::size(kParts);
  std::map<std::string, Card> cards;
  for (const Model& model : kModels) {
    Result<Card> card = Card::Load(model.card, traces);
    if (!card.ok()) return card.status();
    cards.emplace(model.card, *std::move(card));
  }
  const std::vector<std::string> policies = PolicyNames();
  PaperTable table;
  table.title = "Zico, figures 5 and 6: throughput of two equal jobs over taking turns, and memory";
  table.columns = {"model", "card", "batch", "peaks/card", "auto held/card"};
  table.columns.insert(table.columns.end(), policies.begin(), policies.end());
  table.columns.insert(table.columns.end(), {"auto", "paging", "auto/paging"});
  table.rows.resize(std::size(kModels) * kPoints);
  std::vector<double> gains(table.rows.size());
  std::vector<double> over_paging(table.rows.size());
  InParallel(table.rows.size(), [&](size_t i) {
    const Model& model = kModels[i / kPoints];
    const Card& card = cards.at(model.card);
    const auto most = static_cast<double>(card.Bound({model.name, model.name})[0]);
    const auto batch =
        std::max<uint64_t>(1, static_cast<uint64_t>(std::floor(kParts[i % kPoints] * most)));
    const Card::Jobs jobs = {{model.name, model.name}, {batch, batch}};
    const auto memory = static_cast<double>(card.machine().memory);
    const double turns = card.Run(jobs, "temporal").throughput;
    const Together tuned = card.Run(jobs, "auto");
    std::vector<Cell>& row = table.rows[i];
    row = {model.name, model.card, batch};
    const auto peak = static_cast<double>(card.Job(model.name, batch).peak_bytes);
    row.emplace_back(2 * peak / memory, 2);
    row.emplace_back(tuned.most_held_bytes / memory, 2);
    for (const std::string& policy : policies) {
      const Together run = card.Run(jobs, policy);
      row.push_back(run.error.empty() ? Cell(Over(run.throughput, turns), 3) : Cell());
    }
    const double paged = card.Run(jobs, "paging").throughput;
    gains[i] = Over(tuned.throughput, turns);
    over_paging[i] = Over(tuned.throughput, paged);
    row.emplace_back(gains[i], 3);
    row.emplace_back(Over(paged, turns), 3);
    row.emplace_back(over_paging[i], 2);
  });
  double nasnet = 0;
  for (size_t i = 2 * kPoints; i < 3 * kPoints; ++i) {
    nasnet += gains[i] / static_cast<double>(kPoints);
  }
  char text[160];
  std::snprintf(text, sizeof text,
                "nasnetalarge over taking turns, mean over the batches: paper 1.35, here %.2f. "
                "Over MPS with UVM at most: paper 4.7, here %.1f.",
                nasnet, *std::max_element(over_paging.begin(), over_paging.end()));
  table.notes = {text,
                 "No trace: ResNet-110, GNMT, RHN. The paper's NASNet is smaller, and all of its "
                 "models use SGD; bert-base here uses Adam."};
  return table;
}

Result<PaperTable> ZicoFigure10(const Traces& traces) {
  const Result<Card> card = Card::Load("2080ti-11", traces);
  if (!card.ok()) return card.status();
  const std::string model = "nasnetalarge";
  // The paper names no batch: the largest that runs in the smaller budget.
  constexpr double kBudgets[] = {0.7, 0.5, 0.7};
  const auto memory = static_cast<double>(card->machine().memory);
  uint64_t batch = card->Bound({model, model})[0];
  const auto pool = [&](double part) { return static_cast<uint64_t>(part * memory); };
  for (; batch > 1; --batch) {
    const Card::Jobs jobs = {{model, model}, {batch, batch}};
    if (card->Run(jobs, "temporal", pool(0.5)).error.empty()) break;
  }
  const Card::Jobs jobs = {{model, model}, {batch, batch}};
  PaperTable table;
  table.title = "Zico, figure 10: two nasnetalarge under a budget that shrinks and grows";
  table.columns = {"budget/card",    "batch",      "turns",  "auto/turns",
                   "auto held/card", "auto waits", "auto by"};
  for (const double budget : kBudgets) {
    const double turns = card->Run(jobs, "temporal", pool(budget)).throughput;
    const Together tuned = card->Run(jobs, "auto", pool(budget));
    table.rows.push_back(
        {Cell(budget, 2), batch, Cell(turns, 3), Cell(Over(tuned.throughput, turns), 3),
         Cell(tuned.most_held_bytes / memory, 2), Cell(tuned.waited_part, 2), tuned.shared_by});
  }
  table.notes = {
      "In the paper nobody waits at 70 %, iterations are 140 ms apart at 50 %, and all "
      "is as before when the budget is back. Each budget is a run of its own here: how "
      "long the change takes is not simulated.",
      "auto waits: of a job's time, at gates."};
  return table;
}

Result<PaperTable> ZicoTable2(const Traces& traces) {
  struct Unit {
    const char* name;
    uint64_t bytes;
  };
  constexpr Unit kUnits[] = {{"512 KiB", uint64_t{512} << 10},
                             {"8 MiB", uint64_t{8} << 20},
                             {"64 MiB", uint64_t{64} << 20}};
  PaperTable table;
  table.title =
      "Zico, table 2: throughput of two equal jobs by the unit of sharing, over that of "
      "64 MiB, under flow";
  table.columns = {"model", "card", "batch"};
  for (const Unit& unit : kUnits) table.columns.emplace_back(unit.name);
  for (const Model& model : kModels) {
    Result<Card> loaded = Card::Load(model.card, traces);
    if (!loaded.ok()) return loaded.status();
    Card card = *loaded;
    card.unit_bytes = kUnits[2].bytes;
    const uint64_t batch = card.Bound({model.name, model.name})[0];
    std::vector<double> throughput;
    for (const Unit& unit : kUnits) {
      card.unit_bytes = unit.bytes;
      throughput.push_back(card.Run({{model.name, model.name}, {batch, batch}}, "flow").throughput);
    }
    table.rows.push_back({model.name, model.card, batch});
    for (const double one : throughput) {
      table.rows.back().emplace_back(Over(one, throughput.back()), 3);
    }
  }
  table.notes = {
      "The paper's 512 KiB: NASNet 0.94, ResNet-50 1.00, BERT 0.99; single tensors: "
      "0.94, 0.98, 0.94. Its loss is lock contention, which is not simulated; what is "
      "seen here is how finely memory is counted."};
  return table;
}

Result<PaperTable> ZicoNoTrace(const Traces&) {
  PaperTable table;
  table.kind = "none";
  table.title = "Zico, what is not repeated, and why";
  table.columns = {"part", "of", "paper", "why not"};
  table.rows = {
      {"figure 7", "memory over time: ResNet-110, BERT", "ResNet-110 hardly waits",
       "no trace of ResNet-110; bert-base's memory: zico-figure5, and sluice profile --svg"},
      {"figure 8", "pairs with GNMT, RHN, ResNet-110",
       "1.15 to 1.46 over taking turns, 5.1 to 8.3 "
       "over MPS with UVM",
       "no traces of them; other pairs: waterwave-table2"},
      {"figure 9", "memory over time: NASNet and ResNet-110", "two iterations beside one",
       "no trace of ResNet-110"},
      {"table 1", "tracking at each launch", "NN 0.78, RN-50 0.97, GNMT 0.44",
       "not simulated, but measured: what a mark and a launch cost, bench/run"}};
  return table;
}

}  // namespace sluice::bench
