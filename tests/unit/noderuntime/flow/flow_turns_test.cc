// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Where jobs take turns, a job has its whole iteration's memory from gate 0 on.
#include "intercept/protocol/page_access.h"
#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::Extent;
using scheduler::Extents;

constexpr uint32_t kLayers = 20;
constexpr Units kBase = 2;

class FlowTurnsTest : public FlowTest {
 protected:
  void ByPolicy(const std::string& policy, uint32_t lanes = 2) {
    options_.policy.policy = policy;
    options_.policy.lanes = lanes;
    Restart();
    sink_.host = true;
  }
  /// Measured, and at its first trough with its base alone.
  void Begin(JobId job) {
    Start(job);
    ASSERT_TRUE(Lease(job, kBase).ok());
    clients_[job].Push(protocol::OpKind::kAlloc, kBase * kUnit);
    ASSERT_TRUE(Lease(job, kLayers).ok());
    ASSERT_NE(Measure(job, kLayers), 0u);
  }
  const protocol::ProfileImage& Told(JobId job) {
    EXPECT_TRUE(protocol::ReadProfile(*clients_[job].daemon, image_.get()));
    return *image_;
  }
  Units Peak(JobId job) { return flow_->Find(job)->published->plan.peak_units; }
  void Change(const std::string& policy, uint32_t lanes) {
    Way way = flow_->way();
    way.policy = policy;
    way.lanes = lanes;
    ASSERT_TRUE(flow_->SetWay(way, now_).ok());
  }
  /// Whether all gates ask for the peak.
  bool ToldThePeak(JobId job) {
    const protocol::ProfileImage& image = Told(job);
    for (uint32_t i = 0; i < image.gate_count; ++i) {
      if (image.gates[i].need_units != Peak(job)) return false;
    }
    return image.gate_count > 1;
  }
  /// Job 1 keeps so much.
  void GiveBackTo(Units keep) {
    std::vector<protocol::Extent> rest;
    for (const Extent& extent : flow_->ledger().map().Held(1, scheduler::UnitState::kLeased)) {
      const Units stays = std::min(keep, extent.length);
      keep -= stays;
      if (extent.length > stays) rest.push_back({extent.offset + stays, extent.length - stays});
    }
    if (!rest.empty()) {
      ASSERT_TRUE(Release(1, rest).ok());
    }
    Pass(kMs);
  }
  void ToGateZero(JobId job, uint64_t iteration) {
    const Extents leased = flow_->ledger().map().Held(job, scheduler::UnitState::kLeased);
    std::vector<protocol::Extent> rest;
    for (const auto& extent : scheduler::Subtract(leased, {{leased.front().offset, kBase}})) {
      rest.push_back({extent.offset, extent.length});
    }
    if (!rest.empty()) {
      ASSERT_TRUE(Release(job, rest).ok());
    }
    ASSERT_TRUE(Gate(job, 0, clients_[job].profile(), iteration).ok());
  }

  std::unique_ptr<protocol::ProfileImage> image_ = std::make_unique<protocol::ProfileImage>();
};

TEST_F(FlowTurnsTest, AllOfTheIterationIsGrantedAtGateZero) {
  ByPolicy("temporal");
  ASSERT_NO_FATAL_FAILURE(Begin(1));
  EXPECT_TRUE(ToldThePeak(1));
  EXPECT_EQ(Told(1).credit_ns, ~uint64_t{0}) << "nobody waits for what its GPU has not passed";
  ASSERT_NO_FATAL_FAILURE(ToGateZero(1, 0));
  EXPECT_EQ(Known(1).phase, scheduler::Phase::kRunning);
  EXPECT_EQ(Known(1).leased, Peak(1));
  EXPECT_TRUE(scheduler::Audit(sink_.records).ok());
}

