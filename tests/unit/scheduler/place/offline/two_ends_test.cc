// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/two_ends.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/scheduler/place/offline/random_buffers.h"
#include "tests/unit/scheduler/place/offline/turns.h"

namespace sluice::scheduler {
namespace {

using Outcome = ExactResult::Outcome;

constexpr uint64_t kNodes = 100'000;

// With every size from which on buffers are large, the smallest and beyond the largest included.
TEST(TwoEndsTest, EveryHeuristicPlacesEverything) {
  std::mt19937_64 random(1);
  int placed = 0;
  for (int round = 0; round < 60; ++round) {
    const auto buffers = RandomBuffers(random, random() % 60, 40, 100);
    const Sections sections(buffers);
    for (const FitOrder order : kFitOrders) {
      for (const uint64_t large_bytes : {0u, 20u, 50u, 80u, 101u}) {
        const TwoEnds split(buffers, sections, large_bytes, order);
        EXPECT_EQ(split.large(), static_cast<size_t>(std::count_if(
                                     buffers.begin(), buffers.end(),
                                     [&](const Buffer& b) { return b.size >= large_bytes; })));
        EXPECT_GE(split.lowest(), PeakLoad(buffers));
        for (uint64_t capacity = split.lowest(); capacity < 2 * split.lowest() + 2;
             capacity += 1 + capacity / 8) {
          const ExactResult result = split.Place(capacity, kNodes);
          if (result.outcome != Outcome::kPlaced) continue;
          EXPECT_EQ(ValidatePlacement(buffers, result.offsets, capacity).message(), "")
              << Name(order) << " below " << large_bytes;
          EXPECT_GE(Footprint(buffers, result.offsets), split.lowest());
          ++placed;
        }
      }
    }
  }
  EXPECT_GT(placed, 60 * 7 * 5);
}

TEST(TwoEndsTest, AtTheEndsThereIsOneKindOnly) {
  std::mt19937_64 random(2);
  const auto buffers = RandomBuffers(random, 50, 40, 100);
  const Sections sections(buffers);
  const TwoEnds large(buffers, sections, 1, FitOrder::kTime);
  EXPECT_EQ(large.lowest(), PeakLoad(buffers));
  const TwoEnds small(buffers, sections, 101, FitOrder::kTime);
  const uint64_t stack = Footprint(buffers, PlaceByFit(buffers, FitOrder::kTime, FitHole::kFirst));
  EXPECT_EQ(small.lowest(), stack);
  const ExactResult result = small.Place(2 * stack, kNodes);
  ASSERT_EQ(result.outcome, Outcome::kPlaced);
  EXPECT_EQ(Footprint(buffers, result.offsets), stack) << "they come down as far as they can";
}

TEST(TwoEndsTest, BelowItsLowestNothingIsPossible) {
  const std::vector<Buffer> buffers = {{0, 4, 10}, {2, 6, 10}, {0, 3, 1}, {1, 5, 2}};
  const Sections sections(buffers);
  const TwoEnds split(buffers, sections, 5, FitOrder::kEnd);
  EXPECT_EQ(split.lowest(), 23u);
  EXPECT_EQ(split.Place(22, kNodes).outcome, Outcome::kImpossible);
  EXPECT_EQ(split.Place(23, kNodes).outcome, Outcome::kPlaced);
}

TEST(TwoEndsTest, ReachesThePeakWhereLargeBuffersTakeTurns) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 8; ++round) {
    const auto buffers = LargeTakeTurns(random, 150 + random() % 100, 6 + random() % 20);
    const uint64_t peak = PeakLoad(buffers);
    for (const FitOrder order : kFitOrders) {
      for (const FitHole hole : kFitHoles) {
        EXPECT_GT(Footprint(buffers, PlaceByFit(buffers, order, hole)), peak);
      }
    }
    const Sections sections(buffers);
    const auto splits = LikelySplits(buffers, sections);
    EXPECT_TRUE(std::any_of(splits.begin(), splits.end(), [&](const TwoEnds& split) {
      return split.Place(peak + peak / 4096, kNodes).outcome == Outcome::kPlaced;
    })) << round;
  }
}

TEST(TwoEndsTest, TimeMayRunBackwards) {
  std::mt19937_64 random(4);
  const auto buffers = LargeTakeTurns(random, 200, 12);
  std::vector<Buffer> backwards;
  for (const Buffer& buffer : buffers) {
    backwards.push_back({10'000 - buffer.upper, 10'000 - buffer.lower, buffer.size});
  }
  const Sections sections(buffers);
  const Sections sections_backwards(backwards);
  const TwoEnds one(buffers, sections, 20, FitOrder::kEnd);
  const TwoEnds other(backwards, sections_backwards, 20, FitOrder::kTime);
  EXPECT_EQ(one.lowest(), other.lowest());
  EXPECT_LE(LikelySplits(backwards, sections_backwards).front().lowest(), one.lowest());
}

TEST(TwoEndsTest, LikelyOnesAreFewAndTheLowestComesFirst) {
  std::mt19937_64 random(5);
  const auto buffers = LargeTakeTurns(random, 2000, 40);
  const Sections sections(buffers);
  const auto splits = LikelySplits(buffers, sections);
  ASSERT_GE(splits.size(), 2u);
  ASSERT_LE(splits.size(), 21u);
  for (size_t i = 0; i < splits.size(); ++i) {
    EXPECT_GT(splits[i].large(), 0u);
    EXPECT_LE(splits[i].large(), 1024u);
  }
  EXPECT_TRUE(std::is_sorted(splits.begin(), splits.end(), [](const TwoEnds& a, const TwoEnds& b) {
    return a.lowest() < b.lowest();
  }));
  EXPECT_TRUE(LikelySplits({}, Sections({})).empty());
}

}  // namespace
}  // namespace sluice::scheduler
