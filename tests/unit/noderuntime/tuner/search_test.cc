// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/tuner/search.h"

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
  for (const auto& tried : found->tried) {
    EXPECT_EQ(tried.setting.budget, 0u);
    EXPECT_EQ(tried.setting.credit_parts, scheduler::simulate::Setting().credit_parts);
    EXPECT_EQ(tried.setting.drain, scheduler::simulate::Drain::kWhenOthersWait);
    falling = falling || tried.setting.claims != Claims::kContract;
  }
  EXPECT_TRUE(falling);
}

TEST(Search, TriesNoFallingClaimsForWhoIsNotInsured) {
  const SearchResult found = RunSearch(TwoTriangles(), {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  for (const auto& tried : found->tried) EXPECT_EQ(tried.setting.claims, Claims::kContract);
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
