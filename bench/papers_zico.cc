// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/papers_zico.h"

#include <algorithm>
#include <cmath>

#include "bench/papers.h"
#include "bench/parallel.h"
#include "scheduler/simulate/max_batch.h"

namespace sluice::bench {

namespace {

double Over(double value, double base) { return base > 0 ? value / base : 0; }

}  // namespace

Result<std::map<std::string, Card>> ZicoCards(const Traces& traces) {
  std::map<std::string, Card> cards;
  for (const ZicoModel& model : kZicoModels) {
    Result<Card> card = Card::Load(model.card, traces);
    if (!card.ok()) return card.status();
    cards.emplace(model.card, *std::move(card));
  }
  return cards;
}

std::optional<uint64_t> ZicoBatch(const Card& card, const std::string& model, double part) {
  const double most = part * static_cast<double>(card.PoolBytes(2));
  return scheduler::simulate::LargestBatch(card.Alone(model), [&](uint64_t batch) {
    return static_cast<double>(card.Job(model, batch).peak_bytes) <= most;
  });
}

Result<PaperTable> ZicoFigure5(const Traces& traces) {
  constexpr double kParts[] = {0.125, 0.25, 0.5, 0.75, 1.0};
  constexpr size_t kPoints = std::size(kParts);
  const Result<std::map<std::string, Card>> cards = ZicoCards(traces);
  if (!cards.ok()) return cards.status();
  const std::vector<std::string> policies = PolicyNames();
  PaperTable table;
  table.title = "Zico, figures 5 and 6: throughput of two equal jobs over taking turns, and memory";
  table.columns = {"model", "card", "batch", "peaks/card", "auto held/card"};
  table.columns.insert(table.columns.end(), policies.begin(), policies.end());
  table.columns.insert(table.columns.end(), {"auto", "paging", "auto/paging"});
  table.rows.resize(std::size(kZicoModels) * kPoints);
  std::vector<double> gains(table.rows.size());
  std::vector<double> over_paging(table.rows.size());
  InParallel(table.rows.size(), [&](size_t i) {
    const ZicoModel& model = kZicoModels[i / kPoints];
    const Card& card = cards->at(model.card);
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
  const auto mean_of = [&](const char* name) {
    double sum = 0;
    for (size_t i = 0; i < gains.size(); ++i) {
      const ZicoModel& model = kZicoModels[i / kPoints];
      if (model.name == std::string_view(name)) sum += gains[i] / static_cast<double>(kPoints);
    }
    return sum;
  };
  char text[200];
  std::snprintf(text, sizeof text,
                "auto over taking turns, mean over the batches: nasnetalarge: paper 1.35, here "
                "%.2f; gnmt: paper 1.37, here %.2f. Over MPS with UVM at most: paper 4.7, here "
                "%.1f.",
                mean_of("nasnetalarge"), mean_of("gnmt"),
                *std::max_element(over_paging.begin(), over_paging.end()));
  table.notes = {text,
                 "The paper's NASNet is smaller, and all of its models use SGD; bert-base here "
                 "uses Adam. gnmt has four layers here, and 24 words."};
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
  for (const ZicoModel& model : kZicoModels) {
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
      "The paper's 512 KiB: ResNet-50 1.00, BERT 0.99, NASNet 0.94, ResNet-110 0.99, GNMT "
      "0.97, RHN 0.99; single tensors: 0.98, 0.94, 0.94, 0.99, 0.90, 0.96. Its loss is lock "
      "contention, which is not simulated; what is seen here is how finely memory is counted."};
  return table;
}

}  // namespace sluice::bench
