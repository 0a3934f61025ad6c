// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Who waits for the dead and for the idle, and for how long.
#include <algorithm>

#include "noderuntime/flow/flow.h"
#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::EventKind;
using scheduler::Phase;

constexpr uint32_t kLayers = 20;
constexpr Units kBase = 2;

/// Job 1 has a profile (a base of 2 units, a claim of 25 of the pool's 40) and stands at its gate;
/// job 2 has none.
class FlowLivenessTest : public FlowTest {
 protected:
  void Begin(Units limit_of_the_other) {
    Restart();
    Start(1);
    ASSERT_TRUE(Lease(1, kBase).ok());
    clients_[1].Push(protocol::OpKind::kAlloc, kBase * kUnit);
    ASSERT_TRUE(Lease(1, kLayers).ok());
    profile_ = Measure(1, kLayers);
    ASSERT_NE(profile_, 0u);
    Start(2, limit_of_the_other);
    Trough();
    ASSERT_EQ(Known(1).phase, Phase::kParked);
    ASSERT_EQ(Known(2).phase, Phase::kUnprofiled);
  }
  void Trough() {
    const Extents held = flow_->ledger().map().Held(1, scheduler::UnitState::kLeased);
    std::vector<protocol::Extent> extents;
    for (const auto& extent : scheduler::Subtract(held, {{0, kBase}}))
      extents.push_back({extent.offset, extent.length});
    if (!extents.empty()) {
      ASSERT_TRUE(Release(1, extents).ok());
    }
    ASSERT_TRUE(Gate(1, 0, profile_, iteration_++).ok());
  }
  /// What a client can ask for without end and without computing: what is refused, and a unit that
  /// it gives back and takes again.
  void AskForNothing() {
    ASSERT_TRUE(Charge(2, protocol::Family::kArray, uint64_t{1} << 40).ok());
    ASSERT_TRUE(Lease(2, 100).ok());
    const scheduler::Extent held =
        flow_->ledger().map().Held(2, scheduler::UnitState::kLeased).back();
    ASSERT_TRUE(Release(2, {{held.end() - 1, 1}}).ok());
    ASSERT_TRUE(Lease(2, 1).ok());
  }
  void ExpectSoundLog() {
    const scheduler::AuditReport report = scheduler::Audit(sink_.records);
    for (const auto& violation : report.violations) ADD_FAILURE() << violation.text;
  }
  bool Runs() { return Known(1).phase == Phase::kRunning; }

  uint32_t profile_ = 0;
  uint64_t iteration_ = 0;
};

// the dead

// Job 2's child keeps 15 units that leave runs of 3, 2 and 18: enough for the 23 that job 1 needs,
// but not in every shape that it may ask for.
TEST_F(FlowLivenessTest, BesideADeadJobsChildAPeerGoesOnInPieces) {
  Begin(20);
  ASSERT_TRUE(Lease(2, 20, 20).ok());
  ASSERT_EQ(sink_.grants[2].back().extents, (Extents{{2, 20}}));
  ASSERT_TRUE(Release(2, {{5, 3}}).ok());
  ASSERT_TRUE(Release(2, {{12, 2}}).ok());
  ASSERT_TRUE(flow_->Die(2, now_));
  const Extents quarantine = flow_->ledger().map().Held(2);
  ASSERT_EQ(TotalUnits(quarantine), 15u);
  Pass(900 * kMs);
  EXPECT_FALSE(Runs()) << "mostly it lasts for milliseconds";
  Pass(200 * kMs);
  ASSERT_TRUE(Runs());
  EXPECT_EQ(Known(1).terms.claim, 25u) << "all that it needs is there";
  ASSERT_TRUE(Lease(1, Known(1).terms.claim - Known(1).leased, 1).ok());
  EXPECT_EQ(Known(1).leased, 25u);
  EXPECT_TRUE(sink_.denials[1].empty());
  EXPECT_TRUE(Intersect(flow_->ledger().map().Held(1), quarantine).empty());
  EXPECT_EQ(flow_->ledger().map().Held(2), quarantine);
  ExpectSoundLog();
}

TEST_F(FlowLivenessTest, WhatDoesNotFitBesideADeadJobsChildWaitsAndThenGoesOnWithLess) {
  options_.lease_wait_ns = 3 * kS;
  Begin(38);
  ASSERT_TRUE(Lease(2, 30).ok());
  ASSERT_TRUE(flow_->Die(2, now_));
  Pass(2900 * kMs);
  EXPECT_FALSE(Runs()) << "its claim may still be had";
  ASSERT_FALSE(sink_.notices[1].empty());
  EXPECT_NE(flow_->WhyWaiting(1).find("a process that it started lives on"), std::string::npos)
      << flow_->WhyWaiting(1);
  Pass(100 * kMs);
  ASSERT_TRUE(Runs());
  EXPECT_EQ(Known(1).terms.claim, 10u) << "what is free, and its base";
  const Units free = flow_->ledger().free();
  ASSERT_TRUE(Lease(1, free).ok());
  EXPECT_EQ(Known(1).leased, 10u) << "its request and more";
  ASSERT_TRUE(Lease(1, 1).ok());
  ASSERT_EQ(sink_.denials[1].size(), 1u) << "and what is not there it is refused at once";
  EXPECT_EQ(sink_.denials[1][0].first, protocol::DenyCode::kExhausted);
  EXPECT_NE(sink_.denials[1][0].second.find("job 2 'job2' holds 30.0 MiB"), std::string::npos)
      << sink_.denials[1][0].second;
  flow_->HolderGone(2, now_);
  Trough();
  EXPECT_EQ(Known(1).terms.claim, 25u) << "the child is gone: all as before";
  ExpectSoundLog();
}

