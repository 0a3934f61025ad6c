// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What is lent of a job's claim while it goes through its iteration (I5).
#include "noderuntime/flow/flow.h"
#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::Extent;
using scheduler::Phase;

constexpr uint32_t kLayers = 20;
constexpr Units kBase = 2;
constexpr uint64_t kIteration = 7;

/// Job 1 is past its gate with all that it needs at its peak, and claims a little more. Job 2 wants
/// all that is free.
class FlowClaimsTest : public FlowTest {
 protected:
  explicit FlowClaimsTest(scheduler::Claims claims = scheduler::Claims::kCurve) {
    options_.pool_units = 30;
    options_.claims = claims;
    Restart();
    sink_.host = true;
  }
  void Begin() {
    ASSERT_NE(Ready(1), 0u);
    for (const uint64_t known : {0u, 1u}) {
      ASSERT_NO_FATAL_FAILURE(ToItsPeak(known));
      Launch(kLayers + kLayers / 2);
      // What is behind it goes back, and what it held from there on is known.
      const Extent last = Leased(1).back();
      ASSERT_TRUE(Release(1, {{last.end() - kLayers / 2, kLayers / 2}}).ok());
      Launch(0);  // a look
      Launch(kLayers / 2);
    }
    Start(2, 28, kBase);
    ToGateZero(1, kIteration);  // and waits while job 2 is measured
    ASSERT_NE(Ready(2), 0u);
    ToGateZero(2, kIteration);
    ASSERT_EQ(Known(2).phase, Phase::kRunning);
    ASSERT_NO_FATAL_FAILURE(ToItsPeak(kIteration, true));
    const Units left = Known(1).terms.claim - Known(1).leased;
    ASSERT_GT(left, 0u);
    ASSERT_GT(flow_->ledger().free(), left);
    answers_ = sink_.grants[2].size();
    ASSERT_TRUE(Lease(2, flow_->ledger().free()).ok());
    ASSERT_FALSE(Answered()) << "job 1 may need " << left << " more";
  }
  /// Job 1 passes gate 0 and leases all that it will need.
  void ToItsPeak(uint64_t iteration, bool at_gate = false) {
    if (!at_gate) ToGateZero(1, iteration);
    ASSERT_EQ(Known(1).phase, Phase::kRunning);
    ASSERT_TRUE(Lease(1, kBase + kLayers - Known(1).leased).ok());
    launched_ = 0;
    Push(protocol::OpKind::kIteration, iteration);
  }
  uint32_t Ready(JobId job) {
    if (flow_->Find(job) == nullptr) Start(job, 28, kBase);
    EXPECT_TRUE(Lease(job, kBase).ok());
    clients_[job].Push(protocol::OpKind::kAlloc, kBase * kUnit);
    EXPECT_TRUE(Lease(job, kLayers).ok());
    base_[job] = {{Leased(job).front().offset, kBase}};
    return Measure(job, kLayers);
  }
  Extents Leased(JobId job) {
    return flow_->ledger().map().Held(job, scheduler::UnitState::kLeased);
  }
  void ToGateZero(JobId job, uint64_t iteration) {
    std::vector<protocol::Extent> rest;
    for (const auto& extent : scheduler::Subtract(Leased(job), base_[job])) {
      rest.push_back({extent.offset, extent.length});
    }
    if (!rest.empty()) {
      ASSERT_TRUE(Release(job, rest).ok());
    }
    ASSERT_TRUE(Gate(job, 0, clients_[job].profile(), iteration).ok());
  }
  void Push(protocol::OpKind kind, uint64_t value) { clients_[1].Push(kind, value); }
  /// Job 1 goes on by so many launches, up and down its triangle.
  void Launch(uint32_t launches) {
    for (uint32_t i = 0; i < launches; ++i, ++launched_) {
      const bool up = launched_ < kLayers;
      if (up) Push(protocol::OpKind::kAlloc, kUnit);
      clients_[1].Launch(up ? 100 + launched_ : 200 + 2 * kLayers - 1 - launched_, false);
      if (!up) Push(protocol::OpKind::kFree, kUnit);
    }
    now_ += kMs;
    flow_->ledger().jobs().size() > 1 ? flow_->PollFences(now_) : flow_->Tick(now_);
  }

  bool Answered() { return sink_.grants[2].size() > answers_; }

  uint32_t launched_ = 0;
  size_t answers_ = 0;
  std::map<JobId, Extents> base_;
};

TEST_F(FlowClaimsTest, WhatIsBehindAJobIsLent) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  EXPECT_EQ(flow_->urgency(), Urgency::kPlaces);
  Launch(kLayers);
  EXPECT_EQ(Known(1).terms.waived, 0u) << "it comes to its peak";
  EXPECT_FALSE(Answered());
  Launch(kLayers - 2);
  EXPECT_GT(Known(1).terms.waived, kLayers / 2);
  EXPECT_TRUE(Answered()) << "although job 1 has given back nothing yet";
  EXPECT_TRUE(scheduler::Audit(sink_.records).ok());
}

TEST_F(FlowClaimsTest, WhoNeedsWhatItWaivedAfterAllWaitsAsLongAsItTakes) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Launch(2 * kLayers - 2);
  ASSERT_TRUE(Answered());
  ASSERT_TRUE(Lease(1, Known(1).terms.claim - Known(1).leased).ok());
  for (int second = 0; second < 100; ++second) Pass(kS);
  EXPECT_TRUE(sink_.denials[1].empty()) << "it is inside its claim, and job 2 will give back";
}

TEST_F(FlowClaimsTest, NothingIsLentOfAnIterationThatIsOver) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Push(protocol::OpKind::kIteration, kIteration - 1);
  Launch(2 * kLayers - 2);
  EXPECT_EQ(Known(1).terms.waived, 0u);
  EXPECT_FALSE(Answered());
}

TEST_F(FlowClaimsTest, NothingIsLentOfWhoIsNotInsured) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  sink_.host = false;
  Launch(2 * kLayers - 2);
  EXPECT_EQ(Known(1).terms.waived, 0u);
  EXPECT_FALSE(Answered());
}

class FlowContractTest : public FlowClaimsTest {
 protected:
  FlowContractTest() : FlowClaimsTest(scheduler::Claims::kContract) {}
};

TEST_F(FlowContractTest, TheContractHoldsToTheTrough) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  EXPECT_EQ(flow_->urgency(), Urgency::kTimers) << "nobody has to look how far job 1 is";
  Launch(2 * kLayers - 2);
  flow_->Tick(now_);
  EXPECT_EQ(Known(1).terms.waived, 0u);
  EXPECT_FALSE(Answered());
}

}  // namespace
}  // namespace sluice::flow
