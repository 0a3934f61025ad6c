// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/flow/flow.h"

#include <algorithm>

#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::EventKind;
using scheduler::Phase;

TEST_F(FlowTest, TheFirstJobBeginsAtOnceWithThePoolAsItsLimit) {
  Start(1);
  EXPECT_EQ(Known(1).phase, Phase::kUnprofiled);
  EXPECT_EQ(clients_[1].daemon->limit_units.load(), 40u);
  ASSERT_TRUE(Lease(1, 4, 4).ok());
  ASSERT_EQ(sink_.grants[1].size(), 1u);
  EXPECT_EQ(TotalUnits(sink_.grants[1][0].extents), 4u);
  EXPECT_EQ(sink_.grants[1][0].gate, protocol::kNoGate);
  EXPECT_EQ(sink_.grants[1][0].epoch, 1u);
  EXPECT_EQ(sink_.grants[1][0].claim, 40u);
}

// The GPU is told who may touch a unit before the client is: else its first kernel is a violation.
TEST_F(FlowTest, TheHolderIsPublishedBeforeTheGrantIsSent) {
  Start(1);
  ASSERT_TRUE(Lease(1, 4).ok());
  EXPECT_EQ(sink_.order, (std::vector<std::string>{"holder 1", "grant 1"}));
}

TEST_F(FlowTest, BeyondItsLimitAJobIsDeniedAtOnceWithNumbers) {
  Start(1, 8);
  ASSERT_TRUE(Lease(1, 6).ok());
  ASSERT_TRUE(Lease(1, 3).ok());
  ASSERT_EQ(sink_.denials[1].size(), 1u);
  EXPECT_EQ(sink_.denials[1][0].first, protocol::DenyCode::kOverLimit);
  EXPECT_NE(sink_.denials[1][0].second.find("limit is 8.0 MiB"), std::string::npos);
  EXPECT_EQ(Known(1).leased, 6u);
}

// Its own units on their way back count against the limit: out of memory would be wrong, they come
// back.
TEST_F(FlowTest, ALeaseThatOnlyItsOwnFencesHinderWaitsForThem) {
  Start(1, 8);
  ASSERT_TRUE(Lease(1, 8).ok());
  ASSERT_TRUE(Release(1, {{0, 4}}, {{3, 0, 1}}).ok());
  ASSERT_TRUE(Lease(1, 4).ok());
  EXPECT_TRUE(sink_.denials[1].empty());
  EXPECT_EQ(sink_.grants[1].size(), 1u);
  EXPECT_EQ(flow_->urgency(), Urgency::kFences);
  clients_[1].mark->mark[3].store(1);
  flow_->PollFences(now_);
  EXPECT_EQ(sink_.grants[1].size(), 2u);
}

TEST_F(FlowTest, ReleasedUnitsAreHeldUntilEveryTermIsReached) {
  Start(1);
  ASSERT_TRUE(Lease(1, 8).ok());
  // Cyclic: the mark may wrap between now and the fence.
  clients_[1].mark->mark[5].store(~uint64_t{0});
  ASSERT_TRUE(Release(1, {{2, 3}}, {{5, 0, 1}, {6, 0, 2}}).ok());
  EXPECT_EQ(Known(1).unfenced, 3u);
  EXPECT_EQ(sink_.holders[2], 1u);
  clients_[1].mark->mark[5].store(1);
  flow_->PollFences(now_);
  EXPECT_EQ(Known(1).unfenced, 3u);
  clients_[1].mark->mark[6].store(2);
  flow_->PollFences(now_);
  EXPECT_EQ(Known(1).unfenced, 0u);
  EXPECT_EQ(Known(1).leased, 5u);
  EXPECT_EQ(sink_.holders[2], scheduler::kNoJob);
  EXPECT_EQ(sink_.holders[1], 1u);
  EXPECT_EQ(sink_.Count(EventKind::kFenced, 1), 1u);
  EXPECT_EQ(flow_->fences_pending(), 0u);
}

