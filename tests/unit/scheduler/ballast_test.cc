// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/budget/ballast.h"

#include <gtest/gtest.h>

#include "scheduler/safety/safety.h"

namespace sluice::scheduler {
namespace {

class BallastTest : public ::testing::Test {
 protected:
  /// A job at its trough that keeps `base`.
  void Park(JobId id, Units limit, const Extents& base) {
    ASSERT_TRUE(ledger_.Admit(id, "job", 0, limit).ok());
    ASSERT_TRUE(ledger_.StartUnprofiled(id).ok());
    ASSERT_TRUE(ledger_.Grant(id, base).ok());
    ASSERT_TRUE(ledger_.ReachTrough(id, true).ok());
  }
  Status Promise(Units units) { return PromiseBallast(kBeyondBudget, units, &ledger_, &records_); }
  bool Take() { return TakeBallast(kBeyondBudget, &ledger_, &records_); }

  Ledger ledger_{20, 1 << 20};
  std::vector<Record> records_;
};

TEST_F(BallastTest, IsPromisedBeforeItIsTaken) {
  ASSERT_NO_FATAL_FAILURE(Park(1, 12, {{0, 2}}));
  ASSERT_TRUE(Promise(8).ok());
  EXPECT_EQ(ledger_.held(kBeyondBudget), 0u);
  EXPECT_EQ(ledger_.LargestLimit(2, 0), 12u) << "nobody else is promised it";
  ASSERT_TRUE(Take());
  EXPECT_EQ(ledger_.held(kBeyondBudget), 8u);
  EXPECT_TRUE(ledger_.CheckInvariants().ok());
  // More of it: what it has stays where it is.
  const Extents before = ledger_.map().Held(kBeyondBudget);
  ASSERT_TRUE(ledger_.SetLimit(1, 5).ok());
  ASSERT_TRUE(Promise(12).ok());
  ASSERT_TRUE(Take());
  EXPECT_TRUE(Subtract(before, ledger_.map().Held(kBeyondBudget)).empty());
  EXPECT_EQ(ledger_.free(), 6u);
  ShrinkBallast(kBeyondBudget, 3, &ledger_, &records_);
  EXPECT_EQ(ledger_.held(kBeyondBudget), 3u);
  ShrinkBallast(kBeyondBudget, 0, &ledger_, &records_);
  EXPECT_EQ(ledger_.Find(kBeyondBudget), nullptr);
  EXPECT_EQ(ledger_.free(), 18u);
}

TEST_F(BallastTest, APromiseRisesAndFalls) {
  ASSERT_NO_FATAL_FAILURE(Park(1, 5, {}));
  for (const Units units : {8u, 12u, 4u}) {
    ASSERT_TRUE(Promise(units).ok()) << units;
    EXPECT_EQ(ledger_.Find(kBeyondBudget)->limit, units);
    EXPECT_EQ(ledger_.Find(kBeyondBudget)->request, units);
  }
  ASSERT_TRUE(Take());
  EXPECT_EQ(Promise(3).code(), StatusCode::kFailedPrecondition) << "it holds 4";
}

TEST_F(BallastTest, IsNoJobsWhoWasPromisedIt) {
  ASSERT_NO_FATAL_FAILURE(Park(1, 15, {}));
  const Ledger before = ledger_;
  const Status refused = Promise(6);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("job 1 'job'"), std::string::npos) << refused.message();
  EXPECT_EQ(ledger_, before);
  EXPECT_TRUE(records_.empty());
}

TEST_F(BallastTest, IsNotTakenFromAJobThatMayComeToIt) {
  ASSERT_NO_FATAL_FAILURE(Park(1, 12, {{0, 2}}));
  ASSERT_NO_FATAL_FAILURE(Park(2, 12, {{2, 2}}));
  for (const JobId job : {JobId{1}, JobId{2}}) {
    GateTerms terms;
    terms.claim = 10;
    terms.piece = 1;
    ASSERT_TRUE(ledger_.OpenGate(job, terms).ok());
  }
  ASSERT_TRUE(ledger_.Grant(1, {{4, 6}}).ok());
  ASSERT_TRUE(Promise(8).ok());
  // 10 are free, and 2 more than the other one wants: only job 1 can go on then, and it ends.
  EXPECT_TRUE(Take());
  ShrinkBallast(kBeyondBudget, 0, &ledger_, &records_);
  ASSERT_TRUE(ledger_.Grant(2, {{10, 6}}).ok());
  ASSERT_TRUE(Promise(3).ok());
  const Ledger before = ledger_;
  EXPECT_FALSE(Take()) << "each wants 2 more, and 1 would be left";
  EXPECT_EQ(ledger_, before);
}

TEST_F(BallastTest, FillsTheSmallestHoles) {
  ASSERT_NO_FATAL_FAILURE(Park(1, 12, {{2, 1}, {5, 1}}));
  ASSERT_TRUE(Promise(5).ok());
  ASSERT_TRUE(Take());
  EXPECT_EQ(ledger_.map().Held(kBeyondBudget), (Extents{{0, 2}, {3, 2}, {6, 1}}));
}

TEST_F(BallastTest, WaitsForWhoeverIsMeasured) {
  ASSERT_TRUE(ledger_.Admit(1, "job", 0, 12).ok());
  ASSERT_TRUE(ledger_.StartUnprofiled(1).ok());
  ASSERT_TRUE(Promise(5).ok());
  EXPECT_FALSE(Take());
  ASSERT_TRUE(ledger_.ReachTrough(1, true).ok());
  EXPECT_TRUE(Take());
}

}  // namespace
}  // namespace sluice::scheduler
