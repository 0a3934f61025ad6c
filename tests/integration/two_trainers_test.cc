// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "common/bytes.h"
#include "tests/support/trainer_crowd.h"

namespace sluice::testing {
namespace {

/// Two unchanged training programs.
class TwoTrainers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Learning the cycle of both takes some 20 iterations; the rest is for lending.
    crowd_ = new TrainerCrowd({{{"small-a", 1, 100, {}}}, {{"small-b", 2, 100, {}}}}, 0.645);
  }
  static void TearDownTestSuite() { delete crowd_; }

  static TrainerCrowd* crowd_;
};
TrainerCrowd* TwoTrainers::crowd_ = nullptr;

TEST_F(TwoTrainers, PeaksAreLargeAndDoNotFit) {
  uint64_t sum = 0;
  for (const TrainerResult& solo : crowd_->solo()) {
    EXPECT_GE(solo.peak_bytes, 64 * 256 * kKiB);
    sum += solo.peak_bytes;
  }
  EXPECT_LT(static_cast<double>(crowd_->pool()), 0.65 * static_cast<double>(sum));
}

TEST_F(TwoTrainers, WithoutSluiceOneRunsOutOfMemory) { crowd_->ExpectOutOfMemoryWithoutSluice(); }

TEST_F(TwoTrainers, FlowLendsWithinIterations) {
  EXPECT_GT(crowd_->Share("flow").lent_bytes_within_iterations, 0u);
}

TEST_F(TwoTrainers, TemporalLendsNothingWithinIterations) {
  EXPECT_EQ(crowd_->Share("temporal").lent_bytes_within_iterations, 0u);
}

}  // namespace
}  // namespace sluice::testing
