// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/policy.h"

#include <gtest/gtest.h>

#include "scheduler/safety/safety.h"
#include "tests/unit/scheduler/policy_desk.h"

namespace sluice::scheduler {
namespace {

/// Pool 100, bases of 10, limits of 80: the setting of the scenarios that break a lender without
/// claims.
Desk TwoJobs() {
  Desk desk(100);
  desk.Parked(1, "a", 10, 80, {0, 10});
  desk.Parked(2, "b", 10, 80, {10, 10});
  return desk;
}

TEST(Policy, MemoryFlowsFromOneIterationIntoAnother) {
  Desk desk = TwoJobs();
  desk.Gate0(1, 60);
  desk.Lease(1, 50);
  EXPECT_EQ(desk.Held(1), (Extents{{0, 10}, {20, 50}}));
  desk.Gate0(2, 60);
  EXPECT_TRUE(desk.PastGate(2)) << "job 1 holds all that it claims, so it will complete";
  desk.Lease(2, 40);
  EXPECT_TRUE(desk.Waits(2)) << "30 are free";
  desk.Release(1, {{60, 10}});
  EXPECT_TRUE(desk.Waits(2)) << "enough units, but then each could wait for the other's last 10";
  desk.Release(1, {{50, 10}});
  EXPECT_FALSE(desk.Waits(2)) << "what job 1 gave back inside its iteration is lent";
  EXPECT_EQ(desk.Held(2), (Extents{{10, 10}, {60, 40}})) << "from the other end of the pool";
  desk.Lease(1, 20);
  EXPECT_TRUE(desk.Waits(1)) << "it is promised, after job 2";
  desk.Lease(2, 10);
  EXPECT_FALSE(desk.Waits(2)) << "and job 2 is never in its way for good";
  desk.Trough(2);
  EXPECT_FALSE(desk.Waits(1));
  EXPECT_TRUE(desk.denied.empty());
}

/// The scene of above: what job 1 waives is lent at once, and lent for good.
TEST(Policy, WhatIsWaivedFlowsBeforeItIsPromised) {
  Desk desk = TwoJobs();
  desk.Gate0(1, 60);
  desk.Lease(1, 50);
  desk.Gate0(2, 60);
  desk.Lease(2, 40);
  desk.Release(1, {{60, 10}});
  EXPECT_TRUE(desk.Waits(2)) << "enough units, but each could wait for the other's last 10";
  desk.GateWaiving(1, 0, 10);
  EXPECT_FALSE(desk.Waits(1));
  EXPECT_FALSE(desk.Waits(2));
  // It leaves its curve: a promise anew, for which there is no room.
  desk.Lease(1, 5);
  EXPECT_TRUE(desk.Waits(1));
  EXPECT_FALSE(Promised(desk.ledger, desk.waiting.front()));
  desk.Lease(2, 10);
  EXPECT_EQ(desk.denied, (std::vector<JobId>{1})) << "both wait: it is told, not its neighbour";
  EXPECT_TRUE(desk.Waits(2));
  desk.Trough(1);
  EXPECT_FALSE(desk.Waits(2));
}

TEST(Policy, WhoLosesItsProfileAtAGateWaivesNothingAndIsServed) {
  Desk desk(10);
  desk.Admit(1, "a", 0, 10);
  desk.Ok(desk.ledger.StartUnprofiled(1));
  desk.Ok(desk.ledger.ReachTrough(1, true));
  desk.Ok(desk.ledger.OpenGate(1, {.claim = 10}));
  desk.Ok(desk.ledger.LoseProfile(1));
  desk.GateWaiving(1, 2, 5);
  EXPECT_FALSE(desk.Waits(1));
  EXPECT_TRUE(desk.denied.empty()) << "the whole pool is free";
  EXPECT_EQ(desk.ledger.Find(1)->terms.waived, 0u);
}

TEST(Policy, WhoLeftItsCurveIsServedWhereNobodyIsHarmed) {
  Desk desk = TwoJobs();
  desk.Gate0(1, 60);
  desk.Lease(1, 30);
  desk.GateWaiving(1, 0, 20);
  EXPECT_EQ(desk.ledger.Find(1)->terms.ahead(), 40u);
  desk.Lease(1, 5);
  EXPECT_FALSE(desk.Waits(1));
  EXPECT_EQ(desk.ledger.Find(1)->terms.ahead(), 45u);
  EXPECT_EQ(desk.records.back().waives, 15u);
}

/// A holds 45 on its way down, B 40 on its way up, 15 are free; then A wants 25 more than was ever
/// seen. Waiting for each other frees no byte: A is told so, B goes on.
TEST(Policy, ScenarioDeadlock) {
  Desk desk = TwoJobs();
  desk.Gate0(1, 60);
  desk.Lease(1, 50);
  desk.Gate0(2, 60);
  desk.Release(1, {{55, 15}});
  desk.Lease(2, 30);
  ASSERT_EQ(desk.ledger.held(1), 45u);
  ASSERT_EQ(desk.ledger.held(2), 40u);
  ASSERT_EQ(desk.ledger.free(), 15u);
  desk.Lease(1, 25);  // to 70, above its claim of 60
  EXPECT_TRUE(desk.Waits(1)) << "job 2 runs and will come back";
  desk.Lease(2, 20);
  EXPECT_EQ(desk.denied, (std::vector<JobId>{1})) << "out of memory to the one that grew";
  EXPECT_EQ(desk.last.code, DenyCode::kExhausted);
  EXPECT_NE(desk.last.reason.find("job 2 'b' holds 40.0 MiB (limit 80.0 MiB)"), std::string::npos)
      << desk.last.reason;
  EXPECT_TRUE(desk.Waits(2)) << "20 do not fit into 15";
  desk.Trough(1);
  EXPECT_FALSE(desk.Waits(2));
}

TEST(Policy, AGrowerIsServedWhereNobodyIsHarmed) {
  Desk desk = TwoJobs();
  desk.Gate0(1, 60);
  desk.Lease(1, 60);
  EXPECT_EQ(desk.ledger.held(1), 70u);
  EXPECT_EQ(desk.ledger.Find(1)->terms.claim, 70u);
  EXPECT_TRUE(desk.last.raises_claim);
}

TEST(Policy, LooseClaimsLendNothing) {
  Desk desk = TwoJobs();
  desk.Gate0(1, 80);
  desk.Lease(1, 20);
  desk.Gate0(2, 80);
  EXPECT_TRUE(desk.PastGate(2));
  desk.Lease(2, 30);
  EXPECT_TRUE(desk.Waits(2)) << "either could end at 80: only one may hold more than 20";
  desk.Trough(1);
  EXPECT_FALSE(desk.Waits(2));
}

/// Three bases of 30 and a peak of 60 pass the sum of the requests; no order could ever run them.
TEST(Policy, ScenarioInfeasibleFallbackIsRefusedAtAdmission) {
  Ledger ledger(100, 1 << 20);
  ASSERT_TRUE(ledger.Admit(1, "a", 30, 60).ok());
  ASSERT_TRUE(ledger.Admit(2, "b", 30, 60).ok());
  EXPECT_FALSE(ledger.Admit(3, "c", 30, 60).ok());
  EXPECT_EQ(ledger.LargestLimit(3, 10), 40u);
}

/// A needs 90 while B and C alternate and free memory never reaches 90: after four gates that
/// passed it by, nobody passes it any more.
TEST(Policy, ScenarioStarvation) {
  Desk desk(100);
  desk.Parked(1, "a", 3, 94, {0, 3});
  desk.Parked(2, "b", 3, 50, {3, 3});
  desk.Parked(3, "c", 3, 50, {6, 3});
  desk.Gate0(2, 50, 20);
  desk.Gate0(1, 94, 87);
  ASSERT_TRUE(desk.Waits(1));
  int gates = 0;
  JobId next = 3;
  while (desk.Waits(1) && gates < 20) {
    desk.Gate0(next, 50, 20);
    if (!desk.PastGate(next)) break;
    ++gates;
    next = next == 3 ? 2 : 3;
    desk.Trough(next);
  }
  EXPECT_EQ(gates, 4) << "max_overtakes";
  EXPECT_TRUE(desk.Waits(1));
  desk.Trough(next == 3 ? 2 : 3);
  EXPECT_FALSE(desk.Waits(1));
  EXPECT_EQ(desk.ledger.held(1), 90u);
}

TEST(Policy, JobsPastTheirGateComeFirst) {
  Desk desk(40);
  desk.Parked(1, "a", 2, 30, {0, 2});
  desk.Parked(2, "b", 2, 30, {2, 2});
  desk.Parked(3, "c", 2, 30, {4, 2});
  desk.config.lanes = 3;
  desk.Gate0(1, 20);
  desk.Lease(1, 18);
  desk.Gate0(2, 20, 18);
  ASSERT_TRUE(desk.Waits(2));
  desk.Gate0(3, 22);
  desk.Lease(3, 18);
  ASSERT_TRUE(desk.Waits(3)) << "16 free";
  desk.Trough(1);
  EXPECT_FALSE(desk.Waits(3)) << "although its ticket is younger";
  EXPECT_TRUE(desk.Waits(2));
}

TEST(Policy, OverTheLimitIsDeniedAtOnce) {
  Desk desk = TwoJobs();
  desk.Gate0(1, 60);
  desk.Lease(1, 71);
  EXPECT_EQ(desk.denied, (std::vector<JobId>{1}));
  EXPECT_EQ(desk.last.code, DenyCode::kOverLimit);
  EXPECT_EQ(desk.last.reason,
            "job 1 'a' asks for 71.0 MiB, holds 10.0 MiB, and its limit is 80.0 MiB");
  desk.Lease(1, 70);
  EXPECT_EQ(desk.ledger.held(1), 80u) << "peers and the job itself are untouched";
}

TEST(Policy, RequestsFromTheWrongPhaseAreRefused) {
  Desk desk = TwoJobs();
  desk.Lease(1, 1);
  EXPECT_EQ(desk.last.code, DenyCode::kRefused);
  EXPECT_EQ(desk.last.reason, "job 1 'a' is parked and cannot ask for this");
  desk.Newcomer(2);
  EXPECT_EQ(desk.last.code, DenyCode::kRefused);
  desk.Lease(9, 1);
  EXPECT_EQ(desk.last.reason, "the job is not registered");
}

TEST(Policy, TemporalOpensOneGateAtATime) {
  Config config;
  config.policy = "temporal";
  Desk desk(100, config);
  desk.Parked(1, "a", 10, 40, {0, 10});
  desk.Parked(2, "b", 10, 40, {10, 10});
  desk.Gate0(1, 20);
  desk.Gate0(2, 20);
  EXPECT_TRUE(desk.Waits(2));
  desk.Trough(1);
  EXPECT_FALSE(desk.Waits(2));
  desk.Gate0(1, 20);
  EXPECT_TRUE(desk.Waits(1));
}

TEST(Policy, FlowKeepsToItsLanes) {
  Desk desk(100);
  for (JobId id = 1; id <= 3; ++id) desk.Parked(id, "j", 2, 20, {2 * (id - 1), 2});
  for (JobId id = 1; id <= 3; ++id) desk.Gate0(id, 10);
  EXPECT_TRUE(desk.PastGate(2));
  EXPECT_TRUE(desk.Waits(3));
  EXPECT_EQ(desk.ledger.Find(1)->terms.end, End::kLow);
  EXPECT_EQ(desk.ledger.Find(2)->terms.end, End::kHigh);
  desk.Trough(1);
  EXPECT_EQ(desk.ledger.Find(3)->terms.end, End::kLow) << "the end that has become free";
}

// contiguity

TEST(Policy, NoGateOpensWhileAJobWaitsForContiguity) {
  Desk desk(30);
  desk.Parked(1, "a", 2, 20, {0, 2});
  desk.Parked(2, "b", 2, 20, {2, 2});
  desk.Parked(3, "c", 2, 20, {4, 2});
  desk.config.lanes = 3;
  desk.Gate0(1, 14);
  desk.Lease(1, 12, 12);  // 6 .. 17
  desk.Gate0(2, 14);
  desk.Lease(2, 4, 4);  // 26 .. 29
  // Job 1 gives up the lower half of what it has: 6 .. 11 and 18 .. 25 are free, no run of 9.
  desk.Release(1, {{6, 6}});
  desk.Lease(2, 9, 9);
  ASSERT_TRUE(desk.Waits(2));
  desk.Gate0(3, 4);
  EXPECT_TRUE(desk.Waits(3)) << "it would fit, but it might sit where the run is to come from";
  desk.Trough(1);
  EXPECT_FALSE(desk.Waits(2));
  EXPECT_FALSE(desk.Waits(3));
}

/// Bases that leave three runs of 3 units above those of jobs 1 and 2.
Desk Scattered(Extent first_base) {
  Desk desk(24);
  desk.Parked(1, "a", first_base.length, 11, first_base);
  desk.Parked(2, "b", 2, 11, {9, 2});
  desk.Parked(3, "c", 2, 11, {14, 2});
  desk.Parked(4, "d", 2, 11, {19, 2});
  return desk;
}

/// Units that its blocks cannot fill would count against its claim, until it outgrows that.
TEST(Policy, NoGateOpensOnPiecesThatItsBlocksCannotFill) {
  Desk desk = Scattered({0, 2});
  desk.Gate0(1, 9);
  desk.Lease(1, 7, 7);
  ASSERT_EQ(desk.Held(1), (Extents{{0, 9}}));
  Request request;
  request.kind = RequestKind::kGate0;
  request.claim = 10;
  request.units = 8;
  request.contiguous = 2;
  desk.Ask(2, request);
  EXPECT_FALSE(desk.PastGate(2)) << "9 units are free, and only three blocks of 2 fit into them";
  desk.Trough(1);
  EXPECT_TRUE(desk.PastGate(2));
  EXPECT_EQ(desk.Held(2), (Extents{{2, 6}, {9, 4}}));
}

TEST(Policy, PiecesAreAllThereIsWhenNothingElseMoves) {
  Desk desk = Scattered({0, 9});
  desk.Gate0(2, 10);
  ASSERT_TRUE(desk.PastGate(2));
  desk.Lease(2, 8, 2);
  EXPECT_FALSE(desk.Waits(2));
  EXPECT_EQ(desk.ledger.held(2), 10u);
  EXPECT_TRUE(desk.denied.empty());
}

/// Job 1 has its claim of 18 out of 20, a base of 2 in it; the other 2 are job 2's base.
Desk HoldsAllOfItsClaim() {
  Desk desk(20);
  desk.Parked(1, "a", 2, 18, {0, 2});
  desk.Parked(2, "b", 2, 18, {2, 2});
  desk.Gate0(1, 18);
  desk.Lease(1, 16);
  return desk;
}

TEST(Policy, FencedUnitsThatLeaveNoPromisedRunStayWithTheirJob) {
  Desk desk = HoldsAllOfItsClaim();
  desk.Release(1, {{8, 2}});
  EXPECT_EQ(desk.ledger.Find(1)->spare, 0u) << "a run of 2 for a remaining claim of 2";
  desk.Release(1, {{12, 2}});
  EXPECT_EQ(desk.ledger.Find(1)->spare, 2u) << "4 in one run are not to be had";
  EXPECT_TRUE(IsSafe(desk.ledger));
  desk.Release(1, {{10, 2}});
  EXPECT_EQ(desk.ledger.Find(1)->spare, 0u) << "now 8 .. 13 are one run";
  desk.Lease(1, 6, 6);
  EXPECT_FALSE(desk.Waits(1));
}

TEST(Policy, SpareUnitsServeTheirJobAgain) {
  Desk desk = HoldsAllOfItsClaim();
  desk.Release(1, {{8, 2}, {12, 2}});
  ASSERT_EQ(desk.ledger.Find(1)->spare, 2u);
  desk.Lease(1, 4, 2);
  EXPECT_EQ(desk.ledger.held(1), 18u);
  EXPECT_EQ(desk.ledger.Find(1)->spare, 0u);
}

TEST(Policy, SpareUnitsAreGrantedBeforeFreeOnes) {
  Desk desk = HoldsAllOfItsClaim();
  desk.Release(1, {{8, 2}});
  desk.Release(1, {{12, 2}});
  ASSERT_EQ(desk.ledger.Find(1)->spare, 2u);
  desk.Lease(1, 2, 2);
  EXPECT_EQ(desk.ledger.map().Held(1, UnitState::kLeased), (Extents{{0, 2}, {4, 4}, {10, 10}}));
  EXPECT_EQ(desk.ledger.map().FreeRuns(), (Extents{{8, 2}}));
}

TEST(Policy, AJobMayFragmentItself) {
  Desk desk(20);
  desk.Parked(1, "a", 2, 18, {0, 2});
  desk.Parked(2, "b", 2, 18, {2, 2});
  desk.Gate0(1, 18);
  desk.Lease(1, 16);
  desk.Release(1, {{8, 2}, {12, 2}});
  desk.Lease(1, 4, 4);
  EXPECT_EQ(desk.denied, (std::vector<JobId>{1})) << "nobody but the job itself is in the way";
}

TEST(Policy, BasesInTheWayOpenOneGateOnTheNumberAlone) {
  Desk desk(12);
  desk.Parked(1, "a", 1, 10, {0, 1});
  desk.Parked(2, "b", 1, 10, {6, 1});
  desk.Gate0(1, 9);
  ASSERT_TRUE(desk.PastGate(1));
  EXPECT_TRUE(desk.last.sums_only);
  desk.Gate0(2, 3);
  EXPECT_TRUE(desk.Waits(2)) << "not while somebody lives without a promise";
  desk.Lease(1, 8);
  EXPECT_EQ(desk.ledger.held(1), 9u);
  desk.Trough(1);
  EXPECT_TRUE(desk.PastGate(2));
}

TEST(Policy, BasesInTheWayCostNobodyItsTurn) {
  Desk desk(12);
  desk.Parked(1, "a", 1, 10, {0, 1});
  desk.Parked(2, "b", 1, 10, {6, 1});
  desk.Gate0(2, 3);
  ASSERT_TRUE(desk.PastGate(2));
  desk.Gate0(1, 9);
  EXPECT_TRUE(desk.Waits(1)) << "no run has room for its claim";
  desk.Again(2, 3, 0);
  EXPECT_TRUE(desk.PastGate(1)) << "it came first";
  EXPECT_TRUE(desk.last.sums_only);
  EXPECT_TRUE(desk.Waits(2));
}

// newcomers

TEST(Policy, ANewcomerIsMeasuredWhileTheOthersArePaused) {
  Desk desk(100);
  desk.Parked(1, "a", 10, 60, {0, 10});
  ASSERT_TRUE(desk.ledger.Admit(2, "b", 0, 80).ok());
  desk.Gate0(1, 30);
  desk.Newcomer(2);
  EXPECT_TRUE(desk.PastGate(2)) << "job 1 will be back at its trough";
  desk.Trough(1);
  desk.Gate0(1, 30);
  EXPECT_TRUE(desk.Waits(1)) << "not while job 2 is without a profile";
  EXPECT_NE(
      WhyWaiting(desk.ledger, desk.waiting[0], desk.config).find("while job 2 'b' is measured"),
      std::string::npos);
  desk.Lease(2, 50);
  desk.Trough(2);
  EXPECT_FALSE(desk.Waits(1));
}

TEST(Policy, ASecondNewcomerWaitsForTheFirst) {
  Desk desk(100);
  ASSERT_TRUE(desk.ledger.Admit(1, "a", 0, 50).ok());
  ASSERT_TRUE(desk.ledger.Admit(2, "b", 0, 50).ok());
  desk.Newcomer(1);
  desk.Newcomer(2);
  EXPECT_TRUE(desk.Waits(2));
  ASSERT_TRUE(desk.ledger.Settle(1, 30).ok());
  desk.Decide();
  EXPECT_TRUE(desk.PastGate(2)) << "nobody waits for the profile of a settled job";
}

TEST(Policy, ASettledJobDoesNotBlockTemporal) {
  Config config;
  config.policy = "temporal";
  Desk desk(100, config);
  desk.Parked(1, "a", 10, 40, {0, 10});
  ASSERT_TRUE(desk.ledger.Admit(2, "server", 0, 50).ok());
  desk.Newcomer(2);
  desk.Gate0(1, 30);
  ASSERT_TRUE(desk.Waits(1));
  ASSERT_TRUE(desk.ledger.Settle(2, 50).ok());
  desk.Decide();
  EXPECT_FALSE(desk.Waits(1));
}

TEST(Policy, AGrantLeavesOthersTheRunsThatTheyWerePromised) {
  Desk desk(11);
  desk.Parked(1, "a", 1, 8, {0, 1});
  desk.Parked(2, "b", 1, 8, {5, 1});
  desk.Parked(3, "c", 1, 8, {8, 1});  // 4, 2 and 2 lie free
  desk.Gate0(1, 5);
  desk.Gate0(2, 4, 0, false);
  ASSERT_TRUE(desk.PastGate(2));
  desk.Lease(2, 3, 3);
  EXPECT_TRUE(desk.Waits(2)) << "5 would be left, and no 4 of them in a row";
  desk.Lease(1, 4, 4);
  EXPECT_FALSE(desk.Waits(1));
  desk.Trough(1);
  EXPECT_FALSE(desk.Waits(2));
}

TEST(Policy, WhoWasOvertakenOftenEnoughComesBeforeThoseOfMorePriority) {
  Config config;
  config.policy = "temporal";
  Desk desk(100, config);
  desk.Parked(1, "a", 10, 40, {0, 10});
  desk.Parked(2, "b", 10, 40, {10, 10});
  std::vector<Request> requests(2);
  for (size_t i = 0; i < 2; ++i) {
    requests[i].job = static_cast<JobId>(i + 1);
    requests[i].kind = RequestKind::kGate0;
    requests[i].claim = 30;
    requests[i].ticket = i;
  }
  requests[1].priority = 7;
  requests[0].overtaken = config.max_overtakes - 1;
  auto next = Next(desk.ledger, requests, config);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->job, 2u);
  requests[0].overtaken = config.max_overtakes;
  next = Next(desk.ledger, requests, config);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->job, 1u);
}

