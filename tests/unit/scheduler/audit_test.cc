// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/audit/audit.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/log_writer.h"

namespace sluice::scheduler {
namespace {

LogWriter TwoJobs() {
  LogWriter log(20);
  log.Parked(1, 2, 16, {{0, 2}});
  log.Parked(2, 2, 16, {{2, 2}});
  return log;
}

/// The log breaks `rule` in its last record and nothing before.
void ExpectCaught(const LogWriter& log, const std::string& rule, const std::string& words) {
  const AuditReport report = Audit(log.records);
  EXPECT_FALSE(report.ok());
  ASSERT_FALSE(report.violations.empty());
  EXPECT_EQ(report.violations[0].rule, rule) << report.violations[0].text;
  EXPECT_EQ(report.violations[0].record, log.records.size() - 1) << report.violations[0].text;
  EXPECT_NE(report.violations[0].text.find(words), std::string::npos) << report.violations[0].text;
}

TEST(Audit, AcceptsAGoodLogAndKeepsTheScore) {
  LogWriter log = TwoJobs();
  log.Gate(1, 16, {{4, 14}});
  log.Gate(2, 8);
  log.Release(1, {{10, 8}}, 1);
  log.Fenced(1, 1);
  log.Reclaim(1, {{10, 8}});
  log.Grant(2, {{14, 4}});  // four units flow from job 1 to job 2 inside the iterations of both
  log.Release(1, {{4, 6}}, 2);
  log.Fenced(1, 2);
  log.Trough(1);
  log.Release(2, {{14, 4}}, 1);
  log.Fenced(2, 1);
  log.Trough(2);
  const AuditReport report = Audit(log.records);
  for (const AuditViolation& v : report.violations)
    ADD_FAILURE() << v.rule << " " << v.text << " at " << v.record;
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.lent_bytes_within_iterations, 4u * 1024);
  EXPECT_EQ(report.jobs.at(1).lent_units, 4u);
  EXPECT_EQ(report.jobs.at(1).peak_units, 16u);
  EXPECT_EQ(report.jobs.at(1).iterations, 2u);
  EXPECT_EQ(report.broken_promises, 0u);
  EXPECT_EQ(report.overbase_troughs, 0u);
  EXPECT_EQ(report.pool_units, 20u);
  EXPECT_EQ(report.policy, "flow");
  EXPECT_EQ(report.series.back().free, 16u);
}

TEST(Audit, WhatIsReleasedAtTheTroughIsNotLentWithinTheIteration) {
  LogWriter log = TwoJobs();
  log.Gate(1, 16, {{4, 14}});
  log.Gate(2, 8);
  log.Release(1, {{4, 14}}, 1);
  log.Fenced(1, 1);
  log.Trough(1);
  log.Grant(2, {{12, 6}});
  const AuditReport report = Audit(log.records);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.lent_bytes_within_iterations, 0u);
}

TEST(Audit, WhatALeavingJobGaveBackIsNotLent) {
  LogWriter log = TwoJobs();
  log.Gate(1, 16, {{4, 14}});
  log.Gate(2, 8);
  log.Release(1, {{0, 2}, {4, 14}}, 1);
  log.Fenced(1, 1);
  log.Reclaim(1, {{0, 2}, {4, 14}});
  log.Leave(1);
  log.Grant(2, {{12, 6}});
  const AuditReport report = Audit(log.records);
  for (const AuditViolation& v : report.violations) ADD_FAILURE() << v.rule << " " << v.text;
  EXPECT_EQ(report.lent_bytes_within_iterations, 0u);
}

TEST(Audit, ALeavingJobGivesBackItsSpareUnitsInTheSameStep) {
  LogWriter log = TwoJobs();
  log.Gate(1, 16, {{4, 14}});
  log.Release(1, {{0, 2}, {4, 14}}, 1);
  log.Leave(1);
  log.records.back().extents = {{0, 2}, {4, 14}};
  EXPECT_FALSE(Audit(log.records).ok()) << "the GPU may still use them";
  log.records.pop_back();
  log.Fenced(1, 1);
  log.Leave(1);
  EXPECT_FALSE(Audit(log.records).ok()) << "it leaves and holds memory";
  log.records.back().extents = {{0, 2}, {4, 14}};
  EXPECT_TRUE(Audit(log.records).ok());
}