TEST_F(FlowTest, AReleaseWithoutTermsIsDoneAlready) {
  Start(1);
  ASSERT_TRUE(Lease(1, 8).ok());
  ASSERT_TRUE(Release(1, {{0, 8}}).ok());
  EXPECT_EQ(flow_->ledger().free(), 40u);
}

TEST_F(FlowTest, WithTheFaultFencesAreIgnored) {
  options_.faults.ignore_fences = true;
  Restart();
  Start(1);
  ASSERT_TRUE(Lease(1, 8).ok());
  ASSERT_TRUE(Release(1, {{0, 8}}, {{0, 0, 99}}).ok());
  EXPECT_EQ(flow_->ledger().free(), 40u);
}

TEST_F(FlowTest, ReleasingWhatIsNotHeldIsABreach) {
  Start(1);
  EXPECT_FALSE(Release(1, {{0, 1}}).ok());
  ASSERT_TRUE(Lease(1, 4).ok());
  EXPECT_FALSE(Release(1, {{3, 2}}).ok());
  EXPECT_FALSE(Release(1, {{100, 1}}).ok());
  EXPECT_FALSE(Release(1, {{0, 1}, {0, 1}}).ok());
  EXPECT_EQ(Known(1).leased, 4u);
  ASSERT_TRUE(Release(1, {{0, 1}}, {{0, 0, 5}}).ok());
  EXPECT_FALSE(Release(1, {{0, 1}}).ok()) << "given back twice";
}

TEST_F(FlowTest, FramesOfAJobThatHasNotBegunAreBreaches) {
  EXPECT_FALSE(Lease(9, 1).ok());
  EXPECT_FALSE(Gate(9, 0, 1).ok());
  EXPECT_FALSE(Release(9, {{0, 1}}).ok());
}

// An answer would lose its request to begin, and it would never be admitted.
TEST_F(FlowTest, AGateOfAJobThatWaitsToBeginIsABreach) {
  Start(1);
  ASSERT_TRUE(Lease(1, 10).ok());
  Start(2);
  ASSERT_EQ(Known(2).phase, Phase::kWaiting);
  EXPECT_FALSE(Gate(2, 0, 1).ok());
  EXPECT_EQ(flow_->requests().size(), 1u);
}

TEST_F(FlowTest, ASecondJobWaitsWhileTheFirstIsMeasuredAndIsToldSo) {
  Start(1);
  ASSERT_TRUE(Lease(1, 10).ok());
  Start(2);
  EXPECT_TRUE(clients_[1].flag(protocol::kPressure));
  ASSERT_TRUE(Lease(2, 5).ok());
  EXPECT_TRUE(sink_.grants[2].empty());
  EXPECT_EQ(sink_.Count(EventKind::kWait, 2), 1u);
  Pass(999 * kMs);
  EXPECT_TRUE(sink_.notices[2].empty());
  Pass(1 * kMs);
  ASSERT_EQ(sink_.notices[2].size(), 1u);
  EXPECT_EQ(sink_.notices[2][0].find("waiting"), 0u) << sink_.notices[2][0];
  EXPECT_NE(sink_.notices[2][0].find("job 1 'job1' holds 10.0 MiB"), std::string::npos);
  Pass(3 * kS);
  EXPECT_EQ(sink_.notices[2].size(), 1u) << "one line for one wait";
}

TEST_F(FlowTest, AJobThatCompilesIsWaitedForAndNotTakenForSmall) {
  Start(1);
  ASSERT_TRUE(Lease(1, 1).ok());
  clients_[1].Launch(1, false);
  Pass(kMs);
  Start(2);
  ASSERT_TRUE(Lease(2, 5).ok());
  for (int i = 0; i < 60; ++i) Pass(kS);
  EXPECT_FALSE(Known(1).settled);
  EXPECT_NE(flow_->WhyWaiting(2).find("at most 120 s without a sign of life"), std::string::npos)
      << flow_->WhyWaiting(2);
  ASSERT_TRUE(Lease(1, 30).ok());
  EXPECT_EQ(Known(1).leased, 31u);
}

