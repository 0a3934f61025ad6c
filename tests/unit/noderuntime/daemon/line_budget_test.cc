// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/line_budget.h"

#include <gtest/gtest.h>

namespace sluice::noded {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kStart = 1'000 * kSecond;

TEST(LineBudget, ABurstIsWrittenAndTheRestIsCounted) {
  LineBudget budget(16, 1, kStart);
  int written = 0;
  for (int i = 0; i < 1'000; ++i) written += budget.Take(kStart) ? 1 : 0;
  EXPECT_EQ(written, 16);
  EXPECT_EQ(budget.left_out(), 984u);
}

TEST(LineBudget, WhoeverKeepsToTheRateIsNeverCutOff) {
  LineBudget budget(16, 1, kStart);
  for (uint64_t i = 0; i < 1'000; ++i) EXPECT_TRUE(budget.Take(kStart + i * kSecond));
  EXPECT_EQ(budget.TakeLeftOut(kStart + 1'000 * kSecond), 0u);
}

TEST(LineBudget, WhatWasLeftOutIsSaidBeforeAnythingElse) {
  LineBudget budget(16, 1, kStart);
  for (int i = 0; i < 19; ++i) budget.Take(kStart);
  EXPECT_EQ(budget.TakeLeftOut(kStart + 2 * kSecond), 0u) << "an eighth of it has to be back";
  EXPECT_FALSE(budget.Take(kStart + 2 * kSecond));
  EXPECT_FALSE(budget.Take(kStart + 3 * kSecond)) << "first the count";
  EXPECT_EQ(budget.TakeLeftOut(kStart + 12 * kSecond), 5u);
  EXPECT_EQ(budget.TakeLeftOut(kStart + 12 * kSecond), 0u);
  EXPECT_TRUE(budget.Take(kStart + 12 * kSecond));
}

TEST(LineBudget, AFloodWithoutEndIsBoundedByTheRate) {
  LineBudget budget(16, 1, kStart);
  uint64_t lines = 0;
  uint64_t said = 0;
  uint64_t written = 0;
  for (uint64_t ms = 0; ms < 600'000; ++ms) {
    const uint64_t now = kStart + ms * 1'000'000;
    if (const uint64_t count = budget.TakeLeftOut(now); count > 0) {
      ++lines;
      said += count;
    }
    if (budget.Take(now)) ++written;
  }
  EXPECT_LE(lines + written, 16u + 600u);
  EXPECT_GE(written, 300u) << "it is not shut for good";
  EXPECT_LE(lines, 300u) << "one count for several lines";
  EXPECT_EQ(said + written + budget.left_out(), 600'000u) << "nothing goes without being counted";
}

TEST(LineBudget, AClockThatStandsOrStepsBackGivesNothing) {
  LineBudget budget(2, 1, kStart);
  EXPECT_TRUE(budget.Take(kStart));
  EXPECT_TRUE(budget.Take(kStart - kSecond));
  EXPECT_FALSE(budget.Take(kStart - 5 * kSecond));
  EXPECT_FALSE(budget.Take(kStart));
}

TEST(LineBudget, TimesFarApartDoNotOverflowIt) {
  LineBudget budget(3, 1'000'000'000, 0);
  for (int i = 0; i < 5; ++i) budget.Take(0);
  EXPECT_EQ(budget.TakeLeftOut(~uint64_t{0}), 2u);
  EXPECT_TRUE(budget.Take(~uint64_t{0}));
  EXPECT_TRUE(budget.Take(~uint64_t{0}));
  EXPECT_FALSE(budget.Take(~uint64_t{0}));
}

}  // namespace
}  // namespace sluice::noded
