// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/model/returns.h"

#include <gtest/gtest.h>

namespace sluice::scheduler::model {
namespace {

TEST(Returns, NobodyIsAway) {
  EXPECT_TRUE(MostBegins({}).bounded);
  EXPECT_EQ(MostBegins({}).begins, 0u);
}

TEST(Returns, CountsTheLongestWalk) {
  const Bound bound =
      MostBegins({{7, 3, true}, {3, 9, false}, {9, 1, true}, {7, 1, true}, {3, 1, false}});
  EXPECT_TRUE(bound.bounded);
  EXPECT_EQ(bound.begins, 2u);
}

/// Others take and give back for as long as they like inside their iterations.
TEST(Returns, ACycleThatBeginsNothingIsNoMatter) {
  const Bound bound = MostBegins({{1, 2, false}, {2, 1, false}, {2, 3, true}, {3, 3, false}});
  EXPECT_TRUE(bound.bounded);
  EXPECT_EQ(bound.begins, 1u);
}

TEST(Returns, ACycleThatBeginsOneHasNoBound) {
  const Bound bound = MostBegins({{1, 2, false}, {2, 3, true}, {3, 2, false}});
  EXPECT_FALSE(bound.bounded);
  EXPECT_EQ(bound.at, 3u);
  EXPECT_FALSE(MostBegins({{5, 5, true}}).bounded);
}

TEST(Returns, LongWalksNeedNoStack) {
  std::vector<Passage> chain;
  for (uint32_t i = 0; i < 300'000; ++i) chain.push_back({i, i + 1, i % 2 == 0});
  EXPECT_EQ(MostBegins(chain).begins, 150'000u);
}

}  // namespace
}  // namespace sluice::scheduler::model