// the idle

TEST_F(FlowLivenessTest, WhoeverOnlyAsksHoldsAPeerUpForSecondsOnly) {
  Begin(0);
  ASSERT_TRUE(Lease(2, 4).ok());
  for (int i = 0; i < 49; ++i) {
    Pass(100 * kMs);
    AskForNothing();
    ASSERT_FALSE(Runs()) << "it may be about to compute";
  }
  Pass(100 * kMs);
  ASSERT_TRUE(Runs()) << "at its gate: " << flow_->WhyWaiting(1);
  for (int i = 0; i < 1000; ++i) {
    Pass(100 * kMs);
    AskForNothing();
    Trough();
    ASSERT_TRUE(Runs()) << "after " << i << " iterations: " << flow_->WhyWaiting(1);
  }
  EXPECT_EQ(Known(2).terms.claim, 38u) << "nothing was taken from it";
  EXPECT_FALSE(Known(2).settled);
  EXPECT_LE(sink_.Count(EventKind::kQuiet, 2), 1u);
  ExpectSoundLog();
}

TEST_F(FlowLivenessTest, AQuietJobThatComputesAgainIsMeasuredAlone) {
  Begin(0);
  ASSERT_TRUE(Lease(2, 4).ok());
  Pass(5 * kS);
  ASSERT_TRUE(Runs());
  clients_[2].Launch(1, false);
  Pass(kMs);
  EXPECT_EQ(sink_.Count(EventKind::kBusy, 2), 1u);
  Trough();
  EXPECT_FALSE(Runs());
  Pass(4900 * kMs);
  EXPECT_FALSE(Runs());
  Pass(200 * kMs);
  EXPECT_TRUE(Runs());
  ExpectSoundLog();
}

// A first step compiles for a minute beside a job that goes on; then it grows to all that it may.
TEST_F(FlowLivenessTest, AJobThatWasQuietGetsItsMemoryWhenTheOthersAreBack) {
  Begin(0);
  ASSERT_TRUE(Lease(2, 4).ok());
  for (int i = 0; i < 60; ++i) {
    Pass(kS);
    if (Runs()) Trough();
  }
  ASSERT_TRUE(Runs());
  ASSERT_TRUE(Lease(1, 20).ok());
  clients_[2].Launch(1, false);
  ASSERT_TRUE(Lease(2, 34, 34).ok());
  // An iteration as long as nobody waits for what was not promised.
  Pass(40 * kS);
  EXPECT_TRUE(sink_.denials[2].empty()) << sink_.denials[2][0].second;
  Trough();
  EXPECT_EQ(Known(2).leased, 38u);
  EXPECT_FALSE(Runs()) << "it computes, so the others stand still";
  ExpectSoundLog();
}

// Job 1 loses its profile in the middle of its iteration and stands still: it may go on, so it is
// not hopeless, but nothing says when it will be back.
TEST_F(FlowLivenessTest, WhatNobodyWillGiveBackIsWaitedForOnlySoLong) {
  options_.lease_wait_ns = 3 * kS;
  Begin(0);
  ASSERT_TRUE(Lease(2, 4).ok());
  Pass(5 * kS);
  ASSERT_TRUE(Runs());
  ASSERT_TRUE(Lease(1, 20).ok());
  ASSERT_TRUE(Lease(2, 34).ok());
  Pass(4 * kS);
  EXPECT_TRUE(sink_.denials[2].empty()) << "job 1 will be back at its trough";
  protocol::Mismatch mismatch = {};
  mismatch.profile = profile_;
  ASSERT_TRUE(flow_->OnMismatch(1, mismatch, now_).ok());
  Pass(kMs);
  ASSERT_EQ(sink_.denials[2].size(), 1u);
  EXPECT_EQ(sink_.denials[2][0].first, protocol::DenyCode::kExhausted);
  EXPECT_NE(sink_.denials[2][0].second.find("gave up after 3 s"), std::string::npos);
  EXPECT_EQ(sink_.Count(EventKind::kDeny, 2), 1u);
}

// A newcomer is waited for as long as its patience says, whatever it asks for meanwhile.
TEST_F(FlowLivenessTest, ToAskIsNoSignOfLife) {
  Start(2, 15);
  ASSERT_TRUE(Lease(2, 15).ok());
  Start(3);
  Pass(kMs);
  for (int i = 0; i < 119; ++i) {
    Pass(kS);
    AskForNothing();
    ASSERT_FALSE(Known(2).settled) << "after " << i + 1 << " s";
  }
  Pass(kS);
  EXPECT_TRUE(Known(2).settled);
  EXPECT_EQ(Known(3).phase, Phase::kUnprofiled);
  ExpectSoundLog();
}

}  // namespace
}  // namespace sluice::flow