TEST_F(FlowTurnsTest, OtherwiseWhatTheFirstGroupNeeds) {
  ByPolicy("flow");
  ASSERT_NO_FATAL_FAILURE(Begin(1));
  EXPECT_FALSE(ToldThePeak(1));
  EXPECT_LT(Told(1).credit_ns, ~uint64_t{0});
  ASSERT_NO_FATAL_FAILURE(ToGateZero(1, 0));
  EXPECT_LT(Known(1).leased, Peak(1));
}

TEST_F(FlowTurnsTest, OneLaneIsTakingTurnsToo) {
  ByPolicy("flow", 1);
  ASSERT_NO_FATAL_FAILURE(Begin(1));
  EXPECT_TRUE(ToldThePeak(1));
}

TEST_F(FlowTurnsTest, ACreditThatWasGivenStays) {
  options_.credit_ns = 77'000;
  ByPolicy("temporal");
  ASSERT_NO_FATAL_FAILURE(Begin(1));
  EXPECT_TRUE(ToldThePeak(1));
  EXPECT_EQ(Told(1).credit_ns, 77'000u);
}

TEST_F(FlowTurnsTest, AnotherPolicyIsToldAtTheNextTrough) {
  ByPolicy("flow");
  ASSERT_NO_FATAL_FAILURE(Begin(1));
  const protocol::ProfileImage before = Told(1);
  Change("temporal", 1);
  EXPECT_TRUE(ToldThePeak(1));
  EXPECT_EQ(Told(1).profile_id, before.profile_id) << "it is followed on";
  ASSERT_NO_FATAL_FAILURE(ToGateZero(1, 0));
  Change("flow", 2);
  EXPECT_TRUE(ToldThePeak(1)) << "an iteration ends as it began";
  ASSERT_NO_FATAL_FAILURE(ToGateZero(1, 1));
  for (uint32_t i = 0; i < before.gate_count; ++i) {
    EXPECT_EQ(Told(1).gates[i].need_units, before.gates[i].need_units);
  }
  EXPECT_EQ(Told(1).credit_ns, before.credit_ns);
}

TEST_F(FlowTurnsTest, WhoStandsAtItsGateAsksForWhatIsTrueNow) {
  ByPolicy("temporal");
  ASSERT_NO_FATAL_FAILURE(Begin(1));
  ASSERT_NO_FATAL_FAILURE(ToGateZero(1, 0));
  ASSERT_EQ(Known(1).leased, Peak(1));
  Start(2);
  ASSERT_NO_FATAL_FAILURE(ToGateZero(1, 1));  // and waits while job 2 is measured
  ASSERT_NO_FATAL_FAILURE(Begin(2));
  ASSERT_NO_FATAL_FAILURE(ToGateZero(2, 0));
  ASSERT_EQ(Known(1).phase, scheduler::Phase::kRunning);
  ASSERT_EQ(Known(2).phase, scheduler::Phase::kParked) << "it is the turn of job 1";
  ASSERT_LT(flow_->ledger().free(), Peak(2) - Known(2).leased) << "not beside job 1";
  Change("flow", 2);
  EXPECT_EQ(Known(2).phase, scheduler::Phase::kRunning);
  EXPECT_LT(Known(2).leased, Peak(2)) << "the first group's need";
  EXPECT_TRUE(scheduler::Audit(sink_.records).ok());
}

// Its base is more than it was when job 2 came to its gate: what is left for job 2 is less then.
TEST_F(FlowTurnsTest, WhoWaitsAsksForWhatItMayClaim) {
  ByPolicy("temporal");
  ASSERT_NO_FATAL_FAILURE(Begin(1));
  ASSERT_NO_FATAL_FAILURE(ToGateZero(1, 0));
  Start(2);
  ASSERT_NO_FATAL_FAILURE(ToGateZero(1, 1));
  ASSERT_NO_FATAL_FAILURE(Begin(2));
  ASSERT_NO_FATAL_FAILURE(ToGateZero(2, 0));
  ASSERT_EQ(Known(2).phase, scheduler::Phase::kParked);
  ASSERT_NO_FATAL_FAILURE(GiveBackTo(options_.pool_units - Peak(2) + 1));
  ASSERT_TRUE(Gate(1, 0, clients_[1].profile(), 2).ok());
  EXPECT_EQ(Known(2).phase, scheduler::Phase::kRunning);
  EXPECT_LT(Known(2).leased, Peak(2));
}

// What it did not come to hold lets others go on beside it.
TEST_F(FlowTurnsTest, WhoStoodStillInItsIterationHoldsNoMoreThanItNeeds) {
  ByPolicy("temporal");
  ASSERT_NO_FATAL_FAILURE(Begin(1));
  ASSERT_NO_FATAL_FAILURE(ToGateZero(1, 0));
  ASSERT_EQ(Known(1).leased, Peak(1));
  Start(2);
  Pass(options_.patience.quiet_ns + kS);
  ASSERT_TRUE(flow_->Find(1)->stood_still);
  ASSERT_NO_FATAL_FAILURE(ToGateZero(1, 1));
  EXPECT_FALSE(ToldThePeak(1));
  ASSERT_NO_FATAL_FAILURE(Begin(2));
  EXPECT_EQ(Known(1).phase, scheduler::Phase::kParked);
  ASSERT_NO_FATAL_FAILURE(ToGateZero(2, 0));
  EXPECT_LT(Known(1).leased, Peak(1));
}

// It holds more than where it is by its profile: what it held there under another policy says
// nothing about this iteration, and the other way round.
TEST_F(FlowTurnsTest, NothingIsWaivedOfAWholeIteration) {
  options_.claims = scheduler::Claims::kCurve;
  options_.lend_eagerly = true;
  ByPolicy("flow");
  ASSERT_NO_FATAL_FAILURE(Begin(1));
  uint64_t iteration = 0;
  Units waived = 0;
  const auto iterate = [&] {
    ASSERT_NO_FATAL_FAILURE(ToGateZero(1, iteration));
    if (Known(1).leased < Peak(1)) {
      ASSERT_TRUE(Lease(1, Peak(1) - Known(1).leased).ok());
    }
    const bool whole = ToldThePeak(1);
    clients_[1].Push(protocol::OpKind::kIteration, iteration++);
    for (uint32_t i = 0; i < kLayers; ++i) {
      clients_[1].Push(protocol::OpKind::kAlloc, kUnit);
      clients_[1].Launch(100 + i, false);
    }
    for (uint32_t i = kLayers; i-- > 0;) {
      clients_[1].Launch(200 + i, false);
      clients_[1].Push(protocol::OpKind::kFree, kUnit);
      Pass(kMs);
      // As its profile says, and a little later.
      if (!whole && i % 2 == 0 && i > 0) {
        ASSERT_NO_FATAL_FAILURE(GiveBackTo(i + 6));
      }
      if (i == 1) waived = Known(1).terms.waived;
    }
    Pass(kMs);
  };
  for (int i = 0; i < 4; ++i) ASSERT_NO_FATAL_FAILURE(iterate());
  ASSERT_TRUE(flow_->Find(1)->held.known());
  ASSERT_GT(waived, 0u) << "as who gives back";
  const Units seen = flow_->Find(1)->held.From(1);
  Change("temporal", 1);
  ASSERT_NO_FATAL_FAILURE(iterate());
  EXPECT_EQ(waived, 0u);
  EXPECT_FALSE(flow_->Find(1)->held.known());
  Change("flow", 2);
  ASSERT_NO_FATAL_FAILURE(iterate());
  EXPECT_GT(waived, 0u) << "what was held before is remembered";
  EXPECT_EQ(flow_->Find(1)->held.From(1), seen);
  EXPECT_TRUE(scheduler::Audit(sink_.records).ok());
}

}  // namespace
}  // namespace sluice::flow
