// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cmath>
#include <functional>

#include "bench/papers.h"
#include "bench/parallel.h"
#include "noderuntime/cli/offline/format.h"
#include "scheduler/simulate/max_batch.h"

namespace sluice::bench {

namespace {

using cli::Format;
using scheduler::simulate::PagingOptions;

double Over(double value, double base) { return base > 0 ? value / base : 0; }

/// One model of the goals at the largest batches.
struct Largest {
  uint64_t alone = 0, bound = 0;
  uint64_t batch = 0;      // from 0.97 of the bound on
  double over_turns = 0;   // there
  double unlimited = 0;    // over turns, there
  double over_paging = 0;  // there
  uint64_t keeps = 0;      // the largest that keeps 95 % of unlimited memory's throughput
};

constexpr double kLeastOfBound = 0.97;
constexpr double kLeastGain = 1.05;
constexpr double kMeanGain = 1.09;
constexpr double kKeeps = 0.95;
constexpr double kMeanKept = 0.76;  // of the largest batch alone
constexpr double kOverPaging = 12;  // resnet50, where Waterwave has it

Largest MeasureLargest(const Card& card, const std::string& model) {
  Largest largest;
  largest.alone = card.Alone(model);
  largest.bound = card.Bound({model, model})[0];
  const auto least =
      static_cast<uint64_t>(std::ceil(kLeastOfBound * static_cast<double>(largest.bound)));
  const auto at = [&](uint64_t batch) { return Card::Jobs{{model, model}, {batch, batch}}; };
  for (uint64_t batch = largest.bound; batch >= least; --batch) {
    const double gain =
        Over(card.Run(at(batch), "auto").throughput, card.Run(at(batch), "temporal").throughput);
    if (gain <= largest.over_turns) continue;
    largest.over_turns = gain;
    largest.batch = batch;
    if (gain >= kLeastGain) break;
  }
  const double shared = card.Run(at(largest.batch), "auto").throughput;
  largest.unlimited = Over(card.Run(at(largest.batch), "unlimited").throughput,
                           card.Run(at(largest.batch), "temporal").throughput);
  largest.over_paging = Over(shared, card.Run(at(largest.batch), "paging").throughput);
  largest.keeps = scheduler::simulate::LargestBatchFromAbove(largest.bound, [&](uint64_t batch) {
                    return card.Run(at(batch), "auto").throughput >=
                           kKeeps * card.Run(at(batch), "unlimited").throughput;
                  }).value_or(0);
  return largest;
}

double Part(uint64_t part, uint64_t whole) {
  return Over(static_cast<double>(part), static_cast<double>(whole));
}

}  // namespace

Result<PaperTable> LargestBatches(const Traces& traces) {
  const Result<Card> card = Card::Load("v100-32", traces);
  if (!card.ok()) return card.status();
  const std::vector<std::string>& models = ModelNames();
  std::vector<Largest> all(models.size());
  InParallel(models.size(), [&](size_t i) { all[i] = MeasureLargest(*card, models[i]); });
  PaperTable table;
  table.title = "Two equal jobs on 32 GiB under auto: how large, and how fast there";
  table.columns = {"model",      "alone",           "bound",       "batch",      "batch/bound",
                   "over turns", "unlimited/turns", "over paging", "keeps 95 %", "keeps/alone"};
  double gains = 0;
  double kept = 0;
  double least_gain = 1e9;
  double least_bound = 1e9;
  double paging = 0;
  for (size_t i = 0; i < models.size(); ++i) {
    const Largest& one = all[i];
    table.rows.push_back({models[i], one.alone, one.bound, one.batch,
                          Cell(Part(one.batch, one.bound), 3), Cell(one.over_turns, 3),
                          Cell(one.unlimited, 3), Cell(one.over_paging, 2), one.keeps,
                          Cell(Part(one.keeps, one.alone), 2)});
    gains += one.over_turns / static_cast<double>(models.size());
    kept += Part(one.keeps, one.alone) / static_cast<double>(models.size());
    least_gain = std::min(least_gain, one.over_turns);
    least_bound = std::min(least_bound, Part(one.batch, one.bound));
    if (models[i] == "resnet50") paging = one.over_paging;
  }
  table.goals = {
      {"batch over the bound, worst", least_bound, kLeastOfBound},
      {"throughput over taking turns there, worst", least_gain, kLeastGain},
      {"throughput over taking turns there, mean", gains, kMeanGain},
      {"largest batch that keeps 95 % of unlimited memory, over alone, mean", kept, kMeanKept},
      {"resnet50 over paging", paging, kOverPaging}};
  table.notes = {
      "bound: all bases resident and one peak. batch: the largest, from 0.97 of the "
      "bound on, with 1.05 times the throughput of taking turns."};
  return table;
}

Result<PaperTable> PagingSensitivity(const Traces& traces) {
  struct Change {
    const char* name;
    std::function<void(PagingOptions*, double)> apply;
  };
  const std::vector<Change> changes = {
      {"link bandwidth", [](PagingOptions* o, double by) { o->link_bytes_per_s *= by; }},
      {"cost of a fault group", [](PagingOptions* o, double by) { o->fault_group_ns *= by; }},
      {"groups per block", [](PagingOptions* o, double by) { o->groups_per_block *= by; }},
      {"page",
       [](PagingOptions* o, double by) { o->page_bytes = uint64_t(double(o->page_bytes) * by); }},
      {"block",
       [](PagingOptions* o, double by) { o->block_bytes = uint64_t(double(o->block_bytes) * by); }},
  };
  const Result<Card> card = Card::Load("v100-32", traces);
  if (!card.ok()) return card.status();
  const std::vector<std::string>& models = ModelNames();
  const std::vector<std::string> ways = {"paging", "paging at best"};
  std::vector<std::vector<double>> ratios(models.size() * ways.size());
  std::vector<double> moved(ratios.size());
  InParallel(ratios.size(), [&](size_t at) {
    const size_t i = at / ways.size();
    const std::string& way = ways[at % ways.size()];
    const uint64_t batch = card->Bound({models[i], models[i]})[0];
    const Card::Jobs jobs = {{models[i], models[i]}, {batch, batch}};
    const double shared = card->Run(jobs, "auto").throughput;
    const auto page = [&](const PagingOptions& options) {
      const Together run = card->Page(jobs, way, options);
      ratios[at].push_back(Over(shared, run.throughput));
      return run;
    };
    const PagingOptions usual = PagingOptions::Of(card->machine());
    moved[at] = page(usual).moved_bytes;
    for (const Change& change : changes) {
      for (const double by : {0.5, 2.0}) {
        PagingOptions options = usual;
        change.apply(&options, by);
        page(options);
      }
    }
    PagingOptions options = usual;
    options.copies_clean = true;
    page(options);
  });
  PaperTable table;
  table.title =
      "Throughput of auto over paging at the largest batch of two equal jobs, and how it "
      "hangs on the model of paging";
  table.columns = {"freed memory", "parameter"};
  table.columns.insert(table.columns.end(), models.begin(), models.end());
  for (size_t way = 0; way < ways.size(); ++way) {
    const auto row = [&](const std::string& name, const std::vector<double>& figures, int digits) {
      table.rows.push_back({way == 0 ? "is kept" : "is gone", name});
      for (const double figure : figures) table.rows.back().emplace_back(figure, digits);
    };
    const auto ratio = [&](size_t change) {
      std::vector<double> figures;
      for (size_t m = 0; m < models.size(); ++m) {
        figures.push_back(ratios[m * ways.size() + way][change]);
      }
      return figures;
    };
    row("as they are", ratio(0), 2);
    for (size_t c = 0; c < changes.size(); ++c) {
      row(std::string(changes[c].name) + " x 0.5", ratio(1 + 2 * c), 2);
      row(std::string(changes[c].name) + " x 2", ratio(2 + 2 * c), 2);
    }
    row("clean blocks are copied too", ratio(1 + 2 * changes.size()), 2);
    std::vector<double> gibibytes;
    for (size_t m = 0; m < models.size(); ++m) {
      gibibytes.push_back(moved[m * ways.size() + way] / (1u << 30));
    }
    row("GiB moved per iteration of a job", gibibytes, 1);
  }
  table.rows.push_back({"paper", "over MPS with UVM"});
  for (const std::string& model : models) {
    table.rows.back().push_back(model == "resnet50"    ? Cell(12.0, 1)
                                : model == "bert-base" ? Cell(6.8, 1)
                                : model == "tacotron2" ? Cell(3.1, 1)
                                                       : Cell());
  }
  table.notes = {
      "Each parameter's source: scheduler/simulate/paging.h. Choices that sources leave "
      "open were made in favour of paging, so a real driver is slower.",
      "Freed memory is kept: frameworks allocate from memory that they keep, so that "
      "what they freed is moved like all else. Gone: as if each free went to the "
      "driver, for which jobs that page fall into a phase in which they hardly do."};
  return table;
}

}  // namespace sluice::bench
