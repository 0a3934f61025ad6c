// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// I5: who left its claim makes room for those who did not, and comes back.
#include <gtest/gtest.h>

#include "scheduler/audit/audit.h"
#include "tests/unit/scheduler/policy_desk.h"

namespace sluice::scheduler {
namespace {

void ExpectSoundLog(const Desk& desk) {
  for (const auto& violation : Audit(desk.records).violations) ADD_FAILURE() << violation.text;
}

/// Job 1 has all of its claim of 60; job 2 has 30 of its own and waits for 30 more, which job 1
/// would give back at its trough; 10 are free.
Desk BothPastTheirGates(Config config = {}, Units second_claim = 60) {
  Desk desk(100, std::move(config));
  desk.Parked(1, "a", 10, 80, {0, 10});
  desk.Parked(2, "b", 10, 80, {10, 10});
  desk.Gate0(1, 60);
  desk.Lease(1, 50);
  desk.Gate0(2, second_claim);
  desk.Lease(2, 20);
  desk.Lease(2, 30);
  EXPECT_TRUE(desk.Waits(2));
  return desk;
}

TEST(PolicyEvicts, TheJobThatGrewAndBringsItBack) {
  Desk desk = BothPastTheirGates();
  const Extents before = desk.Held(1);
  desk.InsuredLease(1, 20);
  EXPECT_EQ(desk.leaving, (std::vector<JobId>{1}));
  EXPECT_TRUE(desk.denied.empty());
  EXPECT_TRUE(desk.Waits(2)) << "nothing is free before it is copied";
  desk.Copied(1);
  EXPECT_EQ(desk.Held(1), (Extents{{0, 10}})) << "its base stays";
  EXPECT_FALSE(desk.Waits(2)) << "the one inside its claim goes on";
  EXPECT_TRUE(desk.Waits(1));
  desk.Trough(2);
  EXPECT_FALSE(desk.Waits(1));
  EXPECT_TRUE(desk.PastGate(1));
  EXPECT_TRUE(Subtract(before, desk.Held(1)).empty()) << "to the same units";
  EXPECT_EQ(TotalUnits(desk.Held(1)), 80u) << "with what it waited for";
  EXPECT_EQ(desk.ledger.Find(1)->terms.claim, 80u);
  desk.Trough(1);
  ExpectSoundLog(desk);
}

/// Bytes are free, but in holes between its own blocks and those of its neighbour.
TEST(PolicyEvicts, WhoIsStuckInItsOwnFragments) {
  Desk desk(24);
  desk.Parked(1, "a", 2, 10, {0, 2});
  desk.Parked(2, "b", 2, 20, {2, 2});
  for (const auto& [id, claim] : {std::pair{1u, 9u}, {2u, 18u}}) {
    Request gate;
    gate.kind = RequestKind::kGate0;
    gate.claim = claim;
    gate.piece = 2;
    desk.Ask(id, gate);
  }
  desk.Hold(1, {{4, 1}, {6, 1}, {8, 1}, {10, 1}});
  desk.Hold(2, {{5, 1}, {7, 1}, {12, 12}});
  desk.Lease(2, 2, 2);
  EXPECT_TRUE(desk.Waits(2));
  desk.InsuredLease(1, 3, 3);
  EXPECT_EQ(desk.leaving, (std::vector<JobId>{1}));
  desk.Copied(1);
  EXPECT_FALSE(desk.Waits(2)) << "what it left has a run of two";
  desk.Trough(2);
  EXPECT_FALSE(desk.Waits(1));
  desk.Trough(1);
  EXPECT_TRUE(desk.denied.empty());
}

/// What a job keeps at its trough where another one has to come back to keeps that one away. What
/// it is granted first is given back by then more likely than what it is granted last.
TEST(PolicyEvicts, WhoGoesOnUsesItsPlacesFirstAndNoneWhereItCan) {
  Desk desk = BothPastTheirGates({}, 70);
  desk.InsuredLease(1, 20);
  const Extents before = desk.Held(2);
  desk.Copied(1);
  const Extents places = desk.ledger.Find(1)->away;
  ASSERT_EQ(TotalUnits(places), 50u);
  ASSERT_FALSE(desk.Waits(2));
  EXPECT_EQ(TotalUnits(Intersect(desk.Held(2), places)), 30u)
      << "10 are free beside them, and it may come to 40 more";
  desk.Lease(2, 5);
  ASSERT_FALSE(desk.Waits(2));
  EXPECT_EQ(TotalUnits(Intersect(desk.Held(2), places)), 30u) << "these 10 are enough now";
  EXPECT_EQ(TotalUnits(desk.Held(2)), TotalUnits(before) + 35);
  ExpectSoundLog(desk);
}

TEST(PolicyEvicts, WhoseMemoryIsMovedIsGrantedNothing) {
  Desk desk(100);
  desk.Parked(1, "a", 10, 80, {0, 10});
  desk.Gate0(1, 60);
  Request lease;
  lease.job = 1;
  lease.units = 5;
  lease.contiguous = 1;
  EXPECT_TRUE(Next(desk.ledger, {lease}, desk.config).has_value());
  lease.insurance = Insurance::kLeaving;
  EXPECT_FALSE(Next(desk.ledger, {lease}, desk.config).has_value());
}

TEST(PolicyEvicts, WhoIsAwayIsNotToldThatNothingComesBack) {
  Desk desk(100);
  desk.Parked(1, "a", 10, 80, {0, 10});
  desk.Gate0(1, 60);
  desk.Lease(1, 50);
  ASSERT_TRUE(desk.ledger.Evict(1).ok());
  const Extent place = desk.ledger.Find(1)->away.front();
  desk.Parked(2, "b", 10, 80, {place.offset, 10});  // and does nothing
  Request back;
  back.job = 1;
  back.kind = RequestKind::kBringBack;
  back.units = 10;
  back.contiguous = 1;
  EXPECT_FALSE(Next(desk.ledger, {back}, desk.config).has_value()) << "it waits for its place";
}

TEST(PolicyEvicts, NobodyWithoutInsurance) {
  Desk desk = BothPastTheirGates();
  desk.Lease(1, 20);
  EXPECT_TRUE(desk.leaving.empty());
  EXPECT_EQ(desk.denied, (std::vector<JobId>{1}));
}

TEST(PolicyEvicts, NobodyInsideItsClaim) {
  Desk desk(100);
  desk.Parked(1, "a", 10, 80, {0, 10});
  desk.Parked(2, "b", 10, 80, {10, 10});
  desk.Gate0(1, 60);
  desk.Lease(1, 40);
  desk.Gate0(2, 60);
  desk.Lease(2, 20);
  desk.InsuredLease(2, 30);
  EXPECT_TRUE(desk.Waits(2)) << "job 1 still runs";
  desk.Lease(1, 25);  // beyond its claim, and uninsured
  EXPECT_TRUE(desk.leaving.empty());
  EXPECT_EQ(desk.denied, (std::vector<JobId>{1}));
  EXPECT_TRUE(desk.Waits(2));
}

TEST(PolicyEvicts, NobodyWhoCouldNotComeBack) {
  Desk desk = BothPastTheirGates();
  ASSERT_TRUE(desk.ledger.SetLimit(2, 10 + 60).ok());
  ASSERT_TRUE(desk.ledger.SetLimit(1, 90).ok());
  // With the base of job 2 there is room for 90.
  desk.InsuredLease(1, 30);
  EXPECT_EQ(desk.leaving, (std::vector<JobId>{1})) << "just fits";
  Desk more = BothPastTheirGates();
  more.LoseProfile(2);  // gives nothing back any more
  more.InsuredLease(1, 20);
  EXPECT_TRUE(more.leaving.empty());
  EXPECT_EQ(more.denied, (std::vector<JobId>{1}));
}

/// The base of job 2 is scattered over more than it asked for, and gathers when it goes on; with it
/// there is no room for what job 1 needs.
TEST(PolicyEvicts, WhoIsInTheWayOfABaseThatMayGather) {
  Config turns;
  turns.policy = "temporal";
  Desk desk(100, turns);
  desk.Parked(1, "a", 10, 70, {0, 10});
  desk.Parked(2, "b", 25, 80, {10, 45});
  desk.Gate0(1, 40);
  desk.Lease(1, 30);
  desk.Gate0(2, 50);
  EXPECT_TRUE(desk.Waits(2));
  desk.InsuredLease(1, 20);
  EXPECT_EQ(desk.leaving, (std::vector<JobId>{1}));
  EXPECT_TRUE(desk.denied.empty());
  desk.Copied(1);
  EXPECT_FALSE(desk.Waits(2));
  EXPECT_TRUE(desk.Waits(1));
  desk.Release(2, {{20, 35}});
  desk.Trough(2);
  EXPECT_FALSE(desk.Waits(1));
  EXPECT_EQ(TotalUnits(desk.Held(1)), 60u);
  desk.Trough(1);
  ExpectSoundLog(desk);

  // Much more than was asked for is no scatter, and would keep job 1 away.
  Desk large(100, turns);
  large.Parked(1, "a", 10, 70, {0, 10});
  large.Parked(2, "b", 20, 80, {10, 45});
  large.Gate0(1, 40);
  large.Lease(1, 30);
  large.Gate0(2, 50);
  large.InsuredLease(1, 20);
  EXPECT_TRUE(large.leaving.empty());
  EXPECT_EQ(large.denied, (std::vector<JobId>{1}));
}

TEST(PolicyEvicts, NobodyForNothing) {
  Desk desk(100);
  desk.Parked(1, "a", 10, 60, {0, 10});
  desk.Parked(2, "b", 40, 70, {10, 45});
  desk.Gate0(1, 40);
  desk.Lease(1, 30);
  desk.InsuredLease(1, 20);  // job 2 keeps more at its trough than it asked for
  EXPECT_TRUE(desk.leaving.empty()) << "nobody waits for what it has";
  EXPECT_EQ(desk.denied, (std::vector<JobId>{1}));
}

TEST(PolicyEvicts, NoGateOpensWhileItStandsStill) {
  Desk desk(100);
  desk.Parked(1, "a", 10, 70, {0, 10});
  desk.Parked(2, "b", 10, 70, {10, 10});
  desk.Parked(3, "c", 10, 70, {20, 10});
  desk.Gate0(1, 50);
  desk.Lease(1, 40);
  desk.Gate0(2, 50);
  desk.Lease(2, 15);
  desk.Lease(2, 25);
  desk.InsuredLease(1, 20);
  ASSERT_EQ(desk.leaving, (std::vector<JobId>{1}));
  desk.Gate0(3, 12);
  EXPECT_TRUE(desk.Waits(3));
  desk.Copied(1);
  EXPECT_FALSE(desk.Waits(2));
  EXPECT_FALSE(desk.Waits(3)) << "there is room for all that it may hold";
  desk.Trough(2);
  desk.Trough(3);
  EXPECT_FALSE(desk.Waits(1));
  ExpectSoundLog(desk);
}

TEST(PolicyEvicts, ANewcomerWaitsUntilItIsBack) {
  Desk desk = BothPastTheirGates();
  desk.InsuredLease(1, 20);
  desk.Copied(1);
  desk.Admit(3, "c", 5, 10);
  desk.Newcomer(3);
  EXPECT_TRUE(desk.Waits(3)) << "it may keep what job 1 has to come back to";
  desk.Trough(2);
  EXPECT_FALSE(desk.Waits(1));
  desk.Trough(1);
  EXPECT_FALSE(desk.Waits(3));
  ExpectSoundLog(desk);
}

TEST(PolicyEvicts, OthersPassItAFewTimesOnly) {
  Config config;
  config.max_overtakes = 2;
  Desk desk = BothPastTheirGates(config);
  desk.InsuredLease(1, 20);
  desk.Copied(1);
  // Job 2 has all that it wanted; it begins again as soon as it has ended.
  int passed = 0;
  while (desk.Waits(1) && passed < 10) {
    desk.Park(2);
    desk.Gate0(2, 60, 50);
    if (desk.PastGate(2)) ++passed;
    if (!desk.Waits(1)) break;
  }
  EXPECT_FALSE(desk.Waits(1));
  EXPECT_LE(passed, 2);
  ExpectSoundLog(desk);
}

TEST(PolicyEvicts, AJobWithoutAProfileComesBackWithoutOne) {
  Desk desk = BothPastTheirGates();
  desk.LoseProfile(1);
  desk.InsuredLease(1, 20);
  ASSERT_EQ(desk.leaving, (std::vector<JobId>{1}));
  desk.Copied(1);
  desk.Trough(2);
  EXPECT_FALSE(desk.Waits(1));
  EXPECT_EQ(desk.ledger.Find(1)->phase, Phase::kUnprofiled);
  desk.Trough(1);
  ExpectSoundLog(desk);
}

TEST(PolicyEvicts, WhoDiesInHostMemoryLeavesItsBaseAlone) {
  Desk desk = BothPastTheirGates();
  desk.InsuredLease(1, 20);
  desk.Copied(1);
  desk.Die(1);
  EXPECT_EQ(desk.ledger.Find(1)->quarantined, 10u);
  desk.Gone(1);
  desk.Trough(2);
  EXPECT_EQ(desk.ledger.free(), 90u);
  ExpectSoundLog(desk);
}

}  // namespace
}  // namespace sluice::scheduler