TEST(Audit, WhatComesBackToItsLenderIsNotLent) {
  LogWriter log = TwoJobs();
  log.Gate(1, 16, {{4, 14}});
  log.Release(1, {{10, 8}}, 1);
  log.Fenced(1, 1);
  log.Reclaim(1, {{10, 8}});
  log.Grant(1, {{10, 8}});
  EXPECT_EQ(Audit(log.records).lent_bytes_within_iterations, 0u);
}

TEST(Audit, MeanOverPeakWeighsTime) {
  LogWriter log(20);
  log.Parked(1, 2, 16, {{0, 2}});
  log.Gate(1, 16, {{4, 14}});  // 16 units for 10 ns
  log.Release(1, {{4, 14}}, 1);
  log.records.back().t_ns += 20;  // and for 20 more
  log.Fenced(1, 1);
  log.records.back().t_ns += 20;
  log.Reclaim(1, {{4, 14}});
  log.records.back().t_ns += 20;
  log.Trough(1);
  log.records.back().t_ns += 40;  // 2 units for 30 ns
  const AuditReport report = Audit(log.records);
  ASSERT_TRUE(report.ok());
  EXPECT_NEAR(report.jobs.at(1).mean_over_peak, (16.0 * 50 + 2 * 30) / 80 / 16, 1e-9);
}

TEST(Audit, CatchesAUnitWithTwoHolders) {
  LogWriter log = TwoJobs();
  log.Gate(1, 8, {{4, 4}});
  log.Gate(2, 8, {{7, 1}});
  ExpectCaught(log, "I1", "while job 1 holds it");
  EXPECT_GT(Audit(log.records).over_budget_moments, 0u);
}

TEST(Audit, CatchesUnfencedMemoryThatIsLent) {
  LogWriter log = TwoJobs();
  log.Gate(1, 8, {{4, 4}});
  log.Gate(2, 8);
  log.Release(1, {{6, 2}}, 1);
  log.Grant(2, {{6, 2}});
  ExpectCaught(log, "I1", "while job 1 holds it");
}

TEST(Audit, CatchesQuarantinedMemoryThatIsLent) {
  LogWriter log = TwoJobs();
  log.Gate(1, 8, {{4, 4}});
  log.Gate(2, 8);
  log.Add(EventKind::kDeath, 1);
  log.Grant(2, {{4, 2}});
  ExpectCaught(log, "I1", "while job 1 holds it");
}

TEST(Audit, CatchesAReclaimBeforeTheFence) {
  LogWriter log = TwoJobs();
  log.Gate(1, 8, {{4, 4}});
  log.Release(1, {{6, 2}}, 1);
  log.Reclaim(1, {{6, 2}});
  ExpectCaught(log, "I1", "GPU work is not done");
}

TEST(Audit, CatchesAGrantThatLeavesNoOrder) {
  LogWriter log = TwoJobs();
  log.Gate(1, 14, {{4, 6}});
  log.Gate(2, 14);
  log.Grant(2, {{12, 8}});
  ExpectCaught(log, "I3", "no order");
}

TEST(Audit, CatchesAGateThatLeavesNoOrder) {
  LogWriter log = TwoJobs();
  log.Gate(1, 14, {{4, 6}});
  log.Gate(2, 14, {{12, 8}});
  ExpectCaught(log, "I4", "opens a gate");
}

TEST(Audit, CatchesAnOrderThatExistsInNumbersOnly) {
  LogWriter log = TwoJobs();
  log.Gate(1, 16, {{4, 2}});
  log.Gate(2, 12);
  log.Grant(2, {{12, 1}});  // 13 are left, in runs of 6 and 7; they need 12 and 9 in one run
  ExpectCaught(log, "I3", "no order");
}

TEST(Audit, AcceptsPieces) {
  LogWriter log = TwoJobs();
  log.Gate(1, 16, {{4, 2}}).piece = 2;
  log.Gate(2, 12).piece = 2;
  log.Grant(2, {{12, 1}});
  EXPECT_TRUE(Audit(log.records).ok());
}

TEST(Audit, CatchesARaiseThatLeavesNoOrder) {
  LogWriter log = TwoJobs();
  log.Gate(1, 10, {{4, 6}});
  log.Gate(2, 14, {{14, 6}});
  log.Grant(1, {{10, 1}}).claim = 16;
  ExpectCaught(log, "I3", "no order");
}

TEST(Audit, CatchesMoreThanTheClaimAndMoreThanTheLimit) {
  LogWriter log = TwoJobs();
  log.Gate(1, 8, {{4, 4}});
  log.Grant(1, {{8, 4}});
  ExpectCaught(log, "I1", "more than its claim");
  EXPECT_EQ(Audit(log.records).over_limit_moments, 1u);
}

