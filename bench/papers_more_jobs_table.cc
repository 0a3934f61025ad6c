// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <functional>
#include <limits>

#include "bench/papers_more_jobs.h"
#include "noderuntime/cli/offline/format.h"

namespace sluice::bench {

namespace {

using cli::Format;

constexpr double kLoss = 0.02;

/// Two jobs in the same bytes, or in what as many jobs as `row` has leave of them beside their
/// bases; nullptr: nobody measured them.
const MoreJobsRow* Two(const std::vector<MoreJobsRow>& rows, const MoreJobsRow& row,
                       bool beside_bases) {
  const size_t others = beside_bases ? row.jobs - 2 : 0;
  const auto two = std::find_if(rows.begin(), rows.end(), [&](const MoreJobsRow& other) {
    return other.jobs == 2 && other.regime == row.regime && other.model == row.model &&
           other.pool_of == row.pool_of && other.bases_of_others == others;
  });
  return two == rows.end() ? nullptr : &*two;
}

/// Of the rows with more than two jobs that are wanted, over all pools.
double WorstLess(const std::vector<MoreJobsRow>& rows, bool beside_bases,
                 const std::function<bool(const MoreJobsRow&)>& wanted) {
  double worst = std::numeric_limits<double>::infinity();
  for (const MoreJobsRow& row : rows) {
    const MoreJobsRow* two = Two(rows, row, beside_bases);
    if (row.jobs == 2 || !wanted(row) || two == nullptr) continue;
    for (size_t i = 0; i < row.at.size(); ++i) worst = std::min(worst, row.at[i] - two->at[i]);
  }
  return worst;
}

}  // namespace

PaperTable MoreJobsTable(const std::vector<MoreJobsRow>& rows) {
  PaperTable table;
  table.title =
      "Three and four equal jobs against two in the same memory, under auto: throughput, "
      "and the difference";
  table.columns = {"regime", "model", "batch", "jobs", "pool of", "bases", "bases of others"};
  for (const double pool : kMorePools) table.columns.push_back(Format("at %.2f", pool));
  for (const double pool : kMorePools) table.columns.push_back(Format("less two at %.2f", pool));
  for (const MoreJobsRow& row : rows) {
    table.rows.push_back({std::string(1, row.regime), row.model, row.batch, uint64_t{row.jobs},
                          uint64_t{row.pool_of}, row.by_turns ? "by turns" : "stay",
                          uint64_t{row.bases_of_others}});
    const MoreJobsRow* two = Two(rows, row, false);
    for (const double figure : row.at) table.rows.back().emplace_back(figure, 3);
    for (size_t i = 0; i < row.at.size(); ++i) {
      table.rows.back().push_back(two == nullptr ? Cell() : Cell(row.at[i] - two->at[i], 3));
    }
  }
  for (const auto& [regime, batches] : {std::pair{'A', "large"}, {'B', "small"}}) {
    table.goals.push_back({Format("three or four jobs of %s batches, bases by turns, less two in "
                                  "the same memory, worst",
                                  batches),
                           WorstLess(rows, false,
                                     [regime = regime](const MoreJobsRow& row) {
                                       return row.by_turns && row.regime == regime;
                                     }),
                           -kLoss});
  }
  const auto stays = [&](char regime, const char* model, bool beside_bases) {
    return WorstLess(rows, beside_bases, [=](const MoreJobsRow& row) {
      return !row.by_turns && row.regime == regime && (*model == '\0' || row.model == model);
    });
  };
  table.notes = {
      "Regime A: the largest batches of four jobs on 32 GiB, kernels that leave to others what "
      "they do not use. B: small batches, kernels that are long enough fill the GPU.",
      "Pools over the bases and one peak of so many jobs (pool of); of four large ones that is the "
      "card, and the larger ones are larger than the card.",
      "bases by turns: auto may keep those of jobs that wait in host memory, as large as the pool, "
      "over the card's host link (sluice simulate --residents auto). stay: there is none.",
      "bases of others: two jobs in a pool that is smaller by so many bases, which is what three "
      "and four jobs have to share beside their own.",
      Format("Less two in the same memory, worst, where all bases stay: large batches %.3f "
             "(resnet50 %.3f), small ones %.3f (resnet50 %.3f). Less two with as much beside the "
             "bases: large batches %.3f.",
             stays('A', "", false), stays('A', "resnet50", false), stays('B', "", false),
             stays('B', "resnet50", false), stays('A', "", true))};
  return table;
}

}  // namespace sluice::bench
