// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/soft_budget.h"

#include "scheduler/budget/ballast.h"
#include "tests/unit/scheduler/policy_desk.h"

namespace sluice::scheduler {
namespace {

/// Pool 100, bases of 10, limits of 80, two or more lanes.
Desk InSoft(Units budget, JobId jobs = 2) {
  Config config;
  config.soft_budget = budget;
  config.lanes = jobs;
  Desk desk(100, config);
  for (JobId job = 1; job <= jobs; ++job) {
    desk.Parked(job, std::string(1, static_cast<char>('a' + job - 1)), 10, 80,
                {(job - 1) * 10, 10});
  }
  return desk;
}

void AtGate(Desk* desk, JobId job, Units units) {
  Request request;
  request.kind = RequestKind::kGate;
  request.gate = 1;
  request.units = units;
  request.contiguous = 1;
  desk->Ask(job, request);
}

TEST(SoftBudget, AnIterationBeginsAsIfNoMoreWereLent) {
  for (const Units budget : {Units{0}, Units{70}}) {
    Desk desk = InSoft(budget);
    desk.Gate0(1, 40);
    ASSERT_TRUE(desk.PastGate(1)) << "it is alone";
    desk.Lease(1, 20);
    desk.Gate0(2, 70);  // job 1 keeps 10 and its own are 10: 60 more are there in 80, not in 70
    EXPECT_EQ(desk.Waits(2), budget != 0);
    desk.Trough(1);
    EXPECT_FALSE(desk.Waits(2)) << "nobody else is inside an iteration";
  }
}

TEST(SoftBudget, AGateIsPassedAsIfNoMoreWereLent) {
  for (const Units budget : {Units{0}, Units{70}}) {
    Desk desk = InSoft(budget);
    desk.Gate0(1, 40);
    desk.Lease(1, 20);
    desk.Gate0(2, 40);
    AtGate(&desk, 2, 30);
    ASSERT_FALSE(desk.Waits(2)) << "70 are held";
    AtGate(&desk, 1, 10);
    EXPECT_EQ(desk.Waits(1), budget != 0);
    desk.Trough(2);
    EXPECT_FALSE(desk.Waits(1));
  }
}

/// It refuses no memory: what a job was promised it gets, and where all wait it does not count.
TEST(SoftBudget, IsSoft) {
  Desk desk = InSoft(70);
  desk.Gate0(1, 40);
  desk.Lease(1, 20);
  desk.Gate0(2, 40);
  AtGate(&desk, 2, 30);
  desk.Lease(1, 5);
  EXPECT_FALSE(desk.Waits(1)) << "not at a gate";
  AtGate(&desk, 1, 5);
  EXPECT_TRUE(desk.Waits(1));
  desk.Lease(2, 5);  // beyond its claim
  EXPECT_FALSE(desk.Waits(2));
  EXPECT_TRUE(desk.Waits(1));
  desk.Lease(2, 30);
  EXPECT_FALSE(desk.Waits(1)) << "both wait, and nothing else would ever happen";
  EXPECT_TRUE(desk.denied.empty());
}

/// Lowered below what was promised, it keeps nobody inside its iteration.
TEST(SoftBudget, ThoseInsideEndTheirIterations) {
  Desk desk = InSoft(0, 3);
  desk.Gate0(1, 60);
  desk.Lease(1, 30);
  desk.Gate0(2, 60);
  desk.Lease(2, 20);
  desk.config.soft_budget = 60;
  AtGate(&desk, 1, 10);
  EXPECT_FALSE(desk.Waits(1));
  desk.Gate0(3, 20);
  EXPECT_TRUE(desk.Waits(3));
  EXPECT_NE(WhyWaiting(desk.ledger, desk.waiting.front(), desk.config)
                .find("policy flow, soft budget 60.0 MiB"),
            std::string::npos);
}

/// A job that begins without a profile is no business of it.
TEST(SoftBudget, NewcomersDoNotWaitForIt) {
  Desk desk = InSoft(25);
  desk.Admit(3, "c", 10, 80);
  desk.Newcomer(3);
  EXPECT_TRUE(desk.PastGate(3));
}

/// The operator's budget stands beside it: neither makes the other larger.
TEST(SoftBudget, IsNeverAboveTheOperators) {
  Desk desk = InSoft(70);
  EXPECT_EQ(CountedOn(desk.ledger, desk.config), 70u);
  std::vector<Record> records;
  ASSERT_TRUE(PromiseBallast(kBeyondBudget, 10, &desk.ledger, &records).ok());
  ASSERT_TRUE(TakeBallast(kBeyondBudget, &desk.ledger, &records));
  EXPECT_EQ(CountedOn(desk.ledger, desk.config), 80u) << "with the 10 that nobody is lent";
  desk.config.soft_budget = 95;
  EXPECT_EQ(CountedOn(desk.ledger, desk.config), 100u);
  desk.config.soft_budget = 0;
  EXPECT_EQ(CountedOn(desk.ledger, desk.config), 100u);
}

TEST(SoftBudget, BoundsWhatPredictingPoliciesCountOn) {
  for (const char* policy : {"timeshift", "nodegroup", "temporal", "flow"}) {
    Desk desk = InSoft(30);
    desk.config.policy = policy;
    for (int i = 0; i < 6; ++i) {
      const JobId job = 1 + static_cast<JobId>(i % 2);
      desk.Gate0(job, 60);
      EXPECT_TRUE(desk.PastGate(job)) << policy << ": whoever is alone goes on";
      desk.Trough(job);
    }
  }
}

}  // namespace
}  // namespace sluice::scheduler
