// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "scheduler/policy/host_memory.h"

namespace sluice::scheduler {
namespace {

TEST(Overdue, OneInHostMemoryWhenItsSliceHasPassedOrSomebodyIsNew) {
  const Config config;
  Ledger ledger(10, 1);
  ASSERT_TRUE(ledger.Admit(1, "a", 1, 5).ok());
  Request away;
  away.kind = RequestKind::kSwapIn;
  away.overtaken = 100;
  EXPECT_FALSE(Overdue(ledger, away, {away}, config)) << "it waits for its slice";
  away.due = true;
  EXPECT_TRUE(Overdue(ledger, away, {away}, config));
  away.due = false;
  ASSERT_TRUE(ledger.StartUnprofiled(1).ok());
  EXPECT_TRUE(Overdue(ledger, away, {away}, config)) << "somebody is measured beside all";
  ASSERT_TRUE(ledger.Settle(1, 5).ok());
  EXPECT_FALSE(Overdue(ledger, away, {away}, config)) << "nobody is any more";
  Request newcomer;
  newcomer.kind = RequestKind::kNewcomer;
  EXPECT_TRUE(Overdue(ledger, away, {away, newcomer}, config));
  for (const RequestKind kind : {RequestKind::kNewcomer, RequestKind::kGate0, RequestKind::kGate,
                                 RequestKind::kLease, RequestKind::kBringBack}) {
    Request request;
    request.kind = kind;
    request.due = true;
    request.overtaken = config.max_overtakes - 1;
    EXPECT_FALSE(Overdue(ledger, request, {request, newcomer}, config));
    request.overtaken = config.max_overtakes;
    EXPECT_TRUE(Overdue(ledger, request, {request}, config));
  }
}

}  // namespace
}  // namespace sluice::scheduler
