// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/gate/credit.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Credit, WaitsForTheFirstMarkThatIsEnough) {
  Credit credit;
  uint64_t wait_for = 0;
  for (uint64_t mark = 1; mark <= 6; ++mark) {  // two launches of 100 ns per mark
    credit.OnLaunch(100);
    credit.OnLaunch(100);
    credit.OnMark(mark);
  }
  EXPECT_EQ(credit.lead_ns(), 1200u);
  EXPECT_FALSE(credit.ShouldWait(0, 1200, &wait_for));
  EXPECT_TRUE(credit.ShouldWait(0, 1199, &wait_for));
  EXPECT_EQ(wait_for, 1u);
  EXPECT_TRUE(credit.ShouldWait(0, 500, &wait_for));
  EXPECT_EQ(wait_for, 4u);
  EXPECT_TRUE(credit.ShouldWait(3, 500, &wait_for));
  EXPECT_EQ(wait_for, 4u);
  EXPECT_FALSE(credit.ShouldWait(4, 500, &wait_for));
  EXPECT_EQ(credit.lead_ns(), 400u);
}

TEST(Credit, NeverLeavesFewerThanTwoLaunches) {
  Credit credit;
  uint64_t wait_for = 0;
  for (uint64_t mark = 1; mark <= 2; ++mark) {  // each launch is far above the credit
    credit.OnLaunch(1'000'000);
    credit.OnMark(mark);
    EXPECT_FALSE(credit.ShouldWait(0, 10, &wait_for));
  }
  credit.OnLaunch(1'000'000);
  credit.OnMark(3);
  EXPECT_TRUE(credit.ShouldWait(0, 10, &wait_for));
  EXPECT_EQ(wait_for, 1u) << "two launches stay queued behind it";
  EXPECT_FALSE(credit.ShouldWait(1, 10, &wait_for));
}

TEST(Credit, WithoutASuitableMarkItDoesNotWait) {
  Credit credit;
  uint64_t wait_for = 0;
  for (int i = 0; i < 50; ++i) credit.OnLaunch(100);
  EXPECT_FALSE(credit.ShouldWait(0, 10, &wait_for)) << "there is nothing to wait for";
  credit.OnMark(1);
  EXPECT_FALSE(credit.ShouldWait(0, 10, &wait_for)) << "it would drain the GPU";
}

TEST(Credit, ManyMarksAndAWrappingCounter) {
  Credit credit;
  uint64_t wait_for = 0;
  uint64_t mark = ~uint64_t{0} - 100;
  const uint64_t start = mark;
  for (int i = 0; i < 300; ++i) {
    credit.OnLaunch(10);
    credit.OnMark(++mark);
  }
  EXPECT_TRUE(credit.ShouldWait(start, 100, &wait_for));
  EXPECT_FALSE(credit.ShouldWait(mark, 100, &wait_for));
  EXPECT_EQ(credit.lead_ns(), 0u);
}

}  // namespace
}  // namespace sluice