TEST(Audit, CatchesAnAdmissionThatDoesNotFit) {
  LogWriter log = TwoJobs();
  log.Admit(3, 3, 4);
  ExpectCaught(log, "I0", "does not fit");
}

TEST(Audit, CountsAPromiseThatAJobBreaks) {
  LogWriter log = TwoJobs();
  log.Gate(1, 16, {{4, 10}});
  log.Gate(2, 14);
  log.Trough(1);  // it keeps what it was to give back
  AuditReport report = Audit(log.records);
  EXPECT_TRUE(report.ok()) << "no decision was wrong";
  EXPECT_EQ(report.broken_promises, 1u);
  EXPECT_EQ(report.overbase_troughs, 1u);
  log.Grant(2, {{14, 2}});
  EXPECT_TRUE(Audit(log.records).ok()) << "and what is left to do makes nothing worse";
}

TEST(Audit, CatchesAClaimThatFalls) {
  LogWriter log = TwoJobs();
  log.Gate(1, 8);
  log.Add(EventKind::kClaim, 1).claim = 9;
  EXPECT_TRUE(Audit(log.records).ok());
  log.Add(EventKind::kClaim, 1).claim = 8;
  ExpectCaught(log, "I5", "falls inside its iteration");
}

TEST(Audit, CountsATroughWithMoreThanTheRequest) {
  LogWriter log(20);
  log.Parked(1, 2, 16, {{0, 5}});
  EXPECT_EQ(Audit(log.records).overbase_troughs, 1u) << "also when the log ends there";
  log.Add(EventKind::kBase, 1).units = 5;
  Record& limit = log.Add(EventKind::kLimit, 1);
  limit.limit = 16;
  limit.request = 5;
  EXPECT_EQ(Audit(log.records).overbase_troughs, 0u) << "the request follows what was measured";
  for (int i = 0; i < 3; ++i) {
    log.Gate(1, 8, {{6, 1}});
    log.Add(EventKind::kWait, 1);
    log.Trough(1);
    log.Add(EventKind::kWait, 1);
    log.Add(EventKind::kWait, 1);
    log.Gate(1, 8);
    log.Release(1, {{6, 1}}, 1);
    log.Fenced(1, 1);
    log.Trough(1);
  }
  const AuditReport report = Audit(log.records);
  EXPECT_EQ(report.overbase_troughs, 3u) << "once for each trough, not for each line";
  EXPECT_TRUE(report.ok()) << "a job's own doing";
}

TEST(Audit, CatchesTwoJobsThatAreMeasuredAtOnce) {
  LogWriter log(20);
  log.Admit(1, 2, 16);
  log.Admit(2, 2, 4);
  log.Start(1, 16);
  log.Start(2, 4);
  ExpectCaught(log, "I7", "passes its gate while job 1 is measured");
}

TEST(Audit, CatchesAGateBesideAJobThatIsMeasured) {
  LogWriter log(20);
  log.Parked(1, 2, 8, {{0, 2}});
  log.Admit(2, 2, 8);
  log.Start(2, 8);
  log.Gate(1, 8);
  ExpectCaught(log, "I7", "passes its gate while job 2 is measured");
}

TEST(Audit, CatchesAGateBesideAJobThatLostItsProfile) {
  LogWriter log = TwoJobs();
  log.Gate(1, 8);
  log.Add(EventKind::kMismatch, 1);
  log.Gate(2, 8);
  ExpectCaught(log, "I7", "while job 1 is measured");
}

TEST(Audit, AcceptsJobsWithoutAProfileWhoseGateHasOpenedBefore) {
  LogWriter log(20);
  log.Parked(1, 2, 8, {{0, 2}});
  log.Gate(1, 8);
  log.Admit(2, 2, 8);
  log.Start(2, 8);  // beside a job inside its iteration, which opens no gate before the next
  log.Add(EventKind::kMismatch, 1);  // two at once, and no decision made it so
  AuditReport report = Audit(log.records);
  for (const AuditViolation& v : report.violations) ADD_FAILURE() << v.rule << " " << v.text;
  log.Trough(1);
  log.Add(EventKind::kSettle, 2).limit = 8;
  log.Gate(1, 8);  // what a settled job may hold is known
  report = Audit(log.records);
  for (const AuditViolation& v : report.violations) ADD_FAILURE() << v.rule << " " << v.text;
}

