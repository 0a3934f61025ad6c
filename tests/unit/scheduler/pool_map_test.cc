// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/ledger/pool_map.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::scheduler {
namespace {

TEST(PoolMap, CountsWhatAHolderHasOfAnExtent) {
  PoolMap map(20);
  map.Set({2, 6}, UnitState::kLeased, 1);
  map.Set({4, 2}, UnitState::kUnfenced, 1, 7);
  map.Set({10, 4}, UnitState::kLeased, 2);
  EXPECT_EQ(map.Count(Extent{0, 20}, 1), 6u);
  EXPECT_EQ(map.Count(Extent{3, 8}, 1), 5u);
  EXPECT_EQ(map.Count(Extent{3, 8}, 2), 1u);
  EXPECT_EQ(map.Count(Extent{13, 7}, 2), 1u);
  EXPECT_EQ(map.Count(Extent{8, 2}, 1), 0u);
  EXPECT_EQ(map.Count(Extent{5, 0}, 1), 0u);
}

TEST(PoolMap, StartsAsOneFreeRun) {
  const PoolMap map(8);
  EXPECT_EQ(map.FreeRuns(), (Extents{{0, 8}}));
  EXPECT_EQ(map.free(), 8u);
  EXPECT_TRUE(PoolMap(0).spans().empty());
}

TEST(PoolMap, SplitsAndMergesSpans) {
  PoolMap map(8);
  map.Set({2, 3}, UnitState::kLeased, 1);
  EXPECT_EQ(map.FreeRuns(), (Extents{{0, 2}, {5, 3}}));
  EXPECT_EQ(map.Held(1), (Extents{{2, 3}}));
  map.Set({3, 1}, UnitState::kUnfenced, 1, 7);
  EXPECT_EQ(map.Held(1, UnitState::kLeased), (Extents{{2, 1}, {4, 1}}));
  EXPECT_EQ(map.Held(1), (Extents{{2, 3}}));
  map.Set({2, 3}, UnitState::kFree, kNoJob);
  EXPECT_EQ(map, PoolMap(8));
}

TEST(PoolMap, UnitsOfTwoReleasesStayApart) {
  PoolMap map(8);
  map.Set({0, 2}, UnitState::kUnfenced, 1, 7);
  map.Set({2, 2}, UnitState::kUnfenced, 1, 8);
  ASSERT_EQ(map.spans().size(), 3u);
  EXPECT_EQ(map.spans()[0].release, 7u);
  EXPECT_EQ(map.spans()[1].release, 8u);
  map.Set({0, 2}, UnitState::kUnfenced, 1, 8);
  EXPECT_EQ(map.spans().size(), 2u) << "now they are of one";
}

TEST(PoolMap, AllRefusesWhatLeavesThePool) {
  const PoolMap map(8);
  EXPECT_TRUE(map.All({0, 8}, UnitState::kFree, kNoJob));
  EXPECT_FALSE(map.All({4, 5}, UnitState::kFree, kNoJob));
  EXPECT_FALSE(map.All({4, 0}, UnitState::kFree, kNoJob));
  EXPECT_FALSE(map.All({4, 0xfffffffe}, UnitState::kFree, kNoJob)) << "the sum wraps";
}

/// The spans against one entry per unit.
TEST(PoolMap, MatchesAnArrayOfUnits) {
  std::mt19937 random(1);
  PoolMap map(32);
  std::vector<JobId> holders(32, kNoJob);
  for (int step = 0; step < 2000; ++step) {
    const Units offset = static_cast<Units>(random() % 32);
    const Units length = static_cast<Units>(1 + random() % (32 - offset));
    const JobId holder = static_cast<JobId>(random() % 4);
    map.Set({offset, length}, holder == kNoJob ? UnitState::kFree : UnitState::kLeased, holder);
    std::fill_n(holders.begin() + offset, length, holder);
    for (JobId job = 0; job < 4; ++job) {
      Extents expected;
      for (Units at = 0; at < 32; ++at) {
        if (holders[at] == job) expected.push_back({at, 1});
      }
      ASSERT_EQ(map.Held(job), Merge(expected)) << "step " << step;
    }
    for (size_t i = 1; i < map.spans().size(); ++i) {
      ASSERT_NE(map.spans()[i - 1].holder, map.spans()[i].holder)
          << "neighbours that are alike are merged";
    }
  }
}

TEST(ExtentSets, UnionSubtractIntersect) {
  const Extents a{{0, 4}, {8, 4}};
  const Extents b{{2, 8}};
  EXPECT_EQ(Union(a, b), (Extents{{0, 12}}));
  EXPECT_EQ(Subtract(a, b), (Extents{{0, 2}, {10, 2}}));
  EXPECT_EQ(Intersect(a, b), (Extents{{2, 2}, {8, 2}}));
  EXPECT_EQ(Subtract(b, {}), b);
  EXPECT_TRUE(Intersect(a, {}).empty());
  EXPECT_EQ(Merge({{5, 2}, {0, 5}, {9, 0}}), (Extents{{0, 7}}));
  EXPECT_EQ(TotalUnits(a), 8u);
}

}  // namespace
}  // namespace sluice::scheduler
