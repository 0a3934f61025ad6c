// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/figures/held_history.h"

#include <gtest/gtest.h>

namespace sluice::figures {
namespace {

constexpr uint64_t kStep = HeldHistory::kStepNs;

class HeldHistoryTest : public ::testing::Test {
 protected:
  /// "10: 1=4 2=6, 11: 2=6", of all steps from `number` on.
  std::string Since(uint64_t number, uint64_t now_step) {
    std::string text;
    for (const HeldHistory::Step* step : history_.Since(number, now_step * kStep)) {
      text += (text.empty() ? "" : ", ") + std::to_string(step->number) + ":";
      for (const Holding& holding : step->most) {
        text += " " + std::to_string(holding.job) + "=" + std::to_string(holding.units);
      }
    }
    return text;
  }

  HeldHistory history_;
};

TEST_F(HeldHistoryTest, AStepShowsTheMostThatEachJobHeldInIt) {
  history_.Note(10 * kStep, {{1, 4}});
  history_.Note(10 * kStep + 1, {{1, 9}, {2, 6}});
  history_.Note(10 * kStep + 2, {{1, 2}});
  EXPECT_EQ(Since(0, 10), "10: 1=9 2=6");
}

TEST_F(HeldHistoryTest, WhatIsStillHeldIsHeldInTheNextStep) {
  history_.Note(10 * kStep, {{1, 9}});
  history_.Note(11 * kStep + 5, {{1, 2}});
  EXPECT_EQ(Since(0, 11), "10: 1=9, 11: 1=9");
}

TEST_F(HeldHistoryTest, AfterAPeakTheRestIsShownAsWhatItWas) {
  history_.Note(10 * kStep, {{1, 9}});
  history_.Note(10 * kStep + 1, {{1, 2}});
  EXPECT_EQ(Since(0, 50), "10: 1=9, 11: 1=2");
  history_.Note(60 * kStep, {{1, 5}});
  EXPECT_EQ(Since(0, 60), "10: 1=9, 11: 1=2, 60: 1=5");
}

TEST_F(HeldHistoryTest, AReaderGetsWhatIsNewToIt) {
  history_.Note(10 * kStep, {{1, 1}});
  history_.Note(11 * kStep, {{1, 2}});
  history_.Note(12 * kStep, {{1, 3}});
  EXPECT_EQ(Since(12, 12), "12: 1=3");
  EXPECT_EQ(Since(13, 13), "");
}

TEST_F(HeldHistoryTest, KeepsTenSecondsAndWhatHeldBefore) {
  for (uint64_t step = 0; step < 3 * HeldHistory::kSteps; ++step) {
    history_.Note(step * kStep, {{1, static_cast<scheduler::Units>(step + 1)}});
  }
  const uint64_t now = 3 * HeldHistory::kSteps - 1;
  EXPECT_LE(history_.Since(0, now * kStep).size(), HeldHistory::kSteps + 1);
  EXPECT_EQ(history_.Since(0, now * kStep).back()->number, now);
  // A long rest: the one step that is left says what was held all the time.
  EXPECT_EQ(history_.Since(0, 100 * now * kStep).size(), 1u);
}

}  // namespace
}  // namespace sluice::figures
