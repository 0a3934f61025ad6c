// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using protocol::Family;

class FlowOutsideTest : public FlowTest {
 protected:
  /// Every log that these tests write is one that the audit accepts.
  ~FlowOutsideTest() override {
    const scheduler::AuditReport report = scheduler::Audit(sink_.records);
    for (const auto& violation : report.violations) ADD_FAILURE() << violation.text;
    EXPECT_TRUE(report.ok());
  }
  std::string Denial(JobId job) {
    const auto& all = sink_.denials[job];
    return all.empty() ? "" : all.back().second;
  }
};

TEST_F(FlowOutsideTest, ChargesAndGivesBack) {
  Start(1);
  ASSERT_TRUE(Charge(1, Family::kArray, 3 * kUnit).ok());
  ASSERT_TRUE(Charge(1, Family::kManaged, kUnit).ok());
  EXPECT_EQ(sink_.charged[1], (std::vector<uint64_t>{3 * kUnit, 4 * kUnit}));
  ASSERT_TRUE(Uncharge(1, Family::kArray, 3 * kUnit).ok());
  EXPECT_EQ(flow_->outside().charged(1), kUnit);
  EXPECT_EQ(sink_.Count(scheduler::EventKind::kOutside, 1), 3u);
}

TEST_F(FlowOutsideTest, TheReserveIsSharedByAll) {
  Start(1);
  Start(2);
  ASSERT_TRUE(Charge(1, Family::kPhysical, 8 * kUnit).ok());
  ASSERT_TRUE(Charge(2, Family::kPhysical, 3 * kUnit).ok());
  EXPECT_NE(Denial(2).find("2.0 MiB of 10.0 MiB are left (job 1 'job1' has 8.0 MiB)"),
            std::string::npos)
      << Denial(2);
  EXPECT_TRUE(sink_.charged[2].empty());
  ASSERT_TRUE(Charge(2, Family::kPhysical, 2 * kUnit).ok());
  EXPECT_EQ(sink_.charged[2].size(), 1u);
}

TEST_F(FlowOutsideTest, AGivenLimitCoversBothSides) {
  Start(1, 6);
  ASSERT_TRUE(Lease(1, 4).ok());
  ASSERT_TRUE(Charge(1, Family::kArray, 2 * kUnit + 1).ok());
  EXPECT_NE(
      Denial(1).find("would have 3.0 MiB outside the pool, holds 4.0 MiB of it, and its limit "
                     "is 6.0 MiB"),
      std::string::npos)
      << Denial(1);
  ASSERT_TRUE(Charge(1, Family::kArray, 2 * kUnit).ok());
  EXPECT_EQ(sink_.charged[1].size(), 1u);
  ASSERT_TRUE(Lease(1, 1).ok());
  EXPECT_NE(Denial(1).find("holds 4.0 MiB and 2.0 MiB outside the pool, and its limit is 6.0 MiB"),
            std::string::npos)
      << Denial(1);
  ASSERT_TRUE(Uncharge(1, Family::kArray, 2 * kUnit).ok());
  ASSERT_TRUE(Lease(1, 1).ok());
  EXPECT_EQ(sink_.grants[1].size(), 2u);
}

TEST_F(FlowOutsideTest, WhatWasChargedBeforeAdmissionCountsAfterIt) {
  Start(1, 38);
  ASSERT_TRUE(Lease(1, 30).ok());
  Start(2, 12, 5);  // its request does not fit beside that limit
  ASSERT_EQ(flow_->ledger().Find(2), nullptr);
  ASSERT_TRUE(Charge(2, Family::kArray, 13 * kUnit).ok());
  EXPECT_NE(Denial(2).find("asks for 13.0 MiB outside the pool"), std::string::npos) << Denial(2);
  ASSERT_TRUE(Charge(2, Family::kArray, 5 * kUnit).ok());
  flow_->Die(1, now_);
  flow_->HolderGone(1, now_);
  Pass(kMs);
  ASSERT_NE(flow_->ledger().Find(2), nullptr);
  EXPECT_EQ(Known(2).outside, 5u);
  ASSERT_TRUE(Lease(2, 8).ok());
  EXPECT_EQ(sink_.denials[2].size(), 2u);
}