TEST_F(FlowTest, AJobWithoutASignOfLifeIsNotWaitedForLongerThanItsPatience) {
  Start(1);
  ASSERT_TRUE(Lease(1, 10).ok());
  Start(2);
  ASSERT_TRUE(Lease(2, 5).ok());
  Pass(119 * kS);
  EXPECT_FALSE(Known(1).settled);
  clients_[1].Push(protocol::OpKind::kCopy, 8);  // it lives: the time starts anew
  Pass(kS);
  EXPECT_FALSE(Known(1).settled);
  Pass(119 * kS);
  EXPECT_FALSE(Known(1).settled);
  Pass(kS);
  EXPECT_TRUE(Known(1).settled);
  EXPECT_EQ(Known(1).limit, 11u);
  EXPECT_EQ(*(sink_.notices[1].end() - 2),
            "others do not wait for its iteration any more: nothing was heard of it for 120 s; it "
            "may hold at most 11.0 MiB while they need the rest");
  const auto settled = std::find_if(sink_.records.begin(), sink_.records.end(),
                                    [](const auto& r) { return r.event == EventKind::kSettle; });
  ASSERT_NE(settled, sink_.records.end());
  EXPECT_EQ(settled->text, "nothing was heard of it for 120 s");
  EXPECT_EQ(sink_.notices[1].back(), "limit is now 11.0 MiB");
  EXPECT_EQ(clients_[1].daemon->limit_units.load(), 11u);
  ASSERT_EQ(sink_.grants[2].size(), 1u) << "what it asked for while it waited comes with its start";
  EXPECT_EQ(TotalUnits(sink_.grants[2][0].extents), 5u);
}

// Nobody limited it, so it may grow again as far as the others' promises allow.
TEST_F(FlowTest, ASettledJobWithoutALimitMayGrow) {
  Start(1);
  ASSERT_TRUE(Lease(1, 10).ok());
  Pass(120 * kS);
  Start(2);
  Pass(kS);
  Pass(5 * kS);
  ASSERT_EQ(Known(1).limit, 11u);
  flow_->Die(2, now_);
  flow_->HolderGone(2, now_);
  ASSERT_TRUE(Lease(1, 15).ok());
  EXPECT_EQ(Known(1).leased, 25u);
  EXPECT_GE(Known(1).limit, 25u);
}

TEST_F(FlowTest, ANewcomerThatFitsBesideNobodyIsRefusedWithTheHolders) {
  Start(1, 30);
  ASSERT_TRUE(Lease(1, 30).ok());
  Start(2, 20, 20);
  ASSERT_TRUE(Lease(2, 5).ok());
  EXPECT_TRUE(sink_.denials[2].empty()) << "job 1 may still turn out to need less";
  Pass(kS);
  Pass(120 * kS);
  ASSERT_EQ(sink_.denials[2].size(), 1u);
  EXPECT_EQ(sink_.denials[2][0].first, protocol::DenyCode::kRefused);
  EXPECT_NE(sink_.denials[2][0].second.find("job 1 'job1'"), std::string::npos);
  ASSERT_TRUE(Lease(2, 1).ok());
  EXPECT_EQ(sink_.denials[2].size(), 2u) << "a refused job stays refused";
  EXPECT_EQ(flow_->WhyWaiting(2), "") << "and waits for nothing";
}

// What one job has is only lent out: whoever was admitted beside it waits, however long it idles.
TEST_F(FlowTest, ANewcomerThatWasAdmittedWaitsForAnIdleHolderAsLongAsItTakes) {
  Start(1, 30);
  ASSERT_TRUE(Lease(1, 30).ok());
  Start(2, 25);
  ASSERT_TRUE(Lease(2, 20).ok());
  for (int i = 0; i < 20; ++i) Pass(30 * kS);
  EXPECT_TRUE(sink_.denials[2].empty());
  EXPECT_TRUE(sink_.grants[2].empty());
  EXPECT_EQ(sink_.notices[2].size(), 1u);
  flow_->Die(1, now_);
  flow_->HolderGone(1, now_);
  ASSERT_EQ(sink_.grants[2].size(), 1u);
  EXPECT_EQ(TotalUnits(sink_.grants[2][0].extents), 20u);
}