TEST(Policy, AJobThatCameToItsTroughWithEverythingGoesOnFirst) {
  Desk desk(100);
  desk.Parked(1, "a", 10, 90, {0, 10});
  desk.Gate0(1, 80, 0, false);  // alone: no pressure, nothing given back
  desk.Lease(1, 70);
  ASSERT_TRUE(desk.ledger.ReachTrough(1, false).ok());
  ASSERT_TRUE(desk.ledger.Admit(2, "b", 0, 90).ok());
  desk.Newcomer(2);
  EXPECT_TRUE(desk.Waits(2)) << "20 free";
  desk.waiting[0].overtaken = 4;
  desk.Gate0(1, 80);
  EXPECT_TRUE(desk.PastGate(1)) << "only by going on can it give anything back";
  desk.Trough(1);
  EXPECT_FALSE(desk.Waits(2));
}

// death

TEST(Policy, NothingIsLentBeforeTheLastHolderIsGone) {
  Desk desk = TwoJobs();
  desk.Gate0(1, 60);
  desk.Lease(1, 50);
  desk.Gate0(2, 60);
  desk.Die(1);
  desk.Lease(2, 40);
  EXPECT_TRUE(desk.Waits(2));
  EXPECT_TRUE(desk.denied.empty()) << "its memory will come back";
  desk.Lease(2, 0);
  desk.Gone(1);
  EXPECT_EQ(desk.ledger.held(2), 50u);
}

TEST(Policy, NoGateOpensOnQuarantinedMemory) {
  Desk desk(100);
  desk.Parked(1, "a", 10, 60, {0, 10});
  desk.Parked(2, "b", 10, 60, {10, 10});
  desk.Gate0(1, 60);
  desk.Lease(1, 50);
  desk.Die(1);
  desk.Gate0(2, 60);
  EXPECT_TRUE(desk.Waits(2));
  desk.Gone(1);
  EXPECT_TRUE(desk.PastGate(2));
}

}  // namespace
}  // namespace sluice::scheduler