TEST_F(FlowOutsideTest, WhatAProcessLeavesOnItsAccountStaysItsOwn) {
  options_.context_bytes = kUnit;
  Restart();
  Start(1, 6);
  ASSERT_TRUE(Charge(1, Family::kPhysical, 3 * kUnit).ok());
  EXPECT_TRUE(flow_->Die(1, now_, /*parted=*/true)) << "it is watched until it has ended";
  EXPECT_TRUE(flow_->Rests(1));
  EXPECT_EQ(flow_->ledger().Find(1), nullptr) << "nobody waits for it";
  EXPECT_EQ(flow_->outside().charged(1), 3 * kUnit) << "the context alone is gone";
  Start(2);
  ASSERT_TRUE(Charge(2, Family::kPhysical, 7 * kUnit).ok());
  EXPECT_NE(Denial(2).find("6.0 MiB of 10.0 MiB are left"), std::string::npos) << Denial(2);
  flow_->Die(2, now_);
  // Given back without a session, but for more than there is.
  ASSERT_TRUE(Uncharge(1, Family::kPhysical, kUnit).ok());
  EXPECT_FALSE(Uncharge(1, Family::kPhysical, 3 * kUnit).ok());
  // The next session begins with it.
  Start(1, 6);
  EXPECT_FALSE(flow_->Rests(1));
  EXPECT_EQ(Known(1).outside, 2u);
  ASSERT_TRUE(Lease(1, 5).ok());
  EXPECT_NE(Denial(1).find("2.0 MiB outside the pool"), std::string::npos) << Denial(1);
  ASSERT_TRUE(Uncharge(1, Family::kPhysical, 2 * kUnit).ok());
  ASSERT_TRUE(Lease(1, 5).ok());
  EXPECT_EQ(sink_.grants[1].size(), 1u);
}

TEST_F(FlowOutsideTest, ARestingAccountEndsWithItsProcess) {
  Start(1, 6);
  ASSERT_TRUE(Charge(1, Family::kPhysical, 3 * kUnit).ok());
  ASSERT_TRUE(flow_->Die(1, now_, /*parted=*/true));
  flow_->HolderGone(1, now_);
  EXPECT_FALSE(flow_->Rests(1));
  EXPECT_EQ(flow_->outside().charged(), 0u);
  EXPECT_FALSE(Uncharge(1, Family::kPhysical, kUnit).ok());
}

TEST_F(FlowOutsideTest, WhoLeavesUnitsBehindDoesNotRest) {
  Start(1, 6);
  ASSERT_TRUE(Lease(1, 2).ok());
  ASSERT_TRUE(Charge(1, Family::kPhysical, 3 * kUnit).ok());
  ASSERT_TRUE(flow_->Die(1, now_, /*parted=*/true));
  EXPECT_FALSE(flow_->Rests(1));
  EXPECT_EQ(Known(1).quarantined, 2u);
}

TEST_F(FlowOutsideTest, ADeadJobKeepsItsChargesUntilItsLastHolderIsGone) {
  Start(1);
  ASSERT_TRUE(Charge(1, Family::kArray, 9 * kUnit).ok());
  EXPECT_TRUE(flow_->Die(1, now_));
  Start(2);
  ASSERT_TRUE(Charge(2, Family::kArray, 2 * kUnit).ok());
  EXPECT_TRUE(sink_.charged[2].empty());
  flow_->HolderGone(1, now_);
  ASSERT_TRUE(Charge(2, Family::kArray, 2 * kUnit).ok());
  EXPECT_EQ(sink_.charged[2].size(), 1u);
}

