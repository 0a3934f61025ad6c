// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/leased.h"

#include <gtest/gtest.h>

#include "scheduler/place/offline/fit.h"
#include "tests/unit/scheduler/place/offline/random_buffers.h"

namespace sluice::scheduler {
namespace {

// Each unit at each time.
double CountLeased(const std::vector<Buffer>& buffers, const Offsets& offsets, uint64_t times,
                   uint64_t unit) {
  uint64_t units = 0;
  const uint64_t top = Footprint(buffers, offsets);
  for (uint64_t time = 0; time < times; ++time) {
    for (uint64_t start = 0; start < top; start += unit) {
      bool held = false;
      for (size_t i = 0; i < buffers.size() && !held; ++i) {
        held = buffers[i].lower <= time && time < buffers[i].upper && offsets[i] < start + unit &&
               start < offsets[i] + buffers[i].size;
      }
      units += held ? 1 : 0;
    }
  }
  return static_cast<double>(units * unit);
}

TEST(LeasedTest, IsWhatUnitsAddUpTo) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto buffers = RandomBuffers(random, random() % 30, 20, 50);
    for (const uint64_t unit : {1u, 3u, 16u, 40u, 1000u}) {
      for (const FitOrder order : kFitOrders) {
        const Offsets offsets = PlaceByFit(buffers, order, FitHole::kBest);
        const double leased = LeasedIntegral(buffers, offsets, unit);
        EXPECT_EQ(leased, CountLeased(buffers, offsets, 20, unit)) << "unit " << unit;
        EXPECT_GE(leased, LeastLeasedIntegral(buffers, unit));
      }
    }
  }
}

TEST(LeasedTest, AUnitIsHeldWhileAnythingInItLives) {
  // Units of 10. The second buffer begins in the first unit and has one byte of the next.
  const std::vector<Buffer> buffers = {{0, 4, 5}, {2, 7, 6}};
  EXPECT_EQ(LeasedIntegral(buffers, Offsets{0, 5}, 10), 10 * 2 + 20 * 2 + 20 * 3);
  EXPECT_EQ(LeasedIntegral(buffers, Offsets{0, 10}, 10), 10 * 4 + 10 * 5);
  EXPECT_EQ(LeastLeasedIntegral(buffers, 10), 10 * 2 + 20 * 2 + 10 * 3);
}

TEST(LeasedTest, ByTheByteEveryPlacementIsAtTheBound) {
  std::mt19937_64 random(2);
  const auto buffers = RandomBuffers(random, 50, 30, 100);
  const Offsets offsets = PlaceByFit(buffers, FitOrder::kWidth, FitHole::kFirst);
  EXPECT_EQ(LeasedIntegral(buffers, offsets, 1), LeastLeasedIntegral(buffers, 1));
}

TEST(LeasedTest, TheUnitMayBeAnySize) {
  const std::vector<Buffer> buffers = {{5, 6, uint64_t{1} << 40}, {0, 10, 1}};
  EXPECT_EQ(LeasedIntegral(buffers, Offsets{1, 0}, uint64_t{1} << 62), 10.0 * 0x1p62);
  EXPECT_EQ(LeasedIntegral(buffers, Offsets{1, 0}, 1), 10.0 + 0x1p40);
  EXPECT_EQ(LeasedIntegral({}, {}, 7), 0);
}

}  // namespace
}  // namespace sluice::scheduler