TEST_F(FlowTest, RegistrationsBeyondThePoolAreRefused) {
  Start(1, 0, 30);
  EXPECT_TRUE(flow_->CheckRegistration({0, "b", 0, 10}).ok());
  const Status status = flow_->CheckRegistration({0, "b", 0, 11});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("request 11.0 MiB"), std::string::npos);
}

TEST_F(FlowTest, ADeadJobsMemoryIsQuarantinedUntilItsLastHolderIsGone) {
  Start(1);
  ASSERT_TRUE(Lease(1, 30).ok());
  EXPECT_TRUE(flow_->Die(1, now_));
  EXPECT_EQ(Known(1).quarantined, 30u);
  EXPECT_EQ(sink_.holders[0], 1u);
  Start(2);
  ASSERT_TRUE(Lease(2, 20).ok());
  EXPECT_TRUE(sink_.grants[2].empty());
  flow_->HolderGone(1, now_);
  EXPECT_EQ(flow_->ledger().Find(1), nullptr);
  ASSERT_EQ(sink_.grants[2].size(), 1u);
  // Taken from the dead before it is given to the next.
  EXPECT_EQ(sink_.order.back(), "grant 2");
  EXPECT_EQ(sink_.order[sink_.order.size() - 3], "holder 0");
}

// Only of the dead is somebody waited for.
TEST_F(FlowTest, TheHolderOfALivingJobIsNotItsLast) {
  Start(1);
  ASSERT_TRUE(Lease(1, 30).ok());
  const size_t records = sink_.records.size();
  flow_->HolderGone(1, now_);
  EXPECT_EQ(Known(1).leased, 30u);
  EXPECT_EQ(sink_.holders[0], 1u);
  EXPECT_EQ(sink_.records.size(), records);
  EXPECT_TRUE(flow_->Die(1, now_));
  EXPECT_EQ(Known(1).quarantined, 30u);
}

TEST_F(FlowTest, WithTheFaultADeadJobsMemoryIsFreeAtOnce) {
  options_.faults.skip_quarantine = true;
  Restart();
  Start(1);
  ASSERT_TRUE(Lease(1, 30).ok());
  EXPECT_FALSE(flow_->Die(1, now_));
  EXPECT_EQ(flow_->ledger().free(), 40u);
}

// Everything was given back and the GPU is done with it: there is nothing to wait for.
TEST_F(FlowTest, AJobThatHoldsNothingAnyMoreLeavesAtOnce) {
  Start(1);
  ASSERT_TRUE(Lease(1, 30).ok());
  ASSERT_TRUE(Release(1, {{0, 30}}, {{3, 0, 1}}).ok());
  clients_[1].mark->mark[3].store(1);  // reached, but nobody has looked
  EXPECT_FALSE(flow_->Die(1, now_));
  EXPECT_EQ(sink_.Count(EventKind::kFenced, 1), 1u);
  EXPECT_EQ(sink_.Count(EventKind::kLeave, 1), 1u);
  EXPECT_EQ(sink_.Count(EventKind::kDeath, 1), 0u);
  EXPECT_EQ(flow_->ledger().free(), 40u);
  EXPECT_EQ(flow_->fences_pending(), 0u);
}

TEST_F(FlowTest, AJobWhoseFencesAreNotReachedIsQuarantined) {
  Start(1);
  ASSERT_TRUE(Lease(1, 30).ok());
  ASSERT_TRUE(Release(1, {{0, 30}}, {{3, 0, 1}}).ok());
  EXPECT_TRUE(flow_->Die(1, now_));
  EXPECT_EQ(Known(1).quarantined, 30u);
}

