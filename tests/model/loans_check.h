// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "scheduler/audit/audit.h"
#include "scheduler/loans/loans.h"

namespace sluice::scheduler {

/// What the counters say of a log after each record adds up, and at the end it is what an audit
/// counts, which shares no code with them.
inline void ExpectLoansOf(const std::vector<Record>& records, const AuditReport& report) {
  Loans loans(report.pool_units);
  uint64_t lent = 0;
  for (const Record& record : records) {
    loans.Apply(record);
    uint64_t now = 0;
    uint64_t borrowed = 0;
    for (const auto& [job, known] : report.jobs) {
      now += loans.lent(job);
      borrowed += loans.borrowed(job);
    }
    ASSERT_EQ(now, borrowed);
  }
  for (const Loan& loan : loans.pairs()) {
    EXPECT_EQ(loan.lent, loan.now + loan.returned);
    lent += loan.lent;
  }
  for (const auto& [job, known] : report.jobs) EXPECT_EQ(loans.lent_ever(job), known.lent_units);
  EXPECT_EQ(lent * report.unit_bytes, report.lent_bytes_within_iterations);
}

}  // namespace sluice::scheduler
