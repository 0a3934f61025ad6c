// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/forecast.h"

#include <algorithm>
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
  EXPECT_EQ(jobs.under_way.size(), 2u);
  EXPECT_EQ(jobs.resident, 1u) << "the base of the third";
  EXPECT_EQ(jobs.bases, 3u);
  EXPECT_EQ(jobs.transient, 7u);
  EXPECT_EQ(jobs.iterations, 1u);
}

TEST(Forecast, AddsUpWhatTheyHoldFromNowOn) {
  Three three;
  Forecast forecast(three.ledger, three.Now());
  RestOfIteration first(three.courses.at(1), 200);
  RestOfIteration second(three.courses.at(2), 200);
  size_t k = 0;
  Units most = 0;
  for (; forecast.At(k) != nullptr; ++k) {
    const UseOverTime::Step step = *forecast.At(k);
    first.GoTo(step.from_ns);
    second.GoTo(step.from_ns);
    EXPECT_EQ(step.units, first.units() + second.units()) << "in " << step.from_ns << " ns";
    EXPECT_EQ(forecast.EndOf(k), std::min(first.EndsIn(), second.EndsIn()));
    most = std::max(most, step.units);
  }
  EXPECT_GE(k, 7u) << "each step of both";
  EXPECT_EQ(forecast.At(0)->from_ns, 0);
  EXPECT_GT(most, 8u) << "more than one of them ever holds";
  EXPECT_EQ(forecast.At(k - 1)->units, 2u) << "both bases at the end";
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
