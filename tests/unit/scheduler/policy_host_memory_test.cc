// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Slices of residence: whose base goes to host memory while it waits, and when it comes back.
#include <gtest/gtest.h>

#include "scheduler/audit/audit.h"
#include "scheduler/policy/host_memory.h"
#include "tests/unit/scheduler/policy_desk.h"

namespace sluice::scheduler {
namespace {

void ExpectSoundLog(const Desk& desk) {
  const AuditReport report = Audit(desk.records);
  for (const auto& violation : report.violations) ADD_FAILURE() << violation.text;
  EXPECT_EQ(report.over_budget_moments, 0u);
}

Config Slices(uint32_t residents) {
  Config config;
  config.lanes = 3;
  config.residents = residents;
  return config;
}

/// Three jobs at their troughs; what their bases leave, 25, has room for the iteration of one. Each
/// wants 15 more for it.
Desk ThreeJobs(Config config = Slices(2)) {
  Desk desk(100, std::move(config));
  desk.Parked(1, "a", 25, 45, {0, 25});
  desk.Parked(2, "b", 25, 45, {25, 25});
  desk.Parked(3, "c", 25, 45, {50, 25});
  return desk;
}

void Gate0(Desk& desk, JobId id) { desk.InsuredGate0(id, 40, 15); }
/// One that stays where it is.
void UninsuredGate0(Desk& desk, JobId id) { desk.Gate0(id, 40, 15); }

/// At its trough it keeps what it holds, which is its base from there.
void KeepAll(Desk& desk, JobId id) {
  desk.Ok(desk.ledger.ReachTrough(id, true));
  desk.Write(EventKind::kTrough, id, [](Record& r) { r.drained = true; });
}

/// Job 1 is in host memory, job 3 is past its gate with memory in its place, and so is job 2.
Desk OneIsAway(Config config = Slices(2)) {
  Desk desk = ThreeJobs(std::move(config));
  Gate0(desk, 1);
  Gate0(desk, 2);
  Gate0(desk, 3);
  desk.Copied(1);
  EXPECT_TRUE(desk.Away(1));
  EXPECT_TRUE(desk.PastGate(2));
  EXPECT_TRUE(desk.PastGate(3));
  EXPECT_EQ(TotalUnits(Intersect(desk.Held(3), {{0, 25}})), 15u);
  return desk;
}

/// All three ask at the same time.
class WhoLeavesTest : public testing::Test {
 protected:
  WhoLeavesTest() {
    for (const JobId id : {1u, 2u, 3u}) Asks(id, 10 + id);
  }
  void Asks(JobId id, uint64_t ticket) {
    Request request;
    request.job = id;
    request.kind = RequestKind::kGate0;
    request.claim = 40;
    request.ticket = ticket;
    request.insurance = Insurance::kEvictable;
    desk.waiting.push_back(request);
  }
  Request& Of(JobId id) { return desk.waiting[id - 1]; }
  JobId Leaves() const {
    const auto leaves = WhoLeaves(desk.ledger, desk.waiting, desk.config);
    return leaves ? desk.waiting[*leaves].job : kNoJob;
  }
  /// In host memory; its place is free.
  void GoesAway(JobId id) {
    desk.Ok(desk.ledger.Evict(id));
    Of(id).kind = RequestKind::kSwapIn;
    Of(id).insurance = Insurance::kNone;
  }

  /// It has been in host memory.
  void ComesBackTo(JobId id) {
    desk.Ok(desk.ledger.Evict(id));
    desk.Ok(desk.ledger.BringBack(id, {}));
  }
  void Iterates(JobId id) {
    desk.Ok(desk.ledger.OpenGate(id, {45, 15, true, End::kLow}));
    desk.Ok(desk.ledger.ReachTrough(id, true));
  }
  void BeenAway(JobId id) {
    ComesBackTo(id);
    Iterates(id);
  }

