// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/max_batch.h"

#include <gtest/gtest.h>

namespace sluice::scheduler::simulate {
namespace {

TEST(MaxBatch, IsTheLargestThatHolds) {
  for (uint64_t most = 1; most < 40; ++most) {
    for (uint64_t edge = 0; edge < 45; ++edge) {
      const auto found = LargestBatch(most, [&](uint64_t samples) {
        EXPECT_GE(samples, 1u);
        EXPECT_LE(samples, most);
        return samples <= edge;
      });
      if (edge == 0) {
        EXPECT_EQ(found, std::nullopt);
      } else {
        EXPECT_EQ(found, std::min(edge, most));
      }
    }
  }
}

TEST(MaxBatch, AsksAFewTimesOnly) {
  int asked = 0;
  EXPECT_EQ(LargestBatch(1u << 20,
                         [&](uint64_t samples) {
                           ++asked;
                           return samples <= 12345;
                         }),
            12345u);
  EXPECT_LE(asked, 21);
}

TEST(MaxBatch, GoesDownInEqualSteps) {
  std::vector<uint64_t> asked;
  // True, false and true again: the one nearest to the top counts.
  const auto found = LargestBatchFromAbove(480, [&](uint64_t samples) {
    asked.push_back(samples);
    return samples <= 450 && samples != 300;
  });
  EXPECT_EQ(found, 450u);
  EXPECT_EQ(asked, (std::vector<uint64_t>{480, 470, 460, 450}));
  asked.clear();
  EXPECT_EQ(LargestBatchFromAbove(3,
                                  [&](uint64_t samples) {
                                    asked.push_back(samples);
                                    return false;
                                  }),
            std::nullopt);
  EXPECT_EQ(asked, (std::vector<uint64_t>{3, 2, 1})) << "no step is skipped, and there is an end";
}

TEST(MaxBatch, EachJobHasTheSamePartOfItsOwn) {
  EXPECT_EQ(BatchesAt({100, 50, 3}, 50), (std::vector<uint64_t>{50, 25, 1}));
  EXPECT_EQ(BatchesAt({100, 50, 3}, 1), (std::vector<uint64_t>{1, 1, 1})) << "at least one sample";
  for (uint64_t alone = 1; alone < 200; ++alone) {
    EXPECT_EQ(BatchesAt({alone, alone}, alone), (std::vector<uint64_t>{alone, alone}));
  }
}

}  // namespace
}  // namespace sluice::scheduler::simulate
