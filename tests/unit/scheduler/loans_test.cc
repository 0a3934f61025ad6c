// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/loans/loans.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/log_writer.h"

namespace sluice::scheduler {
namespace {

/// Jobs 1 and 2 with a base of 2 units each; job 1 is in an iteration, holds 8 units more and gives
/// back `given` of them.
class LoansTest : public ::testing::Test {
 protected:
  LoansTest() {
    log_.Parked(1, 2, 20, {{0, 2}});
    log_.Parked(2, 2, 20, {{2, 2}});
    log_.Gate(1, 12, {{4, 8}});
    log_.Gate(2, 12);
  }

  void GivesBack(JobId job, const Extents& extents, ReleaseId release) {
    log_.Release(job, extents, release);
    log_.Fenced(job, release);
    log_.Reclaim(job, extents);
  }

  Loans Read() const {
    Loans loans(32);
    for (const Record& record : log_.records) loans.Apply(record);
    return loans;
  }

  LogWriter log_{32};
};

TEST_F(LoansTest, WhatIsGivenBackInAnIterationAndGrantedToAnotherIsLent) {
  GivesBack(1, {{8, 4}}, 1);
  EXPECT_EQ(Read().lent(1), 0u) << "nobody has it yet";
  log_.Grant(2, {{8, 3}, {20, 2}});
  const Loans loans = Read();
  EXPECT_EQ(loans.lent(1), 3u);
  EXPECT_EQ(loans.borrowed(2), 3u);
  ASSERT_EQ(loans.pairs().size(), 1u);
  EXPECT_EQ(loans.pairs()[0].now, 3u);
  EXPECT_EQ(loans.pairs()[0].lent, 3u);
  EXPECT_EQ(loans.pairs()[0].times, 1u);
}

TEST_F(LoansTest, OwnMemoryIsNoLoan) {
  GivesBack(1, {{8, 4}}, 1);
  log_.Grant(1, {{8, 4}});
  EXPECT_EQ(Read().lent_ever(1), 0u);
}

TEST_F(LoansTest, ALoanEndsWhenTheBorrowersGpuIsDoneWithIt) {
  GivesBack(1, {{8, 4}}, 1);
  log_.Grant(2, {{8, 4}});
  log_.Release(2, {{8, 4}}, 7);
  EXPECT_EQ(Read().borrowed(2), 4u) << "its GPU may still use it";
  log_.Fenced(2, 7);
  const Loans loans = Read();
  EXPECT_EQ(loans.borrowed(2), 0u);
  EXPECT_EQ(loans.lent(1), 0u);
  EXPECT_EQ(loans.pairs()[0].returned, 4u);
}

TEST_F(LoansTest, ALoanEndsWithTheLendersIteration) {
  GivesBack(1, {{8, 4}}, 1);
  log_.Grant(2, {{8, 2}});
  log_.Trough(1);
  log_.Grant(2, {{10, 2}});
  const Loans loans = Read();
  EXPECT_EQ(loans.lent(1), 0u);
  EXPECT_EQ(loans.borrowed(2), 0u);
  EXPECT_EQ(loans.lent_ever(1), 2u) << "the other two were given up by then";
}

TEST_F(LoansTest, WhatWasBorrowedIsLentOnByItsBorrower) {
  log_.Parked(3, 2, 20, {{30, 2}});
  log_.Gate(3, 12);
  GivesBack(1, {{8, 4}}, 1);
  log_.Grant(2, {{8, 4}});
  GivesBack(2, {{8, 4}}, 9);
  log_.Grant(3, {{8, 4}});
  const Loans loans = Read();
  EXPECT_EQ(loans.lent(1), 0u);
  EXPECT_EQ(loans.lent(2), 4u);
  EXPECT_EQ(loans.borrowed(3), 4u);
}

TEST_F(LoansTest, ADeadBorrowerHasItUntilItsLastHolderIsGone) {
  GivesBack(1, {{8, 4}}, 1);
  log_.Grant(2, {{8, 4}});
  log_.Add(EventKind::kDeath, 2);
  EXPECT_EQ(Read().borrowed(2), 4u);
  log_.Add(EventKind::kFree, 2);
  EXPECT_EQ(Read().borrowed(2), 0u);
  EXPECT_EQ(Read().lent(1), 0u);
}

TEST_F(LoansTest, WhatAJobWithoutAProfileGivesBackIsNoLoan) {
  log_.Add(EventKind::kMismatch, 1);
  GivesBack(1, {{8, 4}}, 1);
  log_.Grant(2, {{8, 4}});
  EXPECT_EQ(Read().lent_ever(1), 0u);
}

TEST_F(LoansTest, WhatIsKeptBeyondABudgetBorrowsNothing) {
  GivesBack(1, {{8, 4}}, 1);
  log_.Grant(kBeyondBudget, {{8, 4}});
  EXPECT_EQ(Read().lent_ever(1), 0u);
}

TEST_F(LoansTest, TheSumsStayWhenAJobIsForgotten) {
  GivesBack(1, {{8, 4}}, 1);
  log_.Grant(2, {{8, 4}});
  Loans loans = Read();
  loans.Forget(2);
  EXPECT_EQ(loans.lent(1), 0u);
  EXPECT_TRUE(loans.pairs().empty());
  EXPECT_EQ(loans.over().lent, 4u);
  EXPECT_EQ(loans.over().returned, 4u);
  EXPECT_EQ(loans.rest().lent, 0u) << "a pair that was told of by itself";
  // The number comes again: what its predecessor left behind is not its own.
  log_.records.clear();
  log_.Fenced(2, 7);
  for (const Record& record : log_.records) loans.Apply(record);
  EXPECT_EQ(loans.borrowed(2), 0u);
}

}  // namespace
}  // namespace sluice::scheduler
