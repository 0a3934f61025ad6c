// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/ledger/limits.h"

#include <gtest/gtest.h>

namespace sluice::scheduler {
namespace {

bool Nobody(JobId) { return false; }
bool Everybody(JobId) { return true; }

TEST(Limits, ATenthMoreRoundsUp) {
  EXPECT_EQ(WithTenth(0), 1u);
  EXPECT_EQ(WithTenth(1), 2u);
  EXPECT_EQ(WithTenth(100), 110u);
  EXPECT_EQ(WithTenth(101), 112u);
  EXPECT_EQ(WithTenth(0xffffffff), 0xffffffffu);
}

TEST(Limits, AClaimIsAFiftiethMoreAndABlockAtLeast) {
  EXPECT_EQ(WithClaimMargin(0, 0), 0u);
  EXPECT_EQ(WithClaimMargin(1, 0), 2u) << "a part of a unit is one";
  EXPECT_EQ(WithClaimMargin(100, 2), 102u);
  EXPECT_EQ(WithClaimMargin(101, 2), 104u);
  EXPECT_EQ(WithClaimMargin(100, 7), 107u);
  EXPECT_EQ(WithClaimMargin(UINT32_MAX, 7), UINT32_MAX);
}

/// A job at its trough that holds 5 units and has 3 outside the pool, with a limit of 20.
Job SomeJob() {
  Job job;
  job.id = 1;
  job.name = "a";
  job.phase = Phase::kParked;
  job.leased = 5;
  job.outside = 3;
  job.limit = 20;
  job.terms.claim = 9;
  return job;
}

TEST(Limits, TheLeastIsWhatAJobHasAndCountsOn) {
  using Of = LeastLimit::Of;
  Job job = SomeJob();
  const auto expect = [&job](Units needs, Units outside, Units units, Of of) {
    const LeastLimit least = LeastLimitOf(job, needs, outside);
    EXPECT_EQ(least.units(), units);
    EXPECT_EQ(least.of, of);
  };
  expect(0, 3, 8, Of::kHeld);
  expect(4, 3, 8, Of::kHeld);
  expect(6, 3, 9, Of::kNeeded);
  expect(18, 3, 20, Of::kNeeded);  // no more than its limit leaves it now
  expect(18, 12, 29, Of::kNeeded);
  job.phase = Phase::kUnprofiled;
  expect(0, 3, 8, Of::kHeld);  // its claim falls with its limit
  job.phase = Phase::kRunning;
  expect(0, 3, 12, Of::kPromised);
  expect(10, 3, 13, Of::kNeeded);
  job.leased = 2;
  job.away = {{8, 3}};
  job.phase = Phase::kEvicted;
  expect(0, 3, 12, Of::kPromised);
  job.away_from = Phase::kUnprofiled;
  expect(0, 3, 8, Of::kHeld);
  job.away_from = Phase::kParked;
  expect(0, 3, 8, Of::kHeld);
  EXPECT_EQ(LeastLimitOf(Job(), 0, UINT32_MAX).units(), UINT32_MAX);
}

TEST(Limits, ALimitBelowTheLeastNamesIt) {
  const Ledger ledger(100, 1 << 20);
  const auto said = [&ledger](const LeastLimit& least) {
    return CheckLimit(ledger, "job 1 'a'", 2, least).message();
  };
  using Of = LeastLimit::Of;
  EXPECT_EQ(said({2, 0, Of::kHeld}), "");
  EXPECT_EQ(said({2, 1, Of::kHeld}),
            "limit 2.0 MiB: job 1 'a' holds 2.0 MiB and has 1.0 MiB outside the pool; allowed: "
            "from 3.0 MiB");
  EXPECT_EQ(said({0, 3, Of::kHeld}),
            "limit 2.0 MiB: job 1 'a' has 3.0 MiB outside the pool; allowed: from 3.0 MiB");
  EXPECT_EQ(said({3, 0, Of::kPromised}),
            "limit 2.0 MiB: job 1 'a' was promised 3.0 MiB; allowed: from 3.0 MiB");
  EXPECT_EQ(said({3, 0, Of::kNeeded}),
            "limit 2.0 MiB: job 1 'a' needs 3.0 MiB; allowed: from 3.0 MiB");
}

TEST(Limits, ARequestTakesWhatTheOthersLimitsLeave) {
  Ledger ledger(100, 1);
  ASSERT_TRUE(ledger.Admit(1, "a", 0, 90).ok());
  ASSERT_TRUE(ledger.Admit(2, "b", 0, 95).ok());
  SetRequest(&ledger, 1, 20, Nobody);
  EXPECT_EQ(ledger.Find(1)->request, 5u);
  EXPECT_EQ(ledger.Find(2)->limit, 95u);
  EXPECT_TRUE(ledger.CheckInvariants().ok());
}

TEST(Limits, WhoMayYieldMakesRoom) {
  Ledger ledger(100, 1);
  ASSERT_TRUE(ledger.Admit(1, "a", 0, 90).ok());
  ASSERT_TRUE(ledger.Admit(2, "b", 10, 95).ok());
  ASSERT_TRUE(ledger.Admit(3, "c", 0, 90).ok());
  SetRequest(&ledger, 1, 20, [](JobId job) { return job != 3; });
  // Job 3 keeps 90 of 100 beside 10 of job 2: nothing is left for job 1.
  EXPECT_EQ(ledger.Find(1)->request, 0u);
  SetRequest(&ledger, 1, 20, Everybody);
  EXPECT_EQ(ledger.Find(1)->request, 20u);
  EXPECT_EQ(ledger.Find(2)->limit, 80u);
  EXPECT_EQ(ledger.Find(3)->limit, 70u);
  EXPECT_TRUE(ledger.CheckInvariants().ok());
}

TEST(Limits, TheDeadRequestNothing) {
  Ledger ledger(100, 1);
  ASSERT_TRUE(ledger.Admit(1, "a", 0, 60).ok());
  ASSERT_TRUE(ledger.Admit(2, "b", 0, 60).ok());
  ASSERT_TRUE(ledger.Admit(3, "c", 40, 40).ok());
  SetRequest(&ledger, 1, 20, Nobody);
  EXPECT_EQ(ledger.Find(1)->request, 0u) << "60 and 40 are spoken for";
  ASSERT_TRUE(ledger.Die(3).ok());
  SetRequest(&ledger, 1, 20, Nobody);
  EXPECT_EQ(ledger.Find(1)->request, 20u);
}

TEST(Limits, ARequestNeverExceedsItsLimit) {
  Ledger ledger(100, 1);
  ASSERT_TRUE(ledger.Admit(1, "a", 0, 30).ok());
  SetRequest(&ledger, 1, 50, Nobody);
  EXPECT_EQ(ledger.Find(1)->request, 30u);
}

TEST(Limits, NobodyYieldsBelowItsOwnRequest) {
  Ledger ledger(100, 1);
  ASSERT_TRUE(ledger.Admit(1, "a", 0, 100 - 40).ok());
  ASSERT_TRUE(ledger.Admit(2, "b", 40, 100).ok());
  MakeRoom(&ledger, 1, 70, Everybody);
  EXPECT_EQ(ledger.Find(2)->limit, 100u);
}

TEST(Limits, TheLargestClaimLeavesOthersTheirTroughs) {
  Ledger ledger(100, 1);
  ASSERT_TRUE(ledger.Admit(1, "a", 0, 90).ok());
  ASSERT_TRUE(ledger.Admit(2, "b", 0, 90).ok());
  ASSERT_TRUE(ledger.StartUnprofiled(2).ok());
  ASSERT_TRUE(ledger.Grant(2, {{0, 10}}).ok());
  ASSERT_TRUE(ledger.ReachTrough(2, true).ok());
  EXPECT_EQ(LargestClaim(ledger, 1), 90u);
  // In its iteration it holds more, but gives that back.
  GateTerms terms;
  terms.claim = 50;
  ASSERT_TRUE(ledger.OpenGate(2, terms).ok());
  ASSERT_TRUE(ledger.Grant(2, {{10, 30}}).ok());
  EXPECT_EQ(LargestClaim(ledger, 1), 90u);
}

}  // namespace
}  // namespace sluice::scheduler
