// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/repair.h"

#include <gtest/gtest.h>

#include "scheduler/place/offline/fit.h"
#include "tests/unit/scheduler/place/offline/random_buffers.h"

namespace sluice::scheduler {
namespace {

Repair Start(const std::vector<Buffer>& buffers, FitOrder order, uint64_t seed) {
  return Repair(buffers, InOrder(buffers, order), PlaceByFit(buffers, order, FitHole::kFirst),
                seed);
}

TEST(RepairTest, NeverGetsWorseAndOftenBetter) {
  std::mt19937_64 random(1);
  int better = 0;
  for (int round = 0; round < 40; ++round) {
    const auto buffers = RandomBuffers(random, 60, 30, 100);
    const uint64_t goal = PeakLoad(buffers);
    Repair repair = Start(buffers, FitOrder::kArea, 1);
    const uint64_t start = repair.footprint();
    for (int i = 0; i < 50; ++i) {
      const uint64_t before = repair.footprint();
      repair.Round(goal);
      ASSERT_LE(repair.footprint(), before);
      ASSERT_EQ(repair.footprint(), Footprint(buffers, repair.offsets()));
      ASSERT_EQ(ValidatePlacement(buffers, repair.offsets(), before).message(), "");
    }
    better += repair.footprint() < start ? 1 : 0;
  }
  EXPECT_GT(better, 20);
}

TEST(RepairTest, EqualSeedsTakeEqualSteps) {
  std::mt19937_64 random(2);
  const auto buffers = RandomBuffers(random, 80, 30, 100);
  Repair one = Start(buffers, FitOrder::kSize, 7);
  Repair two = Start(buffers, FitOrder::kSize, 7);
  Repair other = Start(buffers, FitOrder::kSize, 8);
  bool differs = false;
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(one.Round(0), two.Round(0));
    other.Round(0);
    EXPECT_EQ(one.offsets(), two.offsets());
    differs = differs || one.offsets() != other.offsets();
  }
  EXPECT_TRUE(differs) << "the seed counts";
}

TEST(RepairTest, AtTheGoalNothingMoves) {
  const std::vector<Buffer> buffers = {{0, 2, 5}, {1, 3, 5}};
  Repair repair = Start(buffers, FitOrder::kTime, 1);
  EXPECT_EQ(repair.Round(10), 0u);
  EXPECT_EQ(repair.footprint(), 10u);
  EXPECT_GT(repair.Round(9), 0u);
}

}  // namespace
}  // namespace sluice::scheduler
