// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "scheduler/policy/policy.h"
#include "tests/unit/scheduler/policy_desk.h"

namespace sluice::scheduler {
namespace {

TEST(Apply, AStaleDecisionChangesNothing) {
  Desk desk(20);
  desk.Parked(1, "a", 2, 10, {0, 2});
  Request request;
  request.job = 1;
  request.kind = RequestKind::kGate0;
  request.units = request.contiguous = 4;
  request.claim = 8;
  const auto decision = Next(desk.ledger, {request}, desk.config);
  ASSERT_TRUE(decision.has_value());
  ASSERT_TRUE(desk.ledger.Die(1).ok());
  const Ledger before = desk.ledger;
  EXPECT_FALSE(Apply(*decision, {request}, &desk.ledger).ok());
  EXPECT_EQ(desk.ledger, before);
}

TEST(RecordsOf, OneRecordPerDecision) {
  Desk desk(20);
  desk.Parked(1, "a", 2, 10, {0, 2});
  desk.records.clear();
  desk.Gate0(1, 8, 4);
  ASSERT_EQ(desk.records.size(), 1u);
  const Record& gate = desk.records[0];
  EXPECT_EQ(gate.event, EventKind::kGate);
  EXPECT_EQ(gate.claim, 8u);
  EXPECT_TRUE(gate.profiled);
  EXPECT_TRUE(gate.returns);
  EXPECT_EQ(gate.extents, (Extents{{2, 4}}));
  desk.Lease(1, 2);
  EXPECT_EQ(desk.records.back().event, EventKind::kGrant);
  desk.Lease(1, 5);
  EXPECT_EQ(desk.records.back().event, EventKind::kDeny);
  EXPECT_EQ(desk.records.back().units, 5u);
  EXPECT_FALSE(desk.records.back().text.empty());
}

TEST(CountOvertaken, CountsOlderRequestsOnly) {
  std::vector<Request> requests(3);
  for (size_t i = 0; i < 3; ++i) {
    requests[i].job = static_cast<JobId>(i + 1);
    requests[i].kind = RequestKind::kGate0;
    requests[i].ticket = i;
  }
  Decision decision;
  decision.request = 1;
  CountOvertaken(decision, &requests);
  EXPECT_EQ(requests[0].overtaken, 1u);
  EXPECT_EQ(requests[1].overtaken, 0u);
  EXPECT_EQ(requests[2].overtaken, 0u);
  requests[1].kind = RequestKind::kLease;
  CountOvertaken(decision, &requests);
  EXPECT_EQ(requests[0].overtaken, 1u) << "a lease passes nobody";
}

TEST(PressureOn, WhileThereAreOthersOrNoBaseIsKnown) {
  Ledger ledger(20, 1);
  ASSERT_TRUE(ledger.Admit(1, "a", 0, 10).ok());
  EXPECT_TRUE(PressureOn(ledger, 1, false)) << "its base is to be measured";
  ASSERT_TRUE(ledger.StartUnprofiled(1).ok());
  ASSERT_TRUE(ledger.Grant(1, {{0, 2}}).ok());
  ASSERT_TRUE(ledger.ReachTrough(1, true).ok());
  EXPECT_FALSE(PressureOn(ledger, 1, false));
  EXPECT_TRUE(PressureOn(ledger, 1, true));
  ASSERT_TRUE(ledger.Admit(2, "b", 0, 10).ok());
  EXPECT_TRUE(PressureOn(ledger, 1, false));
  EXPECT_FALSE(PressureOn(ledger, 3, true)) << "nobody to press";
}

TEST(WhyWaiting, NamesTheHolders) {
  Desk desk(20);
  desk.Parked(1, "a", 2, 18, {0, 2});
  desk.Parked(2, "b", 2, 18, {2, 2});
  desk.Gate0(1, 16);
  desk.Lease(1, 10);
  desk.Gate0(2, 16, 8);
  ASSERT_TRUE(desk.Waits(2));
  EXPECT_EQ(WhyWaiting(desk.ledger, desk.waiting[0], desk.config),
            "job 2 'b' waits for its next iteration (policy flow, free 6.0 MiB of 20.0 MiB): job 1 "
            "'a' holds 12.0 MiB (limit 18.0 MiB)");
}

WaitReason ReasonOfFirst(const Desk& desk) {
  return ReasonOf(desk.ledger, desk.waiting.front(), desk.config);
}

TEST(ReasonOf, ATurnIsNotMemory) {
  Config config;
  config.policy = "temporal";
  Desk desk(40, config);
  desk.Parked(1, "a", 2, 18, {0, 2});
  desk.Parked(2, "b", 2, 18, {2, 2});
  desk.Gate0(1, 16);
  desk.Gate0(2, 16);
  ASSERT_TRUE(desk.Waits(2));
  EXPECT_EQ(ReasonOfFirst(desk), WaitReason::kTurn) << "there is room for both";
}

TEST(ReasonOf, MemoryThatIsNotThere) {
  Desk desk(20);
  desk.Parked(1, "a", 2, 18, {0, 2});
  desk.Parked(2, "b", 2, 18, {2, 2});
  desk.Gate0(1, 16);
  desk.Lease(1, 10);
  desk.Gate0(2, 16, 8);
  ASSERT_TRUE(desk.Waits(2));
  EXPECT_EQ(ReasonOfFirst(desk), WaitReason::kMemory);
}

TEST(ReasonOf, AnotherJobIsMeasured) {
  Desk desk(20);
  desk.Parked(2, "b", 2, 8, {0, 2});
  desk.Admit(1, "a", 2, 10);
  desk.Newcomer(1);
  desk.Gate0(2, 6);
  ASSERT_TRUE(desk.Waits(2));
  EXPECT_EQ(ReasonOfFirst(desk), WaitReason::kMeasurement);
}

TEST(ReasonOf, ARunThatIsNotThereAndAJobThatNobodyKnows) {
  Ledger ledger(20, 1);
  ASSERT_TRUE(ledger.Admit(1, "a", 0, 20).ok());
  ASSERT_TRUE(ledger.StartUnprofiled(1).ok());
  ASSERT_TRUE(ledger.Grant(1, {{4, 2}, {10, 2}, {16, 2}}).ok());
  Request request;
  request.job = 1;
  request.units = request.contiguous = 6;
  EXPECT_EQ(ReasonOf(ledger, request, {}), WaitReason::kPlace) << "14 are free, 4 in a row";
  request.contiguous = 4;
  EXPECT_EQ(ReasonOf(ledger, request, {}), WaitReason::kMemory) << "there, and promised to others";
  request.kind = RequestKind::kBringBack;
  EXPECT_EQ(ReasonOf(ledger, request, {}), WaitReason::kHostMemory);
  request.job = 7;
  EXPECT_EQ(ReasonOf(ledger, request, {}), WaitReason::kAdmission);
}

TEST(RecordsOf, ARefusalSaysWhichInOneWord) {
  Ledger ledger(20, 1);
  ASSERT_TRUE(ledger.Admit(1, "a", 0, 20).ok());
  ASSERT_TRUE(ledger.StartUnprofiled(1).ok());
  Decision deny;
  deny.kind = Decision::Kind::kDeny;
  deny.job = 1;
  const auto reason = [&](RequestKind kind, DenyCode code) {
    Request request;
    request.job = 1;
    request.kind = kind;
    deny.code = code;
    return RecordsOf(deny, {request}, ledger).front().reason;
  };
  EXPECT_EQ(reason(RequestKind::kLease, DenyCode::kExhausted), "exhausted");
  EXPECT_EQ(reason(RequestKind::kLease, DenyCode::kOverLimit), "over-limit");
  EXPECT_EQ(reason(RequestKind::kNewcomer, DenyCode::kRefused), "refused");
  EXPECT_EQ(reason(RequestKind::kGate, DenyCode::kExhausted), "gate") << "it goes on without";
}

}  // namespace
}  // namespace sluice::scheduler
