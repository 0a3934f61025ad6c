// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/tuner/search.h"

#include <algorithm>

#include "tests/unit/noderuntime/tuner/tasks.h"

namespace sluice::tuner {
namespace {

using scheduler::Claims;

TEST(Search, NamesOnlyWhatCanBeChangedOnARunningNode) {
  SearchTask task = TwoTriangles();
  task.claims = Claims::kCurve;
  const SearchResult found = RunSearch(task, {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_FALSE(found->finalists.empty()) << "half of each iteration is the host's";
  bool falling = false;
  bool soft = false;
  bool credit = false;
  for (const auto& tried : found->tried) {
    EXPECT_EQ(tried.setting.budget, 0u);
    EXPECT_EQ(tried.setting.drain, scheduler::simulate::Drain::kWhenOthersWait);
    falling = falling || tried.setting.claims != Claims::kContract;
    soft = soft || tried.setting.policy.soft_budget != 0;
    credit = credit || tried.setting.credit_parts != scheduler::kCreditParts;
  }
  EXPECT_TRUE(falling);
  EXPECT_TRUE(soft);
  EXPECT_TRUE(credit);
}

/// Jobs that outgrew a soft budget, and a node that was told the credit.
TEST(Search, TriesNoBudgetAndNoCreditWhereTheyAreGiven) {
  SearchTask task = TwoTriangles();
  task.soft_budgets = task.credits = false;
  const SearchResult found = RunSearch(task, {});
  ASSERT_TRUE(found.ok());
  for (const auto& tried : found->tried) {
    EXPECT_EQ(tried.setting.policy.soft_budget, 0u);
    EXPECT_EQ(tried.setting.credit_parts, scheduler::kCreditParts);
  }
}

TEST(Search, TriesNoFallingClaimsForWhoIsNotInsured) {
  const SearchResult found = RunSearch(TwoTriangles(), {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  for (const auto& tried : found->tried) EXPECT_EQ(tried.setting.claims, Claims::kContract);
}

TEST(Search, TriesFewerBasesThanJobsWhereThereIsHostMemory) {
  for (const uint32_t host : {0u, 1000u}) {
    SearchTask task = TwoTriangles();
    task.jobs.push_back(task.jobs.front());
    for (auto& job : task.jobs) {
      job.base_units += 10;
      job.plan.peak_units += 10;
      for (auto& gate : job.plan.gates) gate.need_units += 10;
    }
    task.options.pool_units += 30;
    task.options.host.units = host;
    const SearchResult found = RunSearch(task, {});
    ASSERT_TRUE(found.ok()) << found.status().message();
    const bool tried = std::any_of(found->tried.begin(), found->tried.end(), [](const auto& one) {
      return one.setting.policy.residents == 2;
    });
    EXPECT_EQ(tried, host > 0);
  }
}

TEST(Search, SaysWhenTheJobsDoNotFit) {
  SearchTask task = TwoTriangles();
  task.options.pool_units = 5;
  EXPECT_EQ(RunSearch(task, {}).status().code(), StatusCode::kResourceExhausted);
}

TEST(Search, Stops) {
  EXPECT_EQ(RunSearch(TwoTriangles(), [] { return true; }).status().code(),
            StatusCode::kUnavailable);
}

}  // namespace
}  // namespace sluice::tuner