TEST_F(FlowOutsideTest, ADeadJobThatIsWaitedForKeepsItsContextToo) {
  options_.context_bytes = 4 * kUnit;
  Restart();
  Start(1);
  ASSERT_TRUE(Lease(1, 2).ok());
  EXPECT_TRUE(flow_->Die(1, now_));
  EXPECT_EQ(flow_->outside().charged(1), 4 * kUnit);
  Start(2);
  ASSERT_TRUE(Charge(2, Family::kArray, 3 * kUnit).ok());
  EXPECT_TRUE(sink_.charged[2].empty()) << "beside two contexts 2 MiB are left";
  flow_->HolderGone(1, now_);
  ASSERT_TRUE(Charge(2, Family::kArray, 3 * kUnit).ok());
  EXPECT_EQ(sink_.charged[2].size(), 1u);
}

TEST_F(FlowOutsideTest, ContextsCostWhatTheDaemonWasTold) {
  options_.context_bytes = 4 * kUnit;
  Restart();
  Start(1, 20);
  EXPECT_EQ(flow_->outside().charged(1), 4 * kUnit);
  EXPECT_EQ(Known(1).outside, 0u) << "a context is no choice of the job";
  ASSERT_TRUE(Charge(1, Family::kContext, 1).ok());
  EXPECT_EQ(flow_->outside().charged(1), 8 * kUnit);
  Start(2);
  ASSERT_TRUE(Lease(2, 1).ok());
  EXPECT_NE(Denial(2).find("asks for 4.0 MiB outside the pool, where 2.0 MiB"), std::string::npos)
      << Denial(2);
  ASSERT_TRUE(Uncharge(1, Family::kContext, 1).ok());
  EXPECT_FALSE(flow_->Die(1, now_, /*parted=*/true)) << "its context is gone, says goodbye";
  EXPECT_EQ(flow_->outside().charged(), 0u);
}

TEST_F(FlowOutsideTest, WhoOwesNothingLeavesNoAccount) {
  Start(1);
  ASSERT_TRUE(Charge(1, Family::kArray, kUnit).ok());
  ASSERT_TRUE(Uncharge(1, Family::kArray, kUnit).ok());
  EXPECT_FALSE(flow_->Die(1, now_));
  EXPECT_TRUE(flow_->outside().jobs().empty());
}

TEST_F(FlowOutsideTest, AContextAloneGoesWithItsProcess) {
  options_.context_bytes = 4 * kUnit;
  Restart();
  Start(1);
  EXPECT_TRUE(flow_->Die(1, now_));
  EXPECT_EQ(flow_->ledger().Find(1), nullptr) << "nobody waits for it";
  EXPECT_EQ(flow_->outside().charged(1), 4 * kUnit);
  Start(1);
  EXPECT_EQ(flow_->outside().charged(1), 4 * kUnit) << "the one of the program before is gone";
  EXPECT_TRUE(flow_->Die(1, now_));
  flow_->HolderGone(1, now_);
  EXPECT_EQ(flow_->outside().charged(), 0u);
}

TEST_F(FlowOutsideTest, BreachesOfTheProtocol) {
  EXPECT_FALSE(Charge(1, Family::kArray, 1).ok()) << "has not begun";
  Start(1);
  EXPECT_FALSE(Charge(1, Family::kImported, 1).ok());
  EXPECT_FALSE(Charge(1, static_cast<Family>(7), 1).ok());
  EXPECT_FALSE(Charge(1, static_cast<Family>(0), 1).ok());
  EXPECT_FALSE(Uncharge(1, Family::kArray, 1).ok()) << "was never charged";
  protocol::Count count = {};
  count.family = static_cast<uint32_t>(Family::kHostPinned);
  count.bytes = 77;
  EXPECT_TRUE(flow_->OnCount(1, count).ok());
  EXPECT_EQ(flow_->Find(1)->counted.at(count.family), 77u);
  count.family = static_cast<uint32_t>(Family::kArray);
  EXPECT_FALSE(flow_->OnCount(1, count).ok());
}

}  // namespace
}  // namespace sluice::flow
