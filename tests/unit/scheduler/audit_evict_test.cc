// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What the audit says to jobs in host memory (I5).
#include <gtest/gtest.h>

#include "scheduler/audit/audit.h"
#include "tests/unit/scheduler/log_writer.h"

namespace sluice::scheduler {
namespace {

/// Job 1 has all of its claim of 8 and waits for 4 more.
LogWriter BeforeTheEviction(Units waits = 4) {
  LogWriter log(20);
  log.Parked(1, 2, 16, {{0, 2}});
  log.Parked(2, 2, 16, {{2, 2}});
  log.Gate(1, 8, {{4, 6}});
  log.Gate(2, 12, {{12, 6}});
  Record& wait = log.Add(EventKind::kWait, 1);
  wait.units = waits;
  return log;
}

void Evict(LogWriter& log, const Extents& extents) {
  log.Add(EventKind::kEvict, 1).extents = extents;
}

void BringBack(LogWriter& log, const Extents& extents, Units claim) {
  Record& record = log.Add(EventKind::kBringBack, 1);
  record.extents = extents;
  record.claim = claim;
  record.profiled = record.returns = true;
}

void CopyOut(LogWriter& log, const Extents& extents) {
  log.Add(EventKind::kCopyOut, 1).extents = extents;
}

void CopyBack(LogWriter& log, const Extents& extents) {
  log.Add(EventKind::kCopyBack, 1).extents = extents;
}

void Gives(LogWriter& log, JobId job, const Extents& extents, ReleaseId release) {
  log.Release(job, extents, release);
  log.Fenced(job, release);
  log.Trough(job);
}

/// The log breaks `rule` in its last record and nothing before.
void ExpectCaught(const LogWriter& log, const std::string& rule, const std::string& words) {
  const AuditReport report = Audit(log.records);
  ASSERT_FALSE(report.violations.empty());
  EXPECT_EQ(report.violations[0].rule, rule) << report.violations[0].text;
  EXPECT_EQ(report.violations[0].record, log.records.size() - 1) << report.violations[0].text;
  EXPECT_NE(report.violations[0].text.find(words), std::string::npos) << report.violations[0].text;
}

TEST(AuditEvictions, OneThatComesBackIsSound) {
  LogWriter log = BeforeTheEviction();
  Evict(log, {{4, 6}});
  log.Grant(2, {{4, 4}});  // what it left
  Gives(log, 2, {{4, 4}, {12, 6}}, 1);
  BringBack(log, {{4, 6}}, 12);
  log.Grant(1, {{10, 4}});
  Gives(log, 1, {{4, 10}}, 1);
  const AuditReport report = Audit(log.records);
  for (const auto& violation : report.violations) ADD_FAILURE() << violation.text;
  EXPECT_EQ(report.broken_promises, 0u);
}

TEST(AuditEvictions, NobodyInsideItsClaim) {
  LogWriter log = BeforeTheEviction(0);
  Evict(log, {{4, 6}});
  ExpectCaught(log, "I5", "inside its claim");
}

TEST(AuditEvictions, WhoAsksForALongerRunThanItPromisedHasLeftItsClaim) {
  LogWriter log(20);
  log.Parked(1, 2, 16, {{0, 2}});
  log.Gate(1, 12, {{4, 6}});
  log.records.back().piece = 2;
  Record& wait = log.Add(EventKind::kWait, 1);
  wait.units = wait.contiguous = 3;
  Evict(log, {{4, 6}});
  EXPECT_TRUE(Audit(log.records).ok());
  log.records[log.records.size() - 2].contiguous = 2;
  ExpectCaught(log, "I5", "inside its claim");
}

TEST(AuditEvictions, WhatItAskedForIsKnownFromBeforeItWent) {
  LogWriter log = BeforeTheEviction(4);
  Evict(log, {{4, 6}});
  // For its return.
  Record& wait = log.Add(EventKind::kWait, 1);
  wait.units = 4;
  wait.reason = "host-memory";
  BringBack(log, {{4, 6}}, 8);
  Evict(log, {{4, 6}});
  EXPECT_TRUE(Audit(log.records).ok());
}

TEST(AuditEvictions, NobodyWhoseGpuStillWorks) {
  LogWriter log = BeforeTheEviction(6);
  log.Release(1, {{8, 2}}, 1);
  Evict(log, {{4, 4}});
  ExpectCaught(log, "I1", "before its GPU work is done");
}

TEST(AuditEvictions, OnlyOfWhatItHas) {
  LogWriter log = BeforeTheEviction();
  Evict(log, {{4, 9}});
  ExpectCaught(log, "I1", "has not leased");
}

TEST(AuditEvictions, BackToTheSameUnits) {
  LogWriter log = BeforeTheEviction();
  Evict(log, {{4, 6}});
  BringBack(log, {{5, 6}}, 12);
  ExpectCaught(log, "I5", "does not get back what it had");
}

TEST(AuditEvictions, NotOverSomebodyElse) {
  LogWriter log = BeforeTheEviction();
  Evict(log, {{4, 6}});
  log.Grant(2, {{4, 2}});
  BringBack(log, {{4, 6}}, 8);
  ExpectCaught(log, "I1", "while job 2 holds it");
}

TEST(AuditEvictions, NotIntoAnUnsafeState) {
  LogWriter log = BeforeTheEviction();
  Evict(log, {{4, 6}});
  BringBack(log, {{4, 6}}, 16);
  ExpectCaught(log, "I4", "no order");
}

TEST(AuditEvictions, NobodyIsBackWhoWasNotAway) {
  LogWriter log = BeforeTheEviction();
  BringBack(log, {}, 8);
  ExpectCaught(log, "schema", "not evicted");
}

/// Job 1 waits at its trough with its base in two pieces, job 2 is past its gate.
LogWriter BeforeTheSwap() {
  LogWriter log(20);
  log.Parked(1, 4, 12, {{0, 2}, {6, 2}});
  log.Parked(2, 4, 12, {{2, 4}});
  log.Gate(2, 10, {{8, 4}});
  return log;
}

TEST(AuditSwaps, OneThatComesBackIsSound) {
  LogWriter log = BeforeTheSwap();
  Evict(log, {{0, 2}, {6, 2}});
  log.Grant(2, {{6, 1}});  // what it left
  // Of its return; nobody asks whether it is inside its claim.
  Record& wait = log.Add(EventKind::kWait, 1);
  wait.units = 4;
  wait.reason = "host-memory";
  Gives(log, 2, {{6, 1}, {8, 4}}, 1);
  log.Gate(2, 12, {{8, 4}});  // the pool has room for all that it may want
  BringBack(log, {{0, 2}, {6, 2}}, 0);
  Gives(log, 2, {{8, 4}}, 2);
  log.Gate(1, 12, {{8, 8}});
  Gives(log, 1, {{8, 8}}, 1);
  Evict(log, {{0, 2}, {6, 2}});
  BringBack(log, {{0, 2}, {6, 2}}, 0);
  const AuditReport report = Audit(log.records);
  for (const auto& violation : report.violations) ADD_FAILURE() << violation.text;
  EXPECT_EQ(report.broken_promises, 0u);
  EXPECT_EQ(report.over_budget_moments, 0u);
}

/// Its base is known from its trough, wherever it has been since.
TEST(AuditSwaps, WhoWasAwayStillHasToGiveBackAllButItsBase) {
  LogWriter log = BeforeTheSwap();
  Evict(log, {{0, 2}, {6, 2}});
  BringBack(log, {{0, 2}, {6, 2}}, 0);
  log.Gate(1, 8, {{14, 2}});
  log.Trough(1, false);
  ExpectCaught(log, "I5", "was to give back all but its base and kept unit 14");
}

TEST(AuditSwaps, AllThatItHas) {
  LogWriter log = BeforeTheSwap();
  Evict(log, {{0, 2}});
  ExpectCaught(log, "schema", "evicted at its trough but for 2 units");
}

TEST(AuditSwaps, OnlyOfWhatItHas) {
  LogWriter log = BeforeTheSwap();
  Evict(log, {{0, 4}, {6, 2}});
  ExpectCaught(log, "I1", "unit 2 is evicted, which job 1 has not leased");
}

TEST(AuditSwaps, NobodyWhoseGpuStillWorks) {
  LogWriter log = BeforeTheSwap();
  log.Release(1, {{6, 2}}, 1);
  Evict(log, {{0, 2}});
  ExpectCaught(log, "I1", "before its GPU work is done");
}

TEST(AuditSwaps, NobodyWhoHasNotBegun) {
  LogWriter log = BeforeTheSwap();
  log.Admit(3, 1, 2);
  log.Add(EventKind::kEvict, 3);
  ExpectCaught(log, "schema", "not past its gate or at its trough");
}

TEST(AuditSwaps, NobodyTwice) {
  LogWriter log = BeforeTheSwap();
  Evict(log, {{0, 2}, {6, 2}});
  Evict(log, {});
  ExpectCaught(log, "schema", "not past its gate or at its trough");
}

TEST(AuditSwaps, BackToItsTroughWithoutAClaim) {
  LogWriter log = BeforeTheSwap();
  Evict(log, {{0, 2}, {6, 2}});
  BringBack(log, {{0, 2}, {6, 2}}, 8);
  ExpectCaught(log, "schema", "comes back to where it was not");
}

TEST(AuditSwaps, BackToItsIterationWithOne) {
  LogWriter log = BeforeTheEviction();
  Evict(log, {{4, 6}});
  BringBack(log, {{4, 6}}, 0);
  ExpectCaught(log, "schema", "comes back to where it was not");
}

TEST(AuditSwaps, BackWithAllThatItHad) {
  LogWriter log = BeforeTheSwap();
  Evict(log, {{0, 2}, {6, 2}});
  BringBack(log, {{0, 2}, {6, 1}}, 0);
  ExpectCaught(log, "I5", "does not get back what it had");
}

TEST(AuditSwaps, NotOverSomebodyElse) {
  LogWriter log = BeforeTheSwap();
  Evict(log, {{0, 2}, {6, 2}});
  log.Grant(2, {{7, 1}});
  BringBack(log, {{0, 2}, {6, 2}}, 0);
  ExpectCaught(log, "I1", "unit 7 is granted to job 1 while job 2 holds it");
}

/// It keeps more at its trough than it asked for: with that, job 2 cannot be given all of its
/// claim.
TEST(AuditSwaps, NotIntoAnUnsafeState) {
  LogWriter log(20);
  log.Parked(1, 4, 12, {{0, 6}});
  log.Parked(2, 4, 14, {{6, 4}});
  Evict(log, {{0, 6}});
  Record& limit = log.Add(EventKind::kLimit, 2);
  limit.limit = 16;
  limit.request = 4;
  log.Gate(2, 16, {{10, 4}}).piece = 1;
  BringBack(log, {{0, 6}}, 0);
  ExpectCaught(log, "I4", "no order");
}

TEST(AuditSwaps, NobodyBeginsWhereItIsNot) {
  LogWriter log = BeforeTheSwap();
  Evict(log, {{0, 2}, {6, 2}});
  log.Gate(1, 8, {{14, 2}});
  ExpectCaught(log, "schema", "not at its trough");
}

/// Its base is on its way to host memory.
LogWriter BeforeTheCopyEnds() {
  LogWriter log = BeforeTheSwap();
  CopyOut(log, {{0, 2}, {6, 2}});
  return log;
}

LogWriter BeforeItComesBack() {
  LogWriter log = BeforeTheCopyEnds();
  Evict(log, {{0, 2}, {6, 2}});
  return log;
}

LogWriter BeforeTheCopyBackEnds() {
  LogWriter log = BeforeItComesBack();
  BringBack(log, {{0, 2}, {6, 2}}, 0);
  return log;
}

TEST(AuditCopies, ThereAndBackIsSound) {
  LogWriter log = BeforeItComesBack();
  log.Grant(2, {{6, 1}});
  Gives(log, 2, {{6, 1}, {8, 4}}, 1);
  BringBack(log, {{0, 2}, {6, 2}}, 0);
  log.Gate(2, 10, {{8, 4}});
  CopyBack(log, {{0, 2}, {6, 2}});
  log.Release(1, {{6, 2}}, 1);
  log.Fenced(1, 1);
  Gives(log, 2, {{8, 4}}, 2);
  log.Gate(1, 8, {{8, 4}});
  Gives(log, 1, {{8, 4}}, 2);
  CopyOut(log, {{0, 2}});
  Evict(log, {{0, 2}});
  const AuditReport report = Audit(log.records);
  for (const auto& violation : report.violations) ADD_FAILURE() << violation.text;
}

/// From the middle of its iteration what is beside its base.
TEST(AuditCopies, OneThatLeftItsClaimIsSound) {
  LogWriter log = BeforeTheEviction();
  CopyOut(log, {{4, 6}});
  Evict(log, {{4, 6}});
  Gives(log, 2, {{12, 6}}, 1);
  BringBack(log, {{4, 6}}, 12);
  CopyBack(log, {{4, 6}});
  log.Grant(1, {{10, 2}});
  EXPECT_TRUE(Audit(log.records).ok());
}

TEST(AuditCopies, OneThatFailedChangesNothing) {
  LogWriter log = BeforeTheCopyEnds();
  CopyOut(log, {});
  log.Release(1, {{6, 2}}, 1);
  log.Fenced(1, 1);
  CopyOut(log, {{0, 2}});
  Evict(log, {{0, 2}});
  EXPECT_TRUE(Audit(log.records).ok());
}

TEST(AuditCopies, WhoDiesMeanwhileLeavesNothingBehind) {
  for (LogWriter log : {BeforeTheCopyEnds(), BeforeTheCopyBackEnds()}) {
    log.Add(EventKind::kDeath, 1);
    log.Add(EventKind::kFree, 1);
    log.Grant(2, {{0, 2}});
    EXPECT_TRUE(Audit(log.records).ok());
  }
  LogWriter log = BeforeItComesBack();
  log.Leave(1);
  log.Grant(2, {{0, 2}});
  EXPECT_TRUE(Audit(log.records).ok());
}

TEST(AuditCopies, OnlyOfWhatItHas) {
  LogWriter log = BeforeTheSwap();
  CopyOut(log, {{0, 3}, {6, 2}});
  ExpectCaught(log, "I1", "unit 2 is copied, which job 1 has not leased");
}

TEST(AuditCopies, NotTwiceAtOnce) {
  LogWriter log = BeforeTheCopyEnds();
  CopyOut(log, {{0, 2}, {6, 2}});
  ExpectCaught(log, "schema", "not where it could leave from");
}

TEST(AuditCopies, NothingEndsThatHasNotBegun) {
  LogWriter log = BeforeTheSwap();
  CopyOut(log, {});
  ExpectCaught(log, "schema", "not being copied");
  log = BeforeTheSwap();
  CopyBack(log, {{0, 2}, {6, 2}});
  ExpectCaught(log, "schema", "not on its way back");
}

TEST(AuditCopies, NobodyGivesBackWhatIsMoved) {
  for (LogWriter log : {BeforeTheCopyEnds(), BeforeItComesBack(), BeforeTheCopyBackEnds()}) {
    log.Release(1, {{6, 2}}, 1);
    ExpectCaught(log, "I5", "release of job 1 while its memory is moved");
  }
}

TEST(AuditCopies, NobodyGoesOnBeforeItsMemoryIsBack) {
  for (LogWriter log : {BeforeTheCopyEnds(), BeforeTheCopyBackEnds()}) {
    Gives(log, 2, {{8, 4}}, 1);
    EXPECT_TRUE(Audit(log.records).ok());
    log.Gate(1, 8, {{8, 4}});
    ExpectCaught(log, "I5", "gate of job 1 while its memory is moved");
  }
  LogWriter log = BeforeTheEviction();
  CopyOut(log, {{4, 6}});
  log.Grant(1, {{10, 1}});
  ExpectCaught(log, "I5", "grant of job 1 while its memory is moved");
  log.records.pop_back();
  log.Trough(1);
  ExpectCaught(log, "I5", "trough of job 1 while its memory is moved");
}

TEST(AuditCopies, NotUnderACopy) {
  LogWriter log = BeforeTheCopyEnds();
  log.Release(1, {{6, 2}}, 1);
  log.Fenced(1, 1);
  log.Grant(2, {{6, 1}});
  const AuditReport report = Audit(log.records);
  ASSERT_EQ(report.violations.size(), 2u);
  EXPECT_EQ(report.violations[1].record, log.records.size() - 1);
  EXPECT_EQ(report.violations[1].text, "unit 6 is granted to job 2 while it is copied for job 1");
}

TEST(AuditCopies, WhatIsEvictedWasCopied) {
  LogWriter log = BeforeTheSwap();
  CopyOut(log, {{0, 2}, {6, 1}});
  Evict(log, {{0, 2}, {6, 2}});
  ExpectCaught(log, "I1", "unit 7 is evicted and was not copied out");
  log = BeforeTheEviction();
  CopyOut(log, {{4, 6}});
  Evict(log, {{4, 5}});
  ExpectCaught(log, "I1", "unit 9 was copied out and is not evicted");
}

/// A log of an older daemon tells of no copies at all.
TEST(AuditCopies, WhereSomeAreToldAllAre) {
  LogWriter log = BeforeTheCopyBackEnds();
  CopyBack(log, {{0, 2}, {6, 2}});
  Evict(log, {{0, 2}, {6, 2}});
  ExpectCaught(log, "I1", "job 1 is evicted and was not copied");
}

TEST(AuditCopies, WhatComesBackIsWhatWasCopied) {
  LogWriter log = BeforeItComesBack();
  BringBack(log, {{0, 3}, {6, 2}}, 0);
  ExpectCaught(log, "I1", "unit 2 is given back and was not copied out");
  log = BeforeItComesBack();
  BringBack(log, {{0, 2}, {6, 2}, {16, 1}}, 0);
  ExpectCaught(log, "I1", "unit 16 is given back and was not copied out");
  log = BeforeTheCopyBackEnds();
  CopyBack(log, {{0, 2}, {6, 1}});
  ExpectCaught(log, "I1", "unit 7 was copied out and is not copied back");
  log = BeforeTheCopyBackEnds();
  CopyBack(log, {{0, 2}, {6, 2}, {16, 1}});
  ExpectCaught(log, "I1", "unit 16 is overwritten with bytes of job 1, which does not hold it");
}

/// What a job gave back while it was copied is another one's when its bytes come back.
TEST(AuditCopies, NotOverSomebodyElse) {
  LogWriter log = BeforeTheCopyEnds();
  log.Release(1, {{6, 2}}, 1);
  log.Fenced(1, 1);
  Evict(log, {{0, 2}});
  log.Grant(2, {{6, 2}});
  BringBack(log, {{0, 2}}, 0);
  const size_t before = Audit(log.records).violations.size();
  CopyBack(log, {{0, 2}, {6, 2}});
  const AuditReport report = Audit(log.records);
  ASSERT_GT(report.violations.size(), before);
  EXPECT_EQ(report.violations[before].text,
            "unit 6 is overwritten with bytes of job 1 while job 2 holds it");
}

}  // namespace
}  // namespace sluice::scheduler
