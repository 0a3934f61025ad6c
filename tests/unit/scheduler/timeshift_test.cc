// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cmath>
#include <random>

#include "tests/unit/scheduler/predicted.h"

namespace sluice::scheduler {
namespace {

const std::vector<Units> kTriangle = {2, 4, 6, 8, 6, 4, 2};

TEST(TimeShift, OpensAtOnceWhatFits) {
  Predicted jobs("timeshift", 16);
  jobs.Add(1, kTriangle);
  jobs.Add(2, kTriangle);
  EXPECT_EQ(jobs.OpensIn(1, 0), 0);
  jobs.Begin(1, 0);
  EXPECT_EQ(jobs.OpensIn(2, 0), 0) << "both peaks fit";
}

TEST(TimeShift, IsTheLeastDelayThatFits) {
  for (const auto& [pool, least] :
       {std::pair<Units, double>{15, 100}, {14, 100}, {13, 200}, {12, 200}, {11, 300}, {10, 300}}) {
    Predicted jobs("timeshift", pool);
    jobs.Add(1, kTriangle);
    jobs.Add(2, kTriangle);
    jobs.Begin(1, 0);
    EXPECT_EQ(jobs.OpensIn(2, 0), least) << "pool " << pool;
    EXPECT_FALSE(jobs.MayOpen(2));
    EXPECT_EQ(jobs.OpensIn(2, 50), least - 50) << "as time goes by";
    jobs.outlook.now_ns = least;
    jobs.MoveTo(1, static_cast<size_t>(least / 100), least);
    EXPECT_TRUE(jobs.MayOpen(2));
  }
}

/// By looking at every nanosecond.
TEST(TimeShift, AgreesWithTryingEachDelay) {
  std::mt19937 random(3);
  const auto curve = [&random] {
    std::vector<Units> units;
    for (size_t i = 0; i < 2 + random() % 5; ++i)
      units.push_back(1 + static_cast<Units>(random() % 8));
    return units;
  };
  for (int round = 0; round < 200; ++round) {
    const std::vector<Units> first = curve();
    const std::vector<Units> second = curve();
    Units peak = 0;
    for (const Units units : first) peak = std::max(peak, units);
    for (const Units units : second) peak = std::max(peak, units);
    const Units pool = peak + 1 + static_cast<Units>(random() % 6);
    Predicted jobs("timeshift", pool);
    jobs.Add(1, first);
    jobs.Add(2, second);
    jobs.Begin(1, 0);
    const auto at = [](const std::vector<Units>& units, int ns) {
      const int k = ns < 0 ? -1 : ns / 100;
      return k < 0 || k >= static_cast<int>(units.size()) ? Units{1}
                                                          : units[static_cast<size_t>(k)];
    };
    int least = 0;
    for (bool fits = false; !fits; least += fits ? 0 : 1) {
      fits = true;
      for (int ns = 0; ns < 1500; ++ns) {
        if (at(first, ns) + at(second, ns - least) > pool && ns >= least) fits = false;
      }
    }
    EXPECT_EQ(jobs.OpensIn(2, 0), least) << "round " << round;
  }
}

/// Several jobs anywhere in their iterations, on time or not, in a pool of any size.
Predicted SomewhereInside(std::mt19937* random) {
  const auto pick = [random](size_t bound) { return (*random)() % bound; };
  Predicted jobs("timeshift", 400);
  jobs.config.lanes = 8;
  jobs.config.budget_steps = 1 + static_cast<uint32_t>(pick(4));
  const size_t count = 2 + pick(6);
  for (JobId id = 1; id <= count; ++id) {
    std::vector<Units> curve;
    for (size_t k = 2 + pick(40); k > 0; --k) {
      const auto step = static_cast<Units>(pick(12));
      const Units last = curve.empty() ? 5 : curve.back();
      curve.push_back(pick(2) == 0 ? last + step : last - std::min(last - 1, step));
    }
    jobs.Add(id, curve);
  }
  for (JobId id = 2; id <= count; ++id) {
    if (pick(5) == 0) continue;
    jobs.Begin(id, 0);
    const size_t gates = jobs.courses[id].gates();
    const size_t host = pick(gates);
    const double now = 100.0 * static_cast<double>(pick(gates)) + static_cast<double>(pick(100));
    jobs.courses[id].Pass(host, now);
    jobs.courses[id].Reach(static_cast<uint32_t>(pick(host + 1)), now);
  }
  jobs.outlook.now_ns = static_cast<double>(pick(4000));
  // Last, so that the books of those inside do not limit it.
  jobs.config.soft_budget = static_cast<Units>(1 + pick(300));
  return jobs;
}

/// A look at a few times says no more than one at all of them.
TEST(TimeShift, BoundsTheDelayWithoutComputingIt) {
  std::mt19937 random(7);
  size_t bounded = 0;
  size_t waits = 0;
  for (int round = 0; round < 10000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Predicted jobs = SomewhereInside(&random);
    const double now = jobs.outlook.now_ns;
    const double delay = jobs.OpensIn(1, now);
    const bool alone = Occupants(jobs.ledger, 1) == 0;
    ASSERT_EQ(jobs.MayOpen(1), alone || delay <= 0);
    waits += delay > 0 && std::isfinite(delay) ? 1u : 0u;
    for (const double within : {0.0, 1.0, static_cast<double>(random() % 2000)}) {
      const double answer = jobs.OpensIn(1, now, within);
      if (delay < within || delay == 0) {
        ASSERT_EQ(answer, delay);
      } else {
        ASSERT_GE(answer, within);
        ASSERT_LE(answer, delay);
        ASSERT_GT(answer, 0);
        bounded += answer < delay ? 1u : 0u;
      }
    }
  }
  EXPECT_GT(waits, 300u);
  EXPECT_GT(bounded, 100u);
}

TEST(TimeShift, AddsUpSeveralJobs) {
  Predicted jobs("timeshift", 18);
  jobs.config.lanes = 3;
  for (JobId id = 1; id <= 3; ++id) jobs.Add(id, kTriangle);
  jobs.Begin(1, 0);
  EXPECT_EQ(jobs.OpensIn(2, 0), 0);
  jobs.Begin(2, 0);
  EXPECT_EQ(jobs.OpensIn(3, 0), 300) << "2 + 8 + 8, 4 + 6 + 6, 6 + 4 + 4, but 8 + 6 + 6 before";
  jobs.config.lanes = 2;
  EXPECT_TRUE(std::isinf(jobs.OpensIn(3, 0))) << "it may not, however long it waits";
}

TEST(TimeShift, BeginsWithLessThanThePool) {
  Predicted jobs("timeshift", 16);
  jobs.config.budget_steps = 4;
  jobs.Add(1, kTriangle);
  jobs.Add(2, kTriangle);
  jobs.Begin(1, 0);
  // Least: two bases and 7 above them; a quarter of the other 7 is counted on after one iteration.
  EXPECT_EQ(jobs.OpensIn(2, 0), 300);
  for (const double expected : {200.0, 100.0, 0.0}) {
    for (JobId id : {1u, 2u}) {
      Course& course = jobs.courses[id];
      if (id == 2) course.Open(0);
      for (size_t k = 0; k < kTriangle.size(); ++k)
        jobs.MoveTo(id, k, 100.0 * static_cast<double>(k));
      course.End(700);
      if (id == 1) course.Open(0);
    }
    EXPECT_EQ(jobs.OpensIn(2, 0), expected);
  }
}

TEST(TimeShift, TakesTurnsWithWhomItDoesNotKnow) {
  Predicted jobs("timeshift", 20);
  jobs.Add(1, kTriangle);
  jobs.Add(2, kTriangle);
  jobs.courses.erase(1);
  EXPECT_TRUE(jobs.MayOpen(2));
  ASSERT_TRUE(jobs.ledger.OpenGate(1, {.claim = 8}).ok());
  EXPECT_FALSE(jobs.MayOpen(2));
  EXPECT_TRUE(std::isinf(jobs.OpensIn(2, 0)));
}

TEST(TimeShift, IsAskedAgainWhenTheTimeHasCome) {
  Predicted jobs("timeshift", 12);
  jobs.Add(1, kTriangle);
  jobs.Add(2, kTriangle);
  jobs.Begin(1, 0);
  Request request{.job = 2, .kind = RequestKind::kGate0, .units = 1, .claim = 8};
  EXPECT_EQ(AskAgainIn(jobs.ledger, {request}, jobs.config, jobs.Now()), 200);
  // Whoever was told that there is nothing to decide knows it already.
  for (const double within : {0.0, 150.0, 1000.0}) {
    AskAgain again{within};
    EXPECT_FALSE(Next(jobs.ledger, {request}, jobs.config, jobs.Now(), &again));
    EXPECT_GE(again.in, std::min(within, 200.0));
    EXPECT_LE(again.in, 200);
    EXPECT_GT(again.in, 0);
  }
  request.kind = RequestKind::kLease;
  EXPECT_TRUE(std::isinf(AskAgainIn(jobs.ledger, {request}, jobs.config, jobs.Now())));
  jobs.config.policy = "flow";
  request.kind = RequestKind::kGate0;
  EXPECT_TRUE(std::isinf(AskAgainIn(jobs.ledger, {request}, jobs.config, jobs.Now())));
}

}  // namespace
}  // namespace sluice::scheduler
