// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/flow/flow.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

constexpr uint32_t kLayers = 20;

class FlowCourseTest : public FlowTest {
 protected:
  FlowCourseTest() {
    options_.pool_units = 44;
    options_.policy.policy = "timeshift";
    options_.policy.budget_steps = 1;
    Restart();
  }
  /// Holds 22 units and is known: two units of base and a triangle of 20.
  uint32_t Measured(JobId job) {
    Start(job, 24, 2);
    EXPECT_TRUE(Lease(job, 2).ok());
    clients_[job].Push(protocol::OpKind::kAlloc, 2 * kUnit);
    EXPECT_TRUE(Lease(job, kLayers).ok());
    return Measure(job, kLayers);
  }
  /// Gives back all but its first two units and goes to gate 0.
  void Trough(JobId job, uint32_t profile) {
    const Extents held = flow_->ledger().map().Held(job, scheduler::UnitState::kLeased);
    const scheduler::Units first = held.front().offset;
    std::vector<protocol::Extent> extents;
    for (const auto& extent : scheduler::Subtract(held, {{first, 2}})) {
      extents.push_back({extent.offset, extent.length});
    }
    if (!extents.empty()) {
      ASSERT_TRUE(Release(job, extents).ok());
    }
    ASSERT_TRUE(Gate(job, 0, profile).ok());
  }
  bool Runs(JobId job) { return Known(job).phase == scheduler::Phase::kRunning; }
};

TEST_F(FlowCourseTest, AnIterationIsPutOffUntilWhatIsPredictedFits) {
  const uint32_t first = Measured(1);
  ASSERT_NE(first, 0u);
  Trough(1, first);
  Start(2, 24, 2);
  Trough(1, first);  // and waits while job 2 is measured
  ASSERT_FALSE(Runs(1));
  EXPECT_TRUE(Lease(2, 2).ok());
  clients_[2].Push(protocol::OpKind::kAlloc, 2 * kUnit);
  EXPECT_TRUE(Lease(2, kLayers).ok());
  const uint32_t second = Measure(2, kLayers);
  ASSERT_NE(second, 0u);
  EXPECT_EQ(flow_->again_at_ns(), 0u) << "nothing is to come by itself";

  Trough(2, second);
  ASSERT_TRUE(Runs(1)) << "it came first";
  ASSERT_FALSE(Runs(2)) << "both peaks are more than the pool";
  // An iteration alone takes 2 ms.
  const uint64_t at = flow_->again_at_ns();
  const uint64_t alone_until = now_ + 2 * kMs;
  ASSERT_GT(at, now_);
  EXPECT_LT(at, alone_until);
  EXPECT_GE(at, now_ + kMs / 2) << "a late job does not keep the daemon busy";
  now_ = at - 1;
  flow_->PollFences(now_);
  EXPECT_FALSE(Runs(2));
  // Job 1 is where it was expected to be: it has passed its gates and given back what is behind it.
  auto image = std::make_unique<protocol::ProfileImage>();
  ASSERT_TRUE(protocol::ReadProfile(*clients_[1].daemon, image.get()));
  for (uint32_t gate = 1; gate < image->gate_count; ++gate) {
    ASSERT_TRUE(Gate(1, gate, first).ok());
  }
  const Extents held = flow_->ledger().map().Held(1, scheduler::UnitState::kLeased);
  ASSERT_GT(scheduler::TotalUnits(held), 3u);
  for (now_ = at; now_ < alone_until; now_ = flow_->again_at_ns()) {
    flow_->PollFences(now_);
    if (Runs(2)) break;
    ASSERT_GT(flow_->again_at_ns(), now_);
  }
  EXPECT_TRUE(Runs(2)) << flow_->WhyWaiting(2);
}

}  // namespace
}  // namespace sluice::flow
