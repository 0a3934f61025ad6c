// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The policy beside jobs that come back late or never: the dead whose children live on, and those
// without a profile that compute nothing.
#include <gtest/gtest.h>

#include "scheduler/audit/audit.h"
#include "scheduler/ledger/limits.h"
#include "scheduler/policy/policy.h"
#include "tests/unit/scheduler/policy_desk.h"

namespace sluice::scheduler {
namespace {

void ExpectSoundLog(const Desk& desk) {
  for (const auto& violation : Audit(desk.records).violations) ADD_FAILURE() << violation.text;
}

void Linger(Desk& desk, JobId job, Linger linger) {
  ASSERT_TRUE(desk.ledger.SetLinger(job, linger).ok());
  desk.Decide();
}

void Quiet(Desk& desk, JobId job, bool quiet) {
  ASSERT_TRUE(desk.ledger.SetQuiet(job, quiet).ok());
  desk.Write(quiet ? EventKind::kQuiet : EventKind::kBusy, job, [&](Record& record) {
    record.collective = quiet && desk.ledger.Find(job)->collective;
  });
  desk.Decide();
}

/// Job 1 with a base of 2 in a pool of 20; job 2 is dead and keeps 8 units so that 4 and 6 are
/// free.
Desk BesideTheDead() {
  Desk desk(20);
  desk.Parked(1, "a", 2, 16, {0, 2});
  desk.Parked(2, "b", 1, 16, {6, 4});
  desk.Parked(3, "c", 1, 16, {16, 4});
  desk.Die(2);
  desk.Die(3);
  return desk;
}

TEST(PolicyBesideTheDead, AGateOpensInPiecesOnceTheChildLivesOn) {
  Desk desk = BesideTheDead();
  desk.Gate0(1, 12);
  EXPECT_TRUE(desk.Waits(1)) << "their memory may come back at once";
  Linger(desk, 2, Linger::kAWhile);
  EXPECT_TRUE(desk.Waits(1)) << "that of the other one may";
  Linger(desk, 3, Linger::kAWhile);
  ASSERT_TRUE(desk.PastGate(1));
  EXPECT_TRUE(desk.last.sums_only);
  desk.Lease(1, 10);
  EXPECT_EQ(desk.Held(1), (Extents{{0, 6}, {10, 6}})) << "all that is free, and nothing else";
}

TEST(PolicyBesideTheDead, NoGateOpensOnWhatTheyKeep) {
  Desk desk = BesideTheDead();
  desk.Gate0(1, 13);
  Linger(desk, 2, Linger::kAWhile);
  Linger(desk, 3, Linger::kAWhile);
  EXPECT_TRUE(desk.Waits(1));
  EXPECT_EQ(LargestClaim(desk.ledger, 1), 20u);
  Linger(desk, 2, Linger::kForGood);
  Linger(desk, 3, Linger::kForGood);
  EXPECT_EQ(LargestClaim(desk.ledger, 1), 12u) << "whoever can live with less asks for that";
  EXPECT_EQ(desk.denied, (std::vector<JobId>{1})) << "who cannot is told so";
  EXPECT_NE(desk.last.reason.find("a process that it started lives on"), std::string::npos)
      << desk.last.reason;
}

// It was let past its gate when job 1 would give back what it then took into its grave.
TEST(PolicyBesideTheDead, WhatWasPromisedIsWaitedForUntilNobodyBelievesInIt) {
  Desk desk(100);
  desk.Parked(1, "a", 10, 80, {0, 10});
  desk.Parked(2, "b", 10, 80, {10, 10});
  desk.Gate0(1, 60);
  desk.Lease(1, 50);
  desk.Gate0(2, 60);
  desk.Die(1);
  desk.Lease(2, 40);
  Linger(desk, 1, Linger::kAWhile);
  EXPECT_TRUE(desk.Waits(2));
  EXPECT_TRUE(desk.denied.empty());
  Linger(desk, 1, Linger::kForGood);
  EXPECT_EQ(desk.denied, (std::vector<JobId>{2}));
  EXPECT_EQ(desk.last.code, DenyCode::kExhausted);
  desk.Lease(2, 30);
  EXPECT_EQ(desk.ledger.held(2), 40u) << "all that is free";
}

/// Job 1 with a profile at its gate, job 2 without one, which may take all that job 1 does not
/// keep.
Desk BesideTheIdle(Config config = {}) {
  Desk desk(100, config);
  desk.Parked(1, "a", 10, 60, {0, 10});
  desk.Admit(2, "b", 0, 90);
  desk.Newcomer(2);
  desk.Lease(2, 20);
  desk.Gate0(1, 60);
  return desk;
}

/// Two have left their curves and wait for what never comes back; a third is inside its claim and
/// waits for them. A fourth could do one iteration after the other beside them.
TEST(PolicyBesideTheStuck, OthersGoOnForAWhileAndThenTheDeviatorIsTold) {
  Desk desk(40);
  for (JobId id = 1; id <= 4; ++id) desk.Parked(id, "j", 1, 37, {id - 1, 1});
  desk.config.lanes = 4;
  for (const auto& [id, claim] : {std::pair<JobId, Units>{1, 16}, {2, 16}, {3, 8}}) {
    desk.Gate0(id, claim, claim - 2);
    ASSERT_TRUE(desk.PastGate(id));
    if (id < 3) desk.GateWaiving(id, 0, 2);
  }
  desk.Lease(1, 10);
  desk.Lease(2, 10);
  desk.Gate0(4, 2, 1);
  desk.Lease(3, 4);
  int iterations = 0;
  for (; desk.PastGate(4) && iterations < 20; ++iterations) desk.Again(4, 2, 1);
  ASSERT_EQ(desk.denied.size(), 1u);
  EXPECT_LE(desk.denied[0], 2u) << "one of those who need more than they said";
  EXPECT_EQ(iterations, 4) << "four times beside those who wait";
  ExpectSoundLog(desk);
}

/// What a job may claim that nobody knows lies in no one run beside two bases. Jobs that park
/// before their GPUs are done with all they gave back have nothing more to give by going on.
TEST(PolicyBesideTheUndrained, ANewcomerIsNotPassedForEver) {
  Desk desk(20);
  desk.Parked(1, "a", 2, 16, {0, 2});
  desk.Parked(2, "b", 2, 16, {10, 2});
  desk.Admit(3, "c", 0, 16);
  const auto park = [&desk](JobId id) { desk.Ok(desk.ledger.ReachTrough(id, false)); };
  desk.Gate0(1, 6);
  desk.Newcomer(3);
  int iterations = 0;
  for (; desk.Waits(3) && iterations < 20; ++iterations) {
    const JobId id = desk.PastGate(1) ? 1 : 2;
    park(id);
    desk.Gate0(id, 6);
  }
  EXPECT_TRUE(desk.PastGate(3));
  EXPECT_LE(iterations, 6);
}

TEST(PolicyBesideTheIdle, WhoHasAProfileAndFitsGoesOn) {
  for (const char* policy : {"flow", "temporal"}) {
    Config config;
    config.policy = policy;
    Desk desk = BesideTheIdle(config);
    EXPECT_TRUE(desk.Waits(1));
    Quiet(desk, 2, true);
    EXPECT_TRUE(desk.PastGate(1)) << policy;
    desk.Lease(1, 50);
    desk.Lease(2, 70);
    EXPECT_TRUE(desk.Waits(2)) << "20 are free";
    desk.Trough(1);
    EXPECT_EQ(desk.ledger.held(2), 90u) << "its claim was never in danger";
    EXPECT_TRUE(desk.denied.empty());
  }
}

TEST(PolicyBesideTheIdle, WhatItAsksForComesFirst) {
  Desk desk(100);
  desk.Parked(1, "a", 10, 60, {0, 10});
  desk.Parked(3, "c", 10, 60, {10, 10});
  desk.Admit(2, "b", 0, 80);
  desk.Gate0(3, 50);
  desk.Lease(3, 40);
  desk.Newcomer(2);
  desk.Lease(2, 60);
  ASSERT_TRUE(desk.Waits(2)) << "40 are free";
  Quiet(desk, 2, true);
  desk.Gate0(1, 20);
  EXPECT_TRUE(desk.Waits(1)) << "it would take what job 2 waits for";
  desk.Trough(3);
  EXPECT_FALSE(desk.Waits(2));
}

TEST(PolicyBesideTheIdle, WhoDoesNotFitWaits) {
  Desk desk = BesideTheIdle();
  desk.Lease(2, 30);
  ASSERT_EQ(desk.ledger.held(2), 50u);
  Quiet(desk, 2, true);
  EXPECT_TRUE(desk.Waits(1)) << "50 beside its base, and 40 are free";
  EXPECT_TRUE(desk.denied.empty());
}

/// Job 1 is past its gate and holds 40 of a claim of 60 in a pool of 100; bases are 10.
Desk InItsIteration(const std::string& policy) {
  Config config;
  config.policy = policy;
  config.lanes = 1;
  Desk desk(100, config);
  desk.Parked(1, "a", 10, 60, {0, 10});
  desk.Parked(2, "b", 10, 70, {10, 10});
  desk.Gate0(1, 60, 30);
  EXPECT_TRUE(desk.PastGate(1));
  return desk;
}

TEST(PolicyBesideTheStalled, ItTakesUpNoLane) {
  for (const char* policy : {"flow", "temporal", "nodegroup", "timeshift"}) {
    Desk desk = InItsIteration(policy);
    desk.Gate0(2, 30);
    EXPECT_TRUE(desk.Waits(2)) << policy;
    Quiet(desk, 1, true);
    EXPECT_TRUE(desk.PastGate(2)) << policy;
    // It goes on, and what it was promised is there.
    desk.Lease(2, 20);
    Quiet(desk, 1, false);
    desk.Lease(1, 20);
    EXPECT_FALSE(desk.Waits(1)) << policy;
    EXPECT_EQ(desk.ledger.held(1), 60u);
    ExpectSoundLog(desk);
  }
}

TEST(PolicyBesideTheStalled, NobodyBeginsOnWhatItHolds) {
  Desk desk = InItsIteration("flow");
  desk.config.lanes = 2;
  Quiet(desk, 1, true);
  desk.Gate0(2, 61);
  EXPECT_TRUE(desk.Waits(2)) << "50 are free, and it would have to give back";
  EXPECT_NE(WhyWaiting(desk.ledger, desk.waiting.front(), desk.config)
                .find("while job 1 'a' computes nothing in the middle of its iteration"),
            std::string::npos);
  Quiet(desk, 1, false);
  EXPECT_TRUE(desk.PastGate(2)) << "it goes on, so it will";
  ExpectSoundLog(desk);
}

TEST(PolicyBesideTheStalled, ItIsForgottenAtItsTrough) {
  Desk desk = InItsIteration("flow");
  Quiet(desk, 1, true);
  desk.Again(1, 60, 30);
  ASSERT_TRUE(desk.PastGate(1));
  EXPECT_FALSE(desk.ledger.Find(1)->quiet);
}

/// It may be the newcomer that job 1 waits for, from another GPU.
TEST(PolicyBesideTheIdle, ANewcomerBeginsBesideCollectivesWhereThereIsRoomForAll) {
  for (const bool collective : {true, false}) {
    for (const Units limit : {Units{50}, Units{51}}) {
      Desk desk(100);
      desk.Admit(1, "a", 0, 50);
      desk.Admit(2, "b", 0, limit);
      desk.Newcomer(1);
      if (collective) desk.Ok(desk.ledger.SetCollective(1));
      desk.Newcomer(2);
      EXPECT_TRUE(desk.Waits(2));
      Quiet(desk, 1, true);
      EXPECT_EQ(desk.Waits(2), limit == 51 || !collective) << limit;
      ExpectSoundLog(desk);
    }
  }
}

TEST(PolicyBesideTheIdle, OnceItComputesTheOthersStandStill) {
  Desk desk = BesideTheIdle();
  Quiet(desk, 2, true);
  ASSERT_TRUE(desk.PastGate(1));
  Quiet(desk, 2, false);
  desk.Trough(1);
  desk.Gate0(1, 60);
  EXPECT_TRUE(desk.Waits(1));
  ExpectSoundLog(desk);
}

TEST(PolicyBesideTheIdle, TheAuditHoldsThatAgainstTheLog) {
  Desk desk = BesideTheIdle();
  Quiet(desk, 2, true);
  ASSERT_TRUE(desk.PastGate(1));
  std::vector<Record> told = desk.records;
  std::erase_if(told, [](const Record& record) { return record.event == EventKind::kQuiet; });
  const AuditReport report = Audit(told);
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_EQ(report.violations[0].rule, "I7");
}

/// Job 1 with collective operations, at its trough.
Desk WithCollectives(const std::string& policy) {
  Config config;
  config.policy = policy;
  Desk desk(100, config);
  desk.Parked(1, "a", 10, 45, {0, 10});
  desk.Ok(desk.ledger.SetCollective(1));
  return desk;
}

/// Pool 100: limits of 45 and 45 fit together, the turns of `temporal` do not count then.
TEST(PolicyOfCollectives, TakeNoTurnsWhereThereIsRoomForAll) {
  for (const Units limit : {Units{45}, Units{60}}) {
    Desk desk = WithCollectives("temporal");
    desk.Parked(2, "b", 10, limit, {10, 10});
    desk.Gate0(2, 40);
    ASSERT_TRUE(desk.PastGate(2));
    desk.Gate0(1, 40);
    EXPECT_EQ(desk.PastGate(1), limit == 45) << limit;
    EXPECT_TRUE(desk.denied.empty());
    ExpectSoundLog(desk);
  }
}

TEST(PolicyOfCollectives, TheAuditHoldsThatAgainstTheLog) {
  Desk desk = WithCollectives("flow");
  desk.Admit(2, "b", 10, 45);
  desk.Newcomer(2);
  desk.Gate0(1, 40);
  ASSERT_TRUE(desk.PastGate(1)) << "while job 2 is measured";
  ExpectSoundLog(desk);
  std::vector<Record> told = desk.records;
  for (Record& record : told) record.collective = false;
  AuditReport report = Audit(told);
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_EQ(report.violations[0].rule, "I7");
  told = desk.records;
  for (Record& record : told) {
    if (record.event == EventKind::kAdmit && record.job == 2) record.limit = 60;
    if (record.event == EventKind::kGate && record.job == 2) record.claim = 60;
  }
  report = Audit(told);
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_EQ(report.violations[0].rule, "I7");
}

/// Two that take no turns, one of them always inside.
class TwoOfThem {
 public:
  explicit TwoOfThem(const std::string& policy) : desk(WithCollectives(policy)) {
    desk.Parked(2, "b", 10, 25, {10, 10});
    desk.Ok(desk.ledger.SetCollective(2));
    desk.Gate0(1, 40);
  }
  void Rounds(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      for (const JobId job : {JobId{2}, JobId{1}}) {
        if (desk.PastGate(job)) desk.Trough(job);
        if (!desk.Waits(job)) desk.Gate0(job, job == 1 ? 40 : 20);
      }
    }
  }
  Desk desk;
};

TEST(PolicyOfCollectives, KeepNobodyFromHisTurn) {
  for (const char* policy : {"temporal", "flow", "nodegroup"}) {
    for (const Units limit : {Units{30}, Units{60}}) {
      TwoOfThem two(policy);
      two.desk.config.lanes = 1;
      two.desk.Admit(3, "c", 5, limit);
      two.desk.Newcomer(3);
      two.Rounds(8);
      EXPECT_TRUE(two.desk.PastGate(3)) << policy << ", " << limit;
      ExpectSoundLog(two.desk);
    }
    TwoOfThem two(policy);
    two.desk.config.lanes = 1;
    two.desk.Parked(3, "c", 5, 30, {20, 5});
    two.desk.Gate0(3, 30);
    two.Rounds(1);
    EXPECT_TRUE(two.desk.PastGate(3)) << policy << ", at its gate";
    ExpectSoundLog(two.desk);
  }
}

/// A job in its iteration waits for a run that is only there when several are at their troughs.
TEST(PolicyOfCollectives, DoNotPassAWaitingJobForEver) {
  Desk desk(100);
  desk.Parked(1, "a", 10, 20, {0, 10});
  desk.Parked(2, "b", 10, 70, {40, 10});
  desk.Parked(3, "c", 5, 10, {95, 5});
  desk.Ok(desk.ledger.SetCollective(1));
  desk.Gate0(2, 20);
  desk.Gate0(3, 10);
  desk.Lease(2, 46, 46);
  ASSERT_TRUE(desk.Waits(2)) << "75 are free, 45 and 30";
  Request gate{.job = 1, .kind = RequestKind::kGate0, .claim = 20, .ticket = 9};
  for (const uint32_t overtaken : {0u, desk.config.max_overtakes}) {
    Request waits = desk.waiting.front();
    waits.overtaken = overtaken;
    EXPECT_EQ(Next(desk.ledger, {waits, gate}, desk.config).has_value(), overtaken == 0);
  }
}

}  // namespace
}  // namespace sluice::scheduler