// Freed one by one before it left, its spare unit would be a hole in what is free, and the run that
// it was promised (and does not want any more) would be gone.
TEST_F(FlowTest, ALeavingJobsSpareUnitsBreakNoPromise) {
  Start(1, 8, 8);
  ASSERT_TRUE(Lease(1, 3).ok());
  Start(2);
  Pass(120 * kS);  // the first one is taken to hold its limit for good
  Pass(6 * kS);
  ASSERT_TRUE(Lease(2, 1).ok());
  ASSERT_TRUE(Lease(1, 2).ok());
  ASSERT_EQ(Known(1).leased, 5u);
  ASSERT_EQ(sink_.grants[2].back().extents, (Extents{{3, 1}}));
  ASSERT_TRUE(Release(2, {{3, 1}}).ok());
  ASSERT_EQ(Known(2).spare, 1u);
  EXPECT_FALSE(flow_->Die(2, now_));
  EXPECT_EQ(flow_->ledger().free(), 35u);
  const scheduler::AuditReport report = scheduler::Audit(sink_.records);
  for (const auto& violation : report.violations) ADD_FAILURE() << violation.text;
}

TEST_F(FlowTest, AJobThatNeverHeldAnythingLeavesWithoutATrace) {
  Start(1, 30);
  ASSERT_TRUE(Lease(1, 1).ok());
  Start(2);
  EXPECT_FALSE(flow_->Die(2, now_));
  EXPECT_EQ(sink_.Count(EventKind::kLeave, 2), 1u);
  EXPECT_EQ(flow_->ledger().Find(2), nullptr);
}

// A forked child may keep a dead job's memory for hours.
TEST_F(FlowTest, ANewcomerWithoutALimitBeginsBesideAQuarantineThatLasts) {
  Start(1);
  ASSERT_TRUE(Lease(1, 30).ok());
  flow_->Die(1, now_);
  Start(2);
  ASSERT_TRUE(Lease(2, 5).ok());
  Pass(900 * kMs);
  EXPECT_TRUE(sink_.grants[2].empty()) << "mostly it lasts for milliseconds";
  Pass(200 * kMs);
  ASSERT_EQ(sink_.grants[2].size(), 1u);
  EXPECT_EQ(Known(2).limit, 10u);
}

TEST_F(FlowTest, WaitingForWhatNobodyPromisedIsBounded) {
  options_.lease_wait_ns = 3 * kS;
  Restart();
  Start(1);
  ASSERT_TRUE(Lease(1, 30).ok());
  flow_->Die(1, now_);  // its last holder lives on
  Start(2);
  Pass(1100 * kMs);
  ASSERT_TRUE(Lease(2, 10).ok());
  ASSERT_EQ(sink_.grants[2].size(), 1u);
  ASSERT_TRUE(Lease(2, 5).ok());
  Pass(1800 * kMs);
  EXPECT_TRUE(sink_.denials[2].empty());
  Pass(100 * kMs);
  ASSERT_EQ(sink_.denials[2].size(), 1u) << "3 s after the death";
  EXPECT_EQ(sink_.denials[2][0].first, protocol::DenyCode::kExhausted);
  EXPECT_NE(sink_.denials[2][0].second.find("its process ended"), std::string::npos);
  EXPECT_EQ(sink_.Count(EventKind::kDeny, 2), 1u);
}

TEST_F(FlowTest, EagerLendingAndCreditOffAreFlags) {
  Start(1);
  EXPECT_FALSE(clients_[1].flag(protocol::kCreditOff));
  options_.lend_eagerly = true;
  options_.credit = false;
  Restart();
  clients_.clear();
  Start(1);
  EXPECT_TRUE(clients_[1].flag(protocol::kPressure));
  EXPECT_TRUE(clients_[1].flag(protocol::kCreditOff));
}

}  // namespace
}  // namespace sluice::flow
