// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/fit.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/place/offline/random_buffers.h"

namespace sluice::scheduler {
namespace {

TEST(FitTest, EveryHeuristicPlacesEverything) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const auto buffers = RandomBuffers(random, random() % 80, 40, 1000);
    for (const FitOrder order : kFitOrders) {
      for (const FitHole hole : kFitHoles) {
        const Offsets offsets = PlaceByFit(buffers, order, hole);
        const uint64_t height = Footprint(buffers, offsets);
        EXPECT_EQ(ValidatePlacement(buffers, offsets, height).message(), "")
            << Name(order) << ", " << Name(hole);
        EXPECT_GE(height, PeakLoad(buffers));
      }
    }
  }
}

TEST(FitTest, TheFirstHoleIsTheLowestAndTheBestTheSmallest) {
  // When the last one is placed, 0..30 and 40..50 are free.
  const std::vector<Buffer> buffers = {{0, 5, 50}, {4, 9, 40}, {5, 6, 30}, {5, 9, 10}, {6, 7, 9}};
  EXPECT_EQ(PlaceByFit(buffers, FitOrder::kSize, FitHole::kFirst), (Offsets{0, 50, 0, 30, 0}));
  EXPECT_EQ(PlaceByFit(buffers, FitOrder::kSize, FitHole::kBest), (Offsets{0, 50, 0, 30, 40}));
}

TEST(FitTest, HolesInTime) {
  // 0..10 and 15..18 are free when the last one comes.
  const std::vector<Buffer> buffers = {{0, 2, 10}, {0, 9, 5}, {1, 3, 3}, {1, 9, 7}, {4, 5, 3}};
  EXPECT_EQ(PlaceByFit(buffers, FitOrder::kTime, FitHole::kFirst), (Offsets{5, 0, 22, 15, 5}));
  EXPECT_EQ(PlaceByFit(buffers, FitOrder::kTime, FitHole::kBest), (Offsets{5, 0, 22, 15, 5}));
  const std::vector<Buffer> two = {{0, 9, 5}, {0, 3, 10}, {1, 9, 7},
                                   {1, 3, 3}, {2, 9, 1},  {4, 5, 3}};
  EXPECT_EQ(PlaceByFit(two, FitOrder::kTime, FitHole::kFirst).back(), 5u);
  EXPECT_EQ(PlaceByFit(two, FitOrder::kTime, FitHole::kBest).back(), 22u);
}

TEST(FitTest, LargestFirstIsByDecliningSize) {
  const std::vector<Buffer> buffers = {{0, 4, 1}, {0, 4, 3}, {3, 8, 2}, {5, 8, 3}};
  EXPECT_EQ(PlaceByFit(buffers, FitOrder::kSize, FitHole::kBest), (Offsets{5, 0, 3, 0}));
  EXPECT_EQ(PlaceByFit(buffers, FitOrder::kTime, FitHole::kBest), (Offsets{3, 0, 4, 0}));
}

TEST(FitTest, BetweenSizeAndAreaLifeCountsForLess) {
  // Sizes 16, 4, 2 that live 1, 16, 256.
  const std::vector<Buffer> buffers = {{0, 1, 16}, {0, 16, 4}, {0, 256, 2}};
  using Sequence = std::vector<uint32_t>;
  EXPECT_EQ(InOrder(buffers, FitOrder::kSize), (Sequence{0, 1, 2}));
  EXPECT_EQ(InOrder(buffers, FitOrder::kQuarter), (Sequence{0, 1, 2}));
  EXPECT_EQ(InOrder(buffers, FitOrder::kHalf), (Sequence{2, 0, 1}));
  EXPECT_EQ(InOrder(buffers, FitOrder::kArea), (Sequence{2, 1, 0}));
  EXPECT_EQ(InOrder(buffers, FitOrder::kWidth), (Sequence{2, 1, 0}));
}

TEST(FitTest, TimeIsAnOrderLikeAnyOtherForwardsAndBackwards) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50; ++round) {
    const auto buffers = RandomBuffers(random, 60, 40, 100);
    for (const FitOrder order : {FitOrder::kTime, FitOrder::kEnd}) {
      for (const FitHole hole : kFitHoles) {
        uint64_t looks = 0;
        const Offsets slow = PlaceInSequence(buffers, InOrder(buffers, order), hole, &looks);
        EXPECT_EQ(PlaceByFit(buffers, order, hole), slow);
        EXPECT_GT(looks, 0u);
        EXPECT_LE(looks, 60u * 59 / 2);
      }
    }
  }
}

TEST(FitTest, ByEndsIsByTimeBackwards) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 50; ++round) {
    const auto buffers = RandomBuffers(random, 60, 40, 100);
    std::vector<Buffer> backwards;
    for (const Buffer& buffer : buffers) {
      backwards.push_back({40 - buffer.upper, 40 - buffer.lower, buffer.size});
    }
    for (const FitHole hole : kFitHoles) {
      EXPECT_EQ(Footprint(buffers, PlaceByFit(buffers, FitOrder::kEnd, hole)),
                Footprint(backwards, PlaceByFit(backwards, FitOrder::kTime, hole)));
    }
  }
}

TEST(FitTest, ByEndsWhatStaysLongestIsLowest) {
  // Freed from the last to the first, as after a forward pass: nothing is left between them.
  const std::vector<Buffer> buffers = {{0, 9, 3}, {1, 8, 5}, {2, 4, 2}, {5, 7, 1}};
  EXPECT_EQ(InOrder(buffers, FitOrder::kEnd), (std::vector<uint32_t>{0, 1, 3, 2}));
  EXPECT_EQ(PlaceByFit(buffers, FitOrder::kEnd, FitHole::kFirst), (Offsets{0, 3, 8, 8}));
  // The last times there are.
  const uint64_t last = ~uint64_t{0};
  EXPECT_EQ(PlaceByFit(std::vector<Buffer>{{0, last, 3}, {last - 1, last, 5}}, FitOrder::kEnd,
                       FitHole::kFirst),
            (Offsets{0, 3}));
}

}  // namespace
}  // namespace sluice::scheduler
