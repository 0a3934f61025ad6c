// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/buffers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/scheduler/place/offline/random_buffers.h"

namespace sluice::scheduler {
namespace {

TEST(BuffersTest, WhatMakesNoSenseIsNamed) {
  const auto why = [](std::vector<Buffer> buffers) { return CheckBuffers(buffers).message(); };
  EXPECT_EQ(why({{0, 1, 1}, {5, 6, 7}}), "");
  EXPECT_EQ(why({{0, 1, 1}, {5, 5, 7}}), "buffer 1: upper: is 5, but must be above lower (5)");
  EXPECT_EQ(why({{0, 1, 0}}), "buffer 0: size: is 0, but must be at least 1");
  const std::string sum = std::to_string(kMaxTotalBytes);
  EXPECT_EQ(why({{0, 1, kMaxTotalBytes / 2}, {2, 3, kMaxTotalBytes / 2}}),
            "buffer 1: size: is " + std::to_string(kMaxTotalBytes / 2) +
                ", but all sizes together must be below " + sum);
  EXPECT_EQ(why({{0, 1, ~uint64_t{0}}}),
            "buffer 0: size: is 18446744073709551615, but all sizes together must be below " + sum);
}

TEST(BuffersTest, ThePeakIsWhatLivesAtOneTime) {
  EXPECT_EQ(PeakLoad({}), 0u);
  const std::vector<Buffer> buffers = {{0, 4, 10}, {2, 6, 5}, {4, 8, 7}, {6, 7, 1}};
  EXPECT_EQ(PeakLoad(buffers), 15u) << "the first has ended when the third begins";
}

TEST(BuffersTest, APlacementIsJudged) {
  const std::vector<Buffer> buffers = {{0, 4, 10}, {2, 6, 5}, {4, 8, 7}};
  const auto why = [&](std::vector<uint64_t> offsets, uint64_t capacity) {
    return ValidatePlacement(buffers, offsets, capacity).message();
  };
  EXPECT_EQ(why({0, 10, 0}, 15), "");
  EXPECT_EQ(Footprint(buffers, std::vector<uint64_t>{0, 10, 0}), 15u);
  EXPECT_EQ(why({0, 10, 0}, 14), "buffer 1 at 10 with 5 bytes reaches above 14");
  EXPECT_EQ(why({0, 9, 0}, 15), "buffers 0 and 1 overlap in time and space");
  EXPECT_EQ(why({0, 10, 8}, 15), "buffers 1 and 2 overlap in time and space");
  EXPECT_EQ(why({0, 10}, 15), "2 offsets for 3 buffers");
  EXPECT_EQ(why({0, ~uint64_t{0}, 0}, 15),
            "buffer 1 at 18446744073709551615 with 5 bytes reaches above 15");
}

// Against every pair.
TEST(BuffersTest, TheJudgeIsRightAboutRandomPlacements) {
  std::mt19937_64 random(1);
  int valid = 0;
  constexpr int kRounds = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    const auto buffers = RandomBuffers(random, 1 + random() % 6, 8, 4);
    Offsets offsets;
    for (size_t i = 0; i < buffers.size(); ++i) offsets.push_back(random() % 12);
    bool good = true;
    for (size_t i = 0; i < buffers.size(); ++i) {
      good = good && offsets[i] + buffers[i].size <= 13;
      for (size_t j = 0; j < i; ++j) {
        const bool time =
            buffers[i].lower < buffers[j].upper && buffers[j].lower < buffers[i].upper;
        const bool space =
            offsets[i] < offsets[j] + buffers[j].size && offsets[j] < offsets[i] + buffers[i].size;
        good = good && !(time && space);
      }
    }
    EXPECT_EQ(ValidatePlacement(buffers, offsets, 13).ok(), good);
    valid += good ? 1 : 0;
  }
  EXPECT_GT(valid, kRounds / 10);
  EXPECT_LT(valid, kRounds * 9 / 10);
}

}  // namespace
}  // namespace sluice::scheduler
