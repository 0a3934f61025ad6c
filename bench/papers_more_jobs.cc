// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/papers_more_jobs.h"

#include <cmath>
#include <tuple>

#include "bench/papers.h"
#include "bench/parallel.h"

namespace sluice::bench {

namespace {

/// In the order of ModelNames().
constexpr uint64_t kSmallBatches[] = {2, 2, 2, 4, 1, 32};

/// Two, three and four jobs in the same memory, and two in what it leaves beside one and two bases
/// more, where a third and a fourth job's memory would be.
std::vector<MoreJobsRow> LargeRows(const Card& card, const std::string& model) {
  MoreJobsRow row;
  row.model = model;
  row.batch = card.Bound(std::vector<std::string>(4, model))[0];
  std::vector<MoreJobsRow> rows;
  for (const auto& [jobs, by_turns, others] : {std::tuple{2, false, 0},
                                               {3, false, 0},
                                               {3, true, 0},
                                               {4, false, 0},
                                               {4, true, 0},
                                               {2, false, 1},
                                               {2, false, 2}}) {
    row.jobs = static_cast<size_t>(jobs);
    row.by_turns = by_turns;
    row.bases_of_others = static_cast<size_t>(others);
    rows.push_back(row);
  }
  return rows;
}

/// Each in the pools of so many jobs, and two in the same.
std::vector<MoreJobsRow> SmallRows(const std::string& model, uint64_t batch) {
  MoreJobsRow row;
  row.regime = 'B';
  row.model = model;
  row.batch = batch;
  std::vector<MoreJobsRow> rows;
  for (const auto& [jobs, pool_of, by_turns] : {std::tuple{2, 3, false},
                                                {3, 3, false},
                                                {3, 3, true},
                                                {2, 4, false},
                                                {4, 4, false},
                                                {4, 4, true}}) {
    row.jobs = static_cast<size_t>(jobs);
    row.pool_of = static_cast<size_t>(pool_of);
    row.by_turns = by_turns;
    rows.push_back(row);
  }
  return rows;
}

double Measure(const Card& card, const MoreJobsRow& row, double pool) {
  const auto job = card.Job(row.model, row.batch);
  const auto least = [&job](size_t jobs) {
    return scheduler::simulate::LeastPool(
        std::vector<scheduler::simulate::JobRun>(jobs, {&job, 0}));
  };
  const uint64_t base = least(4) - least(3);
  const auto units =
      static_cast<uint64_t>(std::ceil(pool * static_cast<double>(least(row.pool_of))));
  const Card::Jobs jobs = {std::vector<std::string>(row.jobs, row.model),
                           std::vector<uint64_t>(row.jobs, row.batch)};
  return card
      .Run(jobs, row.by_turns ? "auto by turns" : "auto",
           (units - row.bases_of_others * base) * card.unit_bytes)
      .throughput;
}

}  // namespace

Result<PaperTable> MoreThanTwoJobs(const Traces& traces) {
  const Result<Card> large = Card::Load("v100-32", traces);
  if (!large.ok()) return large.status();
  const Result<Card> small = Card::Load("v100-32", traces, SharingVariant::kOccupancy);
  if (!small.ok()) return small.status();
  const std::vector<std::string>& models = ModelNames();
  std::vector<MoreJobsRow> rows;
  for (const std::string& model : models) {
    const std::vector<MoreJobsRow> more = LargeRows(*large, model);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (size_t m = 0; m < models.size(); ++m) {
    const std::vector<MoreJobsRow> more = SmallRows(models[m], kSmallBatches[m]);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  InParallel(rows.size() * kMorePools.size(), [&](size_t i) {
    MoreJobsRow& row = rows[i / kMorePools.size()];
    const size_t pool = i % kMorePools.size();
    row.at[pool] = Measure(row.regime == 'A' ? *large : *small, row, kMorePools[pool]);
  });
  return MoreJobsTable(rows);
}

}  // namespace sluice::bench