  Desk desk = ThreeJobs();
};

TEST_F(WhoLeavesTest, WhoIsThereLongestWhateverThePriorities) {
  EXPECT_EQ(Leaves(), 1u);
  Of(2).ticket = 9;
  Of(2).priority = -1;
  EXPECT_EQ(Leaves(), 1u) << "equal turns for everybody";
  BeenAway(1);
  EXPECT_EQ(Leaves(), 2u) << "the other has come back";
  BeenAway(2);
  EXPECT_EQ(Leaves(), 3u);
  BeenAway(3);
  EXPECT_EQ(Leaves(), 1u);
}

TEST_F(WhoLeavesTest, NobodyBeforeItHasBegunSinceItCameBack) {
  for (const JobId job : {1u, 2u, 3u}) ComesBackTo(job);
  EXPECT_EQ(Leaves(), kNoJob);
  Iterates(1);
  EXPECT_EQ(Leaves(), 1u);
}

/// Or whoever happens to come to its gate first would go each time, and the same one stay.
TEST_F(WhoLeavesTest, NobodyElseWhileTheOneWhoseTurnItIsIsInItsIteration) {
  desk.Ok(desk.ledger.OpenGate(1, {45, 15, true, End::kLow}));
  EXPECT_EQ(Leaves(), kNoJob);
  desk.Ok(desk.ledger.SetQuiet(1, true));
  desk.config.residents = 1;
  EXPECT_EQ(Leaves(), 2u) << "nobody waits for one that stands still";
  desk.Ok(desk.ledger.SetQuiet(1, false));
  desk.Ok(desk.ledger.ReachTrough(1, true));
  desk.Ok(desk.ledger.SetStays(1, true));
  desk.Ok(desk.ledger.OpenGate(1, {45, 15, true, End::kLow}));
  EXPECT_EQ(Leaves(), 2u) << "nor for one that cannot be moved";
}

TEST_F(WhoLeavesTest, NobodyWhomOthersHavePassedOftenEnough) {
  Of(1).overtaken = desk.config.max_overtakes;
  EXPECT_EQ(Leaves(), 2u);
  Of(1).overtaken = desk.config.max_overtakes - 1;
  EXPECT_EQ(Leaves(), 1u);
}

TEST_F(WhoLeavesTest, NobodyWhomHostMemoryHasNoRoomFor) {
  Of(1).insurance = Insurance::kNone;
  EXPECT_EQ(Leaves(), 2u);
}

TEST_F(WhoLeavesTest, NobodyWhoIsPastItsGate) {
  desk.Ok(desk.ledger.OpenGate(1, {40, 15, true, End::kLow}));
  Of(1).kind = RequestKind::kLease;
  EXPECT_EQ(Leaves(), kNoJob) << "it goes when it has come to its trough";
  BeenAway(2);
  desk.Ok(desk.ledger.ReachTrough(1, true));
  BeenAway(1);
  desk.Ok(desk.ledger.OpenGate(1, {40, 15, true, End::kLow}));
  EXPECT_EQ(Leaves(), 3u) << "it is there all the same, and the others are too many";
}

TEST_F(WhoLeavesTest, OneAtATime) {
  Of(2).insurance = Insurance::kLeaving;
  EXPECT_EQ(Leaves(), kNoJob);
}

TEST_F(WhoLeavesTest, NobodyWhereThereIsRoomForAllOrAllBasesStay) {
  desk.config.residents = 3;
  EXPECT_EQ(Leaves(), kNoJob);
  desk.config.residents = 0;
  EXPECT_EQ(Leaves(), kNoJob);
  desk.config.residents = 1;
  EXPECT_EQ(Leaves(), 1u);
}

TEST_F(WhoLeavesTest, NobodyWhileANewcomerWaits) {
  desk.Admit(4, "d", 5, 20);
  EXPECT_EQ(Leaves(), kNoJob) << "it is about to ask";
  Request request;
  request.job = 4;
  request.kind = RequestKind::kNewcomer;
  desk.waiting.push_back(request);
  EXPECT_EQ(Leaves(), kNoJob);
}

/// It may keep for good what it takes.
TEST_F(WhoLeavesTest, NobodyBesideAJobWithoutAProfile) {
  desk.Ok(desk.ledger.OpenGate(3, {40, 15, true, End::kLow}));
  desk.waiting.pop_back();
  EXPECT_EQ(Leaves(), 1u);
  desk.Ok(desk.ledger.LoseProfile(3));
  EXPECT_EQ(Leaves(), kNoJob);
  desk.Ok(desk.ledger.Settle(3, 30));
  EXPECT_EQ(Leaves(), kNoJob);
  desk.Ok(desk.ledger.Die(3));
  EXPECT_EQ(Leaves(), kNoJob) << "two are left";
  desk.config.residents = 1;
  EXPECT_EQ(Leaves(), 1u) << "a dead one takes nothing";
}

/// It waits for other GPUs, which others would keep waiting that are due there.
TEST_F(WhoLeavesTest, NobodyBesideAJobWithCollectives) {
  desk.Ok(desk.ledger.SetCollective(3));
  EXPECT_EQ(Leaves(), kNoJob);
}

/// Whoever holds it has no profile, and takes nothing either.
TEST_F(WhoLeavesTest, WhatIsBeyondABudgetIsNoJob) {
  desk.Ok(desk.ledger.Admit(kBeyondBudget, "beyond the budget", 5, 5));
  EXPECT_EQ(Leaves(), 1u) << "it was asked for";
  desk.Ok(desk.ledger.StartUnprofiled(kBeyondBudget));
  desk.Ok(desk.ledger.Grant(kBeyondBudget, {{95, 5}}));
  desk.Ok(desk.ledger.Settle(kBeyondBudget, 5));
  EXPECT_EQ(Leaves(), 1u);
  desk.config.residents = 3;
  EXPECT_EQ(Leaves(), kNoJob);
}

TEST_F(WhoLeavesTest, SomebodyMakesRoomForOneWhoseSliceHasPassed) {
  GoesAway(1);
  EXPECT_EQ(Leaves(), kNoJob) << "two are there";
  Of(1).due = true;
  EXPECT_EQ(Leaves(), 2u);
  desk.config.residents = 3;
  EXPECT_EQ(Leaves(), kNoJob) << "there is room for it";
  // Nobody does for who is to be back only because a newcomer waits: nothing of a slice has passed.
  desk.config.residents = 2;
  Of(1).due = false;
  Request request;
  request.job = 4;
  request.kind = RequestKind::kNewcomer;
  desk.waiting.push_back(request);
  EXPECT_EQ(Leaves(), kNoJob);
}

TEST_F(WhoLeavesTest, WhoIsInThePlaceOfOneThatIsDueWhateverIsThere) {
  GoesAway(1);
  desk.Ok(desk.ledger.OpenGate(3, {45, 15, false, End::kLow}));
  desk.Ok(desk.ledger.Grant(3, {{20, 1}}));
  desk.Ok(desk.ledger.ReachTrough(3, true));
  EXPECT_EQ(Leaves(), kNoJob);
  Of(1).due = true;
  for (const uint32_t residents : {0u, 2u, 3u}) {
    desk.config.residents = residents;
    EXPECT_EQ(Leaves(), 3u) << residents;
  }
  desk.Admit(4, "d", 5, 20);
  EXPECT_EQ(Leaves(), 3u) << "a newcomer waits for it, too";
  Of(3).overtaken = desk.config.max_overtakes;
  EXPECT_EQ(Leaves(), 3u) << "it begins no sooner where it is";
  Of(3).insurance = Insurance::kNone;
  EXPECT_EQ(Leaves(), kNoJob);
  Of(3).insurance = Insurance::kEvictable;
  const Ledger before = desk.ledger;
  ComesBackTo(3);
  EXPECT_EQ(Leaves(), kNoJob) << "or the two would go to and fro";
  desk.ledger = before;
  desk.Ok(desk.ledger.SetCollective(3));
  EXPECT_EQ(Leaves(), kNoJob);
}

/// Job 1 left its claim and stands in the middle of its iteration.
TEST_F(WhoLeavesTest, WhoIsInThePlaceOfAnEvictedJobAlsoBeforeItHasBegun) {
  desk.config.residents = 0;
  desk.Ok(desk.ledger.OpenGate(1, {40, 15, true, End::kLow}));
  desk.Ok(desk.ledger.Grant(1, {{80, 15}}));
  GoesAway(1);
  Of(1).kind = RequestKind::kBringBack;
  desk.Ok(desk.ledger.OpenGate(3, {45, 15, false, End::kLow}));
  desk.Ok(desk.ledger.Grant(3, {{85, 2}}));
  desk.Ok(desk.ledger.ReachTrough(3, true));
  EXPECT_EQ(Leaves(), kNoJob) << "others may pass it yet";
  Of(1).overtaken = desk.config.max_overtakes;
  EXPECT_EQ(Leaves(), 3u);
  ComesBackTo(3);
  EXPECT_EQ(Leaves(), 3u);
  desk.config.residents = 1;
  Of(3).insurance = Insurance::kNone;
  EXPECT_EQ(Leaves(), 2u) << "more are there than may be";
  desk.config.residents = 2;
  EXPECT_EQ(Leaves(), kNoJob) << "its slice is none";
}

using MayComeBackTest = WhoLeavesTest;

TEST_F(MayComeBackTest, OneComesBackWhereThereIsRoomOrItIsDue) {
  GoesAway(1);
  const auto may = [&] { return MayComeBack(desk.ledger, Of(1), desk.waiting, desk.config); };
  EXPECT_FALSE(may());
  desk.config.residents = 3;
  EXPECT_TRUE(may());
  desk.config.residents = 0;
  EXPECT_TRUE(may());
  desk.config.residents = 2;
  Of(1).due = true;
  EXPECT_TRUE(may()) << "somebody leaves for it";
}

/// Who stands in the middle of its iteration needs its place before one that waits to begin.
TEST_F(MayComeBackTest, NobodyComesBackToThePlaceOfAnEvictedJob) {
  desk.Ok(desk.ledger.OpenGate(1, {40, 15, true, End::kLow}));
  desk.Ok(desk.ledger.Grant(1, {{75, 15}}));
  GoesAway(1);
  Of(1).kind = RequestKind::kBringBack;
  desk.Ok(desk.ledger.OpenGate(3, {45, 15, false, End::kLow}));
  desk.Ok(desk.ledger.Grant(3, {{89, 2}}));
  desk.Ok(desk.ledger.ReachTrough(3, true));
  GoesAway(3);
  Of(3).due = true;
  EXPECT_FALSE(MayComeBack(desk.ledger, Of(3), desk.waiting, desk.config));
  desk.ledger = ThreeJobs().ledger;
  desk.Ok(desk.ledger.OpenGate(1, {40, 15, true, End::kLow}));
  desk.Ok(desk.ledger.Grant(1, {{75, 15}}));
  GoesAway(1);
  Of(1).kind = RequestKind::kBringBack;
  GoesAway(3);
  EXPECT_TRUE(MayComeBack(desk.ledger, Of(3), desk.waiting, desk.config)) << "apart";
}

TEST(PolicySwaps, TwoGoOnBesideEachOtherAndEverybodyHasItsTurn) {
  Desk desk = ThreeJobs();
  Gate0(desk, 1);
  EXPECT_EQ(desk.leaving, (std::vector<JobId>{1}));
  EXPECT_TRUE(desk.Leaves(1));
  Gate0(desk, 2);
  EXPECT_TRUE(desk.PastGate(2));
  Gate0(desk, 3);
  EXPECT_TRUE(desk.Waits(3)) << "nothing is free before it is copied";
  desk.Copied(1);
  EXPECT_TRUE(desk.Held(1).empty());
  EXPECT_TRUE(desk.PastGate(3)) << "beside job 2";
  // Job 1 waits for its slice, however often they begin anew.
  for (int i = 0; i < 10; ++i) {
    desk.Park(2);
    Gate0(desk, 2);
    EXPECT_TRUE(desk.PastGate(2));
  }
  EXPECT_EQ(desk.leaving, (std::vector<JobId>{1}));
  EXPECT_TRUE(desk.Away(1));
  desk.Due(1);
  EXPECT_TRUE(desk.Away(1)) << "job 3 is in its place";
  desk.Park(2);
  Gate0(desk, 2);
  EXPECT_EQ(desk.leaving, (std::vector<JobId>{1, 2}));
  EXPECT_FALSE(desk.PastGate(2));
  desk.Copied(2);
  desk.Park(3);
  Gate0(desk, 3);
  EXPECT_EQ(desk.returned, (std::vector<JobId>{1}));
  EXPECT_EQ(Intersect(desk.Held(1), {{0, 25}}), (Extents{{0, 25}})) << "to the same units";
  EXPECT_TRUE(desk.PastGate(1));
  EXPECT_TRUE(desk.PastGate(3));
  EXPECT_EQ(desk.leaving, (std::vector<JobId>{1, 2})) << "the other two are there";
  desk.Due(2);
  desk.Park(1);
  Gate0(desk, 1);
  EXPECT_FALSE(desk.Leaves(1)) << "the only one who waits, but job 3 has never been away";
  desk.Park(3);
  Gate0(desk, 3);
  EXPECT_TRUE(desk.Leaves(3));
  desk.Copied(3);
  EXPECT_EQ(desk.returned, (std::vector<JobId>{1, 2}));
  EXPECT_TRUE(desk.denied.empty());
  ExpectSoundLog(desk);
}

TEST(PolicySwaps, WhoIsOnItsWayBeginsNothing) {
  Desk desk = ThreeJobs();
  Gate0(desk, 1);
  ASSERT_TRUE(desk.Leaves(1));
  EXPECT_EQ(desk.ledger.free(), 25u) << "there would be room";
  desk.Decide();
  EXPECT_FALSE(desk.PastGate(1));
}

TEST(PolicySwaps, NoneWhereAllBasesStay) {
  Desk desk = ThreeJobs(Slices(0));
  for (const JobId id : {1u, 2u, 3u}) Gate0(desk, id);
  EXPECT_TRUE(desk.leaving.empty());
  EXPECT_TRUE(desk.PastGate(1));
  desk.Trough(1);
  EXPECT_TRUE(desk.PastGate(2));
  desk.Trough(2);
  EXPECT_TRUE(desk.PastGate(3));
  ExpectSoundLog(desk);
}

TEST(PolicySwaps, OneComesBackAtOnceWhereOthersHaveLeft) {
  Desk desk = OneIsAway();
  desk.Park(3);
  desk.Decide();
  EXPECT_TRUE(desk.Away(1)) << "its place is free, and two others are there";
  desk.Die(2);
  desk.Gone(2);
  EXPECT_FALSE(desk.Away(1)) << "before its slice has passed";
  EXPECT_EQ(desk.returned, (std::vector<JobId>{1}));
  ExpectSoundLog(desk);
}

TEST(PolicySwaps, AllComeBackWhereAllBasesAreToStay) {
  Desk desk = OneIsAway();
  desk.config.residents = 0;
  desk.Decide();
  EXPECT_TRUE(desk.Away(1)) << "job 3 is in its place";
  desk.Trough(3);
  EXPECT_EQ(desk.returned, (std::vector<JobId>{1}));
  ExpectSoundLog(desk);
}

TEST(PolicySwaps, NobodyBeginsWhileOneThatIsDueWaits) {
  Desk desk = OneIsAway();
  desk.Park(2);
  UninsuredGate0(desk, 2);
  EXPECT_TRUE(desk.PastGate(2)) << "its slice has not passed";
  desk.Park(2);
  desk.Due(1);
  UninsuredGate0(desk, 2);
  EXPECT_FALSE(desk.PastGate(2)) << "there would be room";
  EXPECT_FALSE(desk.Leaves(2));
  desk.Trough(3);
  EXPECT_EQ(desk.returned, (std::vector<JobId>{1}));
  EXPECT_TRUE(desk.PastGate(1));
  desk.Trough(1);
  EXPECT_TRUE(desk.PastGate(2)) << "behind it";
  ExpectSoundLog(desk);
}

/// Job 3 keeps at its trough what it was granted, for good.
TEST(PolicySwaps, WhoKeepsMemoryInThePlaceOfOneThatIsDueGoesThereItself) {
  Desk desk = OneIsAway();
  desk.config.residents = 0;
  desk.Park(2);
  KeepAll(desk, 3);
  desk.InsuredGate0(3, 40);
  EXPECT_TRUE(desk.PastGate(3)) << "its slice has not passed";
  desk.Due(1);
  desk.Park(3);
  desk.InsuredGate0(3, 40);
  EXPECT_EQ(desk.leaving, (std::vector<JobId>{1, 3}));
  desk.Copied(3);
  EXPECT_EQ(desk.returned, (std::vector<JobId>{1}));
  EXPECT_TRUE(desk.PastGate(1));
  EXPECT_TRUE(desk.Away(3)) << "job 1 has its place now";
  desk.Due(3);
  desk.Park(1);
  Gate0(desk, 1);
  EXPECT_TRUE(desk.Leaves(1)) << "the same the other way round";
  desk.Copied(1);
  EXPECT_EQ(desk.returned, (std::vector<JobId>{1, 3}));
  ExpectSoundLog(desk);
}

/// The place of a deviator is taken for good by a neighbour that keeps memory at its trough.
TEST(PolicySwaps, WhoIsInTheWayOfAnEvictedJobGoesToHostMemoryItself) {
  Config config;
  config.max_overtakes = 1;
  Desk desk(100, config);
  desk.Parked(1, "a", 10, 80, {0, 10});
  desk.Parked(2, "b", 10, 80, {10, 10});
  desk.Gate0(1, 60);
  desk.Lease(1, 50);
  desk.Gate0(2, 60);
  desk.Lease(2, 20);
  desk.Lease(2, 30);
  desk.InsuredLease(1, 20);
  ASSERT_TRUE(desk.Leaves(1));
  desk.Copied(1);
  const Extents place = desk.ledger.Find(1)->away;
  const Extents taken = Intersect(desk.Held(2), place);
  ASSERT_GT(TotalUnits(taken), 5u);
  const Extents kept = {{taken[0].offset, 5}};
  desk.Release(2, Subtract(Subtract(desk.Held(2), desk.ledger.Find(2)->base), kept));
  KeepAll(desk, 2);
  desk.InsuredGate0(2, 30);
  EXPECT_TRUE(desk.PastGate(2)) << "it passes once";
  desk.Park(2);
  desk.InsuredGate0(2, 30);
  EXPECT_TRUE(desk.Leaves(2));
  desk.Copied(2);
  EXPECT_TRUE(desk.PastGate(1)) << "in its iteration, in its place";
  EXPECT_TRUE(Subtract(place, desk.Held(1)).empty());
  EXPECT_TRUE(desk.Away(2));
  desk.Trough(1);
  EXPECT_EQ(desk.returned, (std::vector<JobId>{2}));
  EXPECT_TRUE(desk.PastGate(2));
  EXPECT_TRUE(desk.denied.empty());
  ExpectSoundLog(desk);
}

TEST(PolicySwaps, NoNewcomerBeginsWhileOneIsOnItsWayOrAway) {
  Desk desk = ThreeJobs();
  Gate0(desk, 1);
  ASSERT_TRUE(desk.Leaves(1));
  desk.Admit(4, "d", 5, 20);
  desk.Newcomer(4);
  EXPECT_TRUE(desk.Waits(4)) << "it may keep what job 1 has to come back to";
  desk.Copied(1);
  // Its place is free: it was back at once.
  EXPECT_EQ(desk.returned, (std::vector<JobId>{1}));
  EXPECT_FALSE(desk.Waits(4));
  ExpectSoundLog(desk);
}

TEST(PolicySwaps, ANewcomerThatWaitsEndsTheSlices) {
  Desk desk = OneIsAway();
  desk.Admit(4, "d", 5, 20);
  desk.Newcomer(4);
  EXPECT_TRUE(desk.Waits(4)) << "job 3 is in the place of job 1";
  desk.Park(2);
  Gate0(desk, 2);
  EXPECT_FALSE(desk.PastGate(2)) << "there would be room";
  EXPECT_FALSE(desk.Leaves(2)) << "everybody is to be back";
  desk.Trough(3);
  EXPECT_EQ(desk.returned, (std::vector<JobId>{1}));
  desk.Trough(1);
  EXPECT_TRUE(desk.leaving == (std::vector<JobId>{1}));
  EXPECT_TRUE(desk.PastGate(4) || desk.PastGate(2)) << "they go on as without host memory";
  ExpectSoundLog(desk);
}

TEST(PolicySwaps, WhoDiesInHostMemoryIsGone) {
  Desk desk = OneIsAway();
  desk.Die(1);
  desk.Gone(1);
  desk.Trough(2);
  desk.Trough(3);
  EXPECT_EQ(desk.ledger.free(), 50u);
  ExpectSoundLog(desk);
}

TEST(PolicySwaps, OneInHostMemoryWaitsForThat) {
  const Desk desk = OneIsAway();
  ASSERT_EQ(desk.waiting.size(), 1u);
  const Request& away = desk.waiting.front();
  EXPECT_EQ(ReasonOf(desk.ledger, away, desk.config), WaitReason::kHostMemory);
  const std::string why = WhyWaiting(desk.ledger, away, desk.config);
  EXPECT_NE(why.find("job 1 'a' waits in host memory for 40.0 MiB"), std::string::npos) << why;
}

/// Nobody passes another one by coming back.
TEST(PolicySwaps, OnlyWhoBeginsAnIterationOvertakes) {
  std::vector<Request> requests(2);
  requests[0].ticket = 1;
  requests[1].ticket = 2;
  Decision decision;
  decision.request = 1;
  for (const RequestKind kind :
       {RequestKind::kSwapIn, RequestKind::kBringBack, RequestKind::kGate, RequestKind::kLease}) {
    requests[1].kind = kind;
    CountOvertaken(decision, &requests);
    EXPECT_EQ(requests[0].overtaken, 0u);
  }
  requests[1].kind = RequestKind::kGate0;
  CountOvertaken(decision, &requests);
  requests[1].kind = RequestKind::kNewcomer;
  CountOvertaken(decision, &requests);
  EXPECT_EQ(requests[0].overtaken, 2u);
}

TEST(PolicySwaps, ItsRecordSaysThatItHasNoClaim) {
  Desk desk = OneIsAway();
  desk.Due(1);
  desk.Trough(3);
  const auto back = std::find_if(desk.records.begin(), desk.records.end(),
                                 [](const Record& r) { return r.event == EventKind::kBringBack; });
  ASSERT_NE(back, desk.records.end());
  EXPECT_EQ(back->job, 1u);
  EXPECT_EQ(back->claim, 0u);
  EXPECT_EQ(back->extents, (Extents{{0, 25}}));
  EXPECT_FALSE(back->profiled);
}

/// All that it has would be lost: it is told when it is back.
TEST(PolicySwaps, NobodyIsDeniedWhoIsInHostMemory) {
  Desk desk = OneIsAway();
  desk.Ok(desk.ledger.SetOutside(1, 10));  // its limit has room for its base, and for 10 more
  desk.Decide();
  EXPECT_TRUE(desk.Waits(1));
  EXPECT_TRUE(desk.denied.empty());
  desk.Due(1);
  desk.Trough(3);
  EXPECT_EQ(desk.returned, (std::vector<JobId>{1}));
  EXPECT_EQ(desk.denied, (std::vector<JobId>{1})) << "there it is told";
}

}  // namespace
}  // namespace sluice::scheduler
