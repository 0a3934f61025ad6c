// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/forecast.h"

#include <limits>
#include <utility>
#include <vector>

#include "tests/unit/scheduler/predicted.h"

namespace sluice::scheduler {
namespace {

const std::vector<Units> kTriangle = {2, 4, 6, 8, 6, 4, 2};

/// Two are in their iterations, the second 150 ns behind the first; the third is at its trough.
struct Three : Predicted {
  Three() : Predicted("timeshift", 32) {
    for (const JobId id : {1u, 2u, 3u}) Add(id, kTriangle);
    Begin(1, 0);
    MoveTo(1, 1, 100);
    Begin(2, 150);
    MoveTo(1, 2, 200);
    outlook.now_ns = 200;
  }
};

TEST(Forecast, TellsThoseWhoMoveFromThoseWhoStay) {
  Three three;
  Forecast forecast(three.ledger, three.Now());
  const Forecast::Jobs& jobs = forecast.jobs();
  EXPECT_TRUE(jobs.predictable);
  EXPECT_TRUE(jobs.change);
  EXPECT_EQ(jobs.resident, 1u) << "the base of the third";
  EXPECT_EQ(jobs.bases, 3u);
  EXPECT_EQ(jobs.transient, 7u);
  EXPECT_EQ(jobs.iterations, 1u);
}

/// The first holds 6 from now on, 8 100 ns later, and so on; the second 2 for 50 ns, 4 for 100 ns,
/// and so on; behind its end each holds its base.
TEST(Forecast, AddsUpWhatTheyHoldFromNowOn) {
  const std::vector<std::pair<double, Units>> wanted = {
      {0, 6 + 2},   {50, 6 + 4},  {100, 8 + 4}, {150, 8 + 6}, {200, 6 + 6},
      {250, 6 + 8}, {300, 4 + 8}, {350, 4 + 6}, {400, 2 + 6}, {450, 2 + 4},
      {500, 1 + 4}, {550, 1 + 2}, {650, 1 + 1}};
  Three three;
  Forecast forecast(three.ledger, three.Now());
  for (size_t k = 0; k < wanted.size(); ++k) {
    ASSERT_NE(forecast.At(k), nullptr) << k;
    EXPECT_EQ(forecast.At(k)->from_ns, wanted[k].first) << k;
    EXPECT_EQ(forecast.At(k)->units, wanted[k].second) << k;
    EXPECT_EQ(forecast.EndOf(k), k + 1 < wanted.size() ? wanted[k + 1].first
                                                       : std::numeric_limits<double>::infinity());
  }
  EXPECT_EQ(forecast.At(wanted.size()), nullptr);
}

TEST(Forecast, LooksAheadAndFromNowOnAgain) {
  Three three;
  Forecast forecast(three.ledger, three.Now());
  EXPECT_EQ(forecast.In(160).units, 8u + 6u);
  EXPECT_EQ(forecast.In(160).until_ns, 200);
  EXPECT_EQ(forecast.In(700).units, 1u + 1u);
  forecast.GoToNow();
  EXPECT_EQ(forecast.In(0).units, 6u + 2u);
  EXPECT_EQ(forecast.At(1)->units, 6u + 4u) << "one way of looking does not move the other";
}

TEST(Forecast, KnowsNothingWhereSomebodyIsMeasured) {
  Three three;
  ASSERT_TRUE(three.ledger.Admit(4, "new", 0, 8).ok());
  EXPECT_TRUE(Forecast(three.ledger, three.Now()).jobs().predictable) << "it has not begun";
  ASSERT_TRUE(three.ledger.StartUnprofiled(4).ok());
  Forecast forecast(three.ledger, three.Now());
  EXPECT_FALSE(forecast.jobs().predictable);
}

}  // namespace
}  // namespace sluice::scheduler
