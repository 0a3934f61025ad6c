// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/figures/figures.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/log_writer.h"

namespace sluice::figures {
namespace {

using scheduler::EventKind;
using scheduler::LogWriter;
using scheduler::Record;

uint64_t Count(const Histogram& histogram) {
  uint64_t count = 0;
  for (const uint64_t each : histogram.counts()) count += each;
  return count;
}

class FiguresTest : public ::testing::Test {
 protected:
  Record At(EventKind kind, uint64_t t_ns, JobId job = 1) {
    Record record;
    record.event = kind;
    record.job = job;
    record.t_ns = t_ns;
    return record;
  }
  void Apply(const Record& record) { figures_.Apply(record); }

  Figures figures_{32};
};

TEST_F(FiguresTest, AWaitIsCountedFromItsFirstReasonToItsGate) {
  Record wait = At(EventKind::kWait, 1'000);
  wait.reason = "turn";
  Apply(wait);
  wait.t_ns = 5'000;
  wait.reason = "memory";
  Apply(wait);
  Apply(At(EventKind::kGate, 2'001'000));
  const JobFigures& job = figures_.Of(1);
  EXPECT_EQ(job.waits.at("turn"), 1u);
  EXPECT_EQ(job.waits.at("memory"), 1u);
  EXPECT_EQ(job.gate_wait.sum_ns(), 2'000'000u);
  EXPECT_EQ(job.waits_since_ns, 0u);
  Apply(At(EventKind::kGate, 3'000'000));
  EXPECT_EQ(Count(figures_.Of(1).gate_wait), 2u) << "one that opens at once counts, too";
  EXPECT_EQ(figures_.Of(1).gate_wait.sum_ns(), 2'000'000u);
}

TEST_F(FiguresTest, GatesAndLeasesAreApart) {
  Record grant = At(EventKind::kGrant, 10);
  grant.gate = 3;
  Apply(grant);
  grant.gate = 0;
  Apply(grant);
  Apply(grant);
  EXPECT_EQ(Count(figures_.Of(1).gate_wait), 1u);
  EXPECT_EQ(Count(figures_.Of(1).lease_wait), 2u);
}

TEST_F(FiguresTest, ALargerClaimInsideAnIterationIsARaise) {
  Record gate = At(EventKind::kGate, 1);
  gate.claim = 10;
  Apply(gate);
  Record grant = At(EventKind::kGrant, 2);
  grant.claim = 10;
  Apply(grant);
  EXPECT_EQ(figures_.Of(1).claim_raises, 0u);
  grant.claim = 12;
  Apply(grant);
  EXPECT_EQ(figures_.Of(1).claim_raises, 1u);
  gate.claim = 8;
  Apply(gate);
  Record claim = At(EventKind::kClaim, 3);
  claim.claim = 9;
  Apply(claim);
  EXPECT_EQ(figures_.Of(1).claim_raises, 2u) << "the next iteration claims anew";
}

TEST_F(FiguresTest, WhatHappenedIsKeptWithItsSentence) {
  Record deny = At(EventKind::kDeny, 7);
  deny.reason = "exhausted";
  deny.text = "gave up after 30 s";
  Apply(deny);
  Record left = At(EventKind::kMismatch, 8);
  left.reason = "cycle";
  left.text = "left its iteration";
  Apply(left);
  figures_.Told(1, 9, "", "limit is now 3 GiB");
  const JobFigures& job = figures_.Of(1);
  EXPECT_EQ(job.refusals.at("exhausted"), 1u);
  EXPECT_EQ(job.deviations, 1u);
  ASSERT_EQ(job.events.size(), 3u);
  EXPECT_EQ(job.events[0].kind, "refused");
  EXPECT_EQ(job.events[0].reason, "exhausted");
  EXPECT_EQ(job.events[1].kind, "deviated");
  EXPECT_EQ(job.events[1].reason, "cycle");
  EXPECT_EQ(job.deviations_by.at("cycle"), 1u);
  EXPECT_EQ(job.events[2].kind, "told");
}

TEST_F(FiguresTest, ANoticeOfAWaitSaysWhatItWaitsForThen) {
  Record wait = At(EventKind::kWait, 1);
  wait.reason = "place";
  Apply(wait);
  figures_.Told(1, 1'000'000'001, "memory", "waiting for 4 MiB");
  EXPECT_EQ(figures_.Of(1).events.at(0).kind, "waited");
  EXPECT_EQ(figures_.Of(1).events.at(0).reason, "memory");
}

TEST_F(FiguresTest, AWaitInVainIsAWait) {
  Apply(At(EventKind::kWait, 1'000));
  Record deny = At(EventKind::kDeny, 31'000);
  deny.reason = "refused";
  Apply(deny);
  EXPECT_EQ(figures_.Of(1).gate_wait.sum_ns(), 30'000u) << "to begin";
  EXPECT_EQ(figures_.Of(1).waits_since_ns, 0u);
  Record gate = At(EventKind::kGate, 40'000);
  gate.claim = 5;
  Apply(gate);
  Apply(At(EventKind::kWait, 50'000));
  deny.t_ns = 57'000;
  deny.reason = "exhausted";
  Apply(deny);
  EXPECT_EQ(figures_.Of(1).lease_wait.sum_ns(), 7'000u);
  Apply(At(EventKind::kWait, 60'000));
  deny.t_ns = 61'000;
  deny.gate = 3;
  deny.reason = "gate";
  Apply(deny);
  EXPECT_EQ(figures_.Of(1).gate_wait.sum_ns(), 31'000u);
  deny.t_ns = 99'000;
  Apply(deny);
  EXPECT_EQ(Count(figures_.Of(1).gate_wait), 3u) << "at once is no wait";
}

TEST_F(FiguresTest, WhoIsTurnedAwayAtTheDoorDoesNotEndTheWaitInside) {
  Record gate = At(EventKind::kGate, 1);
  gate.claim = 5;
  Apply(gate);
  Apply(At(EventKind::kWait, 1'000));
  Record deny = At(EventKind::kDeny, 2'000);
  for (const char* reason : {"second-process", "refused"}) {
    deny.reason = reason;
    Apply(deny);
    EXPECT_EQ(figures_.Of(1).refusals.at(reason), 1u);
    EXPECT_EQ(figures_.Of(1).waits_since_ns, 1'000u) << reason;
  }
}

TEST_F(FiguresTest, AGrantAfterATakeoverIsNoRaiseOfTheClaim) {
  Record restored = At(EventKind::kRestore, 1);
  restored.claim = 10;
  Apply(restored);
  Record grant = At(EventKind::kGrant, 2);
  grant.claim = 10;
  Apply(grant);
  EXPECT_EQ(figures_.Of(1).claim_raises, 0u);
  grant.claim = 11;
  Apply(grant);
  EXPECT_EQ(figures_.Of(1).claim_raises, 1u);
}

TEST_F(FiguresTest, AMoveByTurnsIsASwapAndNoEviction) {
  Record gate = At(EventKind::kGate, 1);
  gate.claim = 9;
  Apply(gate);
  Apply(At(EventKind::kTrough, 2));
  Record evict = At(EventKind::kEvict, 3);
  evict.reason = "turn";
  evict.text = "moved to host memory, 2 GiB until its turn";
  Record back = At(EventKind::kBringBack, 4);
  for (int i = 0; i < 2; ++i) {
    Apply(evict);
    Apply(back);
  }
  const JobFigures& job = figures_.Of(1);
  EXPECT_EQ(job.swaps, 2u);
  EXPECT_EQ(job.evictions, 0u);
  EXPECT_TRUE(job.evictions_by.empty());
  EXPECT_EQ(job.returns, 0u);
  EXPECT_TRUE(job.events.empty()) << "nothing that its user may ask about";
  EXPECT_EQ(job.claim, 9u) << "of its last iteration, as at any trough";

  evict.reason = "memory";
  evict.text = "moved to host memory, so that others go on";
  Apply(evict);
  back.claim = 12;
  Apply(back);
  EXPECT_EQ(job.swaps, 2u);
  EXPECT_EQ(job.evictions, 1u);
  EXPECT_EQ(job.evictions_by.at("memory"), 1u);
  EXPECT_EQ(job.returns, 1u);
  EXPECT_EQ(job.claim, 12u);
  ASSERT_EQ(job.events.size(), 2u);
  EXPECT_EQ(job.events[0].kind, "evicted");
  EXPECT_EQ(job.events[1].kind, "returned");
}

/// It waits for its gate all the time, wherever its base is.
TEST_F(FiguresTest, AWaitGoesOnWhileItsBaseIsAway) {
  Apply(At(EventKind::kWait, 1'000));
  Record evict = At(EventKind::kEvict, 2'000);
  evict.reason = "turn";
  Apply(evict);
  Record wait = At(EventKind::kWait, 3'000);
  wait.reason = "host-memory";
  Apply(wait);
  Apply(At(EventKind::kBringBack, 8'000));
  EXPECT_EQ(figures_.Of(1).waits_since_ns, 1'000u);
  EXPECT_EQ(figures_.Of(1).waits.at("host-memory"), 1u);
  Apply(At(EventKind::kGate, 10'000));
  EXPECT_EQ(figures_.Of(1).gate_wait.sum_ns(), 9'000u);
}

TEST_F(FiguresTest, AJobThatIsToldMuchKeepsTheLatest) {
  for (uint64_t i = 0; i < 100; ++i) figures_.Told(1, i, "", "line " + std::to_string(i));
  EXPECT_EQ(figures_.Of(1).events.size(), Figures::kMostEvents);
  EXPECT_EQ(figures_.Of(1).events.back().text, "line 99");
}

TEST_F(FiguresTest, TimesOfTheNode) {
  Record release = At(EventKind::kRelease, 1'000);
  release.release = 5;
  Apply(release);
  Record fenced = At(EventKind::kFenced, 51'000);
  fenced.release = 5;
  Apply(fenced);
  EXPECT_EQ(figures_.handover().sum_ns(), 50'000u);
  Apply(At(EventKind::kDeath, 100));
  Apply(At(EventKind::kFree, 900));
  EXPECT_EQ(figures_.reclaim().sum_ns(), 800u);
  figures_.Decided(4, 4'000);
  EXPECT_EQ(Count(figures_.decision()), 4u);
  EXPECT_EQ(figures_.decision().sum_ns(), 4'000u);
  Apply(At(EventKind::kPolicy, 1, scheduler::kNoJob));
  EXPECT_EQ(figures_.policy_switches(), 1u);
}

TEST_F(FiguresTest, AJobThatEndedIsThereForAWhile) {
  Apply(At(EventKind::kTrough, 1));
  figures_.End(1, "ns/pod/c", 1'000);
  EXPECT_EQ(figures_.Of(1).iterations, 0u);
  ASSERT_EQ(figures_.ended().size(), 1u);
  EXPECT_EQ(figures_.ended()[0].name, "ns/pod/c");
  EXPECT_EQ(figures_.ended()[0].figures.iterations, 1u);
  figures_.Prune(1'000 + Figures::kEndedForNs);
  EXPECT_EQ(figures_.ended().size(), 1u);
  figures_.Prune(1'001 + Figures::kEndedForNs);
  EXPECT_EQ(figures_.ended().size(), 0u);
}

TEST_F(FiguresTest, ManyShortJobsDoNotAddUp) {
  for (JobId job = 1; job <= 1'000; ++job) {
    Apply(At(EventKind::kTrough, job, job));
    figures_.End(job, "short", job);
  }
  EXPECT_EQ(figures_.ended().size(), Figures::kMostEnded);
}

}  // namespace
}  // namespace sluice::figures
