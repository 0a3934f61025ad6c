// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/audit/replay.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/log_writer.h"

namespace sluice::scheduler::audit {
namespace {

size_t Complaints(Replay* replay, const LogWriter& log) {
  size_t complaints = 0;
  for (size_t i = 1; i < log.records.size(); ++i)
    complaints += replay->Apply(log.records[i]).size();
  return complaints;
}

TEST(Replay, FollowsAUnitThroughItsLife) {
  LogWriter log(10);
  log.Parked(1, 1, 8, {{0, 1}});
  log.Gate(1, 8, {{2, 4}});
  log.Release(1, {{4, 2}}, 5);
  Replay replay(10);
  EXPECT_EQ(Complaints(&replay, log), 0u);
  EXPECT_EQ(replay.jobs().at(1).held, 5u) << "released is still held";
  Record record;
  record.job = 1;
  record.event = EventKind::kFenced;
  record.release = 5;
  EXPECT_TRUE(replay.Apply(record).empty());
  EXPECT_EQ(replay.jobs().at(1).held, 5u) << "spare is still held";
  record.event = EventKind::kTrough;
  record.drained = true;
  EXPECT_TRUE(replay.Apply(record).empty());
  EXPECT_EQ(replay.jobs().at(1).held, 3u);
  EXPECT_EQ(replay.free(), 7u);
}

TEST(Replay, RemembersTheBasesOfTwoTroughs) {
  LogWriter log(10);
  log.Parked(1, 2, 8, {{0, 2}});
  log.Gate(1, 8, {{4, 1}});
  log.Release(1, {{1, 1}}, 1);
  log.Fenced(1, 1);
  log.Trough(1);
  Replay replay(10);
  EXPECT_EQ(Complaints(&replay, log), 0u);
  const std::vector<bool>& base = replay.jobs().at(1).base;
  EXPECT_TRUE(base[0] && base[1] && base[4]);
  EXPECT_FALSE(base[2]);
}

TEST(Replay, AMismatchedJobGivesNothingBack) {
  LogWriter log(10);
  log.Parked(1, 1, 9, {{0, 1}});
  log.Parked(2, 1, 9, {{1, 1}});
  log.Gate(1, 6, {{2, 5}});
  log.Gate(2, 6);
  Replay replay(10);
  EXPECT_EQ(Complaints(&replay, log), 0u);
  EXPECT_TRUE(replay.Safe(false));
  Record record;
  record.job = 1;
  record.event = EventKind::kMismatch;
  EXPECT_TRUE(replay.Apply(record).empty());
  EXPECT_FALSE(replay.Safe(true));
  EXPECT_EQ(replay.PastGate(), 2u);
}

TEST(Replay, CountsOnNothingThatIsWaived) {
  LogWriter log(10);
  log.Parked(1, 1, 8, {{0, 1}});
  log.Parked(2, 1, 8, {{1, 1}});
  log.Gate(1, 7, {{2, 3}});
  log.Gate(2, 7, {{7, 3}});
  Replay replay(10);
  EXPECT_EQ(Complaints(&replay, log), 0u);
  EXPECT_FALSE(replay.Safe(true));
  Record record;
  record.job = 1;
  record.event = EventKind::kGrant;
  record.claim = 7;
  record.waives = 8;
  EXPECT_EQ(replay.Apply(record).size(), 1u) << "more than its claim";
  record.waives = 2;
  EXPECT_TRUE(replay.Apply(record).empty());
  EXPECT_TRUE(replay.Safe(true));
  record.waives = 0;
  EXPECT_TRUE(replay.Apply(record).empty());
  EXPECT_FALSE(replay.Safe(true)) << "it took back what it had waived";
}

TEST(Replay, WhatAGpuAtTheTroughHasNotPassedComesBack) {
  LogWriter log(10);
  log.Parked(1, 1, 8, {{0, 1}});
  log.Parked(2, 1, 8, {{1, 1}});
  log.Gate(1, 7, {{2, 6}});
  log.Release(1, {{2, 6}}, 1);
  Replay replay(10);
  EXPECT_EQ(Complaints(&replay, log), 0u);
  Record record;
  record.job = 1;
  record.event = EventKind::kTrough;
  EXPECT_TRUE(replay.Apply(record).empty());
  record = Record();
  record.job = 2;
  record.event = EventKind::kGate;
  record.claim = 8;
  record.profiled = record.returns = true;
  EXPECT_TRUE(replay.Apply(record).empty());
  EXPECT_TRUE(replay.Safe(false));
}

TEST(Replay, WhoWasToGiveBackKeepsNothingAtItsTrough) {
  LogWriter log(10);
  log.Parked(1, 1, 8, {{0, 1}});
  log.Gate(1, 7, {{2, 6}});
  log.Release(1, {{2, 5}}, 1);
  Replay replay(10);
  EXPECT_EQ(Complaints(&replay, log), 0u);
  Record record;
  record.job = 1;
  record.event = EventKind::kTrough;
  EXPECT_EQ(replay.Apply(record).size(), 1u) << "unit 7 is leased still";
}

TEST(Replay, ChecksAdmission) {
  LogWriter log(10);
  log.Admit(1, 4, 8);
  log.Admit(2, 2, 6);
  Replay replay(10);
  EXPECT_EQ(Complaints(&replay, log), 0u);
  EXPECT_TRUE(replay.AdmissionHolds());
  Record record;
  record.job = 2;
  record.event = EventKind::kLimit;
  record.request = 2;
  record.limit = 7;
  EXPECT_TRUE(replay.Apply(record).empty());
  EXPECT_FALSE(replay.AdmissionHolds());
}

}  // namespace
}  // namespace sluice::scheduler::audit