TEST(Audit, CatchesAJobWithoutAProfileThatClaimsLessThanItsLimit) {
  LogWriter log(20);
  log.Admit(1, 2, 16);
  log.Start(1, 8);
  ExpectCaught(log, "I7", "does not claim its limit");
}

TEST(Audit, AcceptsAGateOnTheNumberAloneOnlyForAJobAlone) {
  LogWriter log(20);
  log.Parked(1, 1, 16, {{0, 1}});
  log.Admit(2, 1, 16);
  log.Start(2, 16);
  log.Grant(2, {{1, 10}});
  log.Release(2, {{1, 9}}, 1);
  log.Fenced(2, 1);
  log.Trough(2);
  log.Gate(1, 14).sums_only = true;
  EXPECT_TRUE(Audit(log.records).ok());
  log.Gate(2, 5).sums_only = true;
  ExpectCaught(log, "I4", "opens a gate");
}

TEST(Audit, CatchesWhatMakesNoSense) {
  {
    LogWriter log = TwoJobs();
    log.Grant(7, {{4, 1}});
    ExpectCaught(log, "schema", "never admitted");
  }
  {
    LogWriter log = TwoJobs();
    log.Gate(1, 8, {{19, 2}});
    ExpectCaught(log, "schema", "does not lie in the pool");
  }
  {
    LogWriter log = TwoJobs();
    log.Gate(1, 8);
    log.Gate(1, 8);
    ExpectCaught(log, "schema", "not at its trough");
  }
  {
    LogWriter log = TwoJobs();
    log.Fenced(1, 3);
    ExpectCaught(log, "I1", "no release 3");
  }
  {
    LogWriter log = TwoJobs();
    log.Gate(1, 8);
    log.records.back().t_ns = 1;
    ExpectCaught(log, "schema", "backwards");
  }
  EXPECT_EQ(Audit({}).violations[0].rule, "schema");
  EXPECT_EQ(Audit({Record{}}).violations[0].rule, "schema") << "a pool of no units";
}

TEST(Audit, DeathFreesWithTheLastHolder) {
  LogWriter log = TwoJobs();
  log.Gate(1, 8, {{4, 4}});
  log.Add(EventKind::kDeath, 1);
  log.Add(EventKind::kFree, 1);
  log.Gate(2, 8, {{4, 4}});
  const AuditReport report = Audit(log.records);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.jobs.at(1).peak_units, 6u) << "the score of a job outlives it";
}

TEST(Audit, CatchesMoreOutsideThanThereIs) {
  LogWriter log = TwoJobs();
  log.records[0].bytes = 5000;
  log.Add(EventKind::kOutside, 1).bytes = 3000;
  Record& second = log.Add(EventKind::kOutside, 2);
  second.bytes = 2000;
  EXPECT_TRUE(Audit(log.records).ok());
  EXPECT_EQ(Audit(log.records).jobs.at(1).peak_outside_bytes, 3000u);
  log.Add(EventKind::kOutside, 2).bytes = 2001;
  ExpectCaught(log, "outside", "5001 bytes outside the pool, where the GPU has 5000");
}

TEST(Audit, CatchesALimitThatForgetsWhatIsOutside) {
  LogWriter log = TwoJobs();
  log.records[0].bytes = 1 << 20;
  Record& outside = log.Add(EventKind::kOutside, 1);
  outside.bytes = 9 * 1024;
  outside.units = 9;
  log.Gate(1, 16, {{4, 5}});
  EXPECT_TRUE(Audit(log.records).ok());
  log.Grant(1, {{9, 1}});
  ExpectCaught(log, "I1", "holds more than its claim or its limit");
}

TEST(Audit, ThinsTheSeriesEvenly) {
  LogWriter log = TwoJobs();
  for (int i = 0; i < 1000; ++i) log.Add(EventKind::kWait, 1);
  const AuditReport report = Audit(log.records, 64);
  EXPECT_LE(report.series.size(), 64u);
  EXPECT_GE(report.series.size(), 31u);
  const uint64_t step = report.series[1].t_ns - report.series[0].t_ns;
  for (size_t i = 1; i < report.series.size(); ++i) {
    EXPECT_EQ(report.series[i].t_ns - report.series[i - 1].t_ns, step);
  }
  EXPECT_TRUE(Audit(log.records, 0).series.empty());
}

}  // namespace
}  // namespace sluice::scheduler
