// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A job that comes to a standstill in the middle of its iteration (I6).
#include "noderuntime/flow/flow.h"
#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::EventKind;
using scheduler::Phase;

constexpr uint32_t kLayers = 10;
constexpr Units kBase = 2;

/// Under temporal job 1 is past its gate, and job 2 waits for its turn; both claim about 13 of 40.
class FlowStalledTest : public FlowTest {
 protected:
  FlowStalledTest() {
    options_.policy.policy = "temporal";
    options_.policy.lanes = 1;
    Restart();
    Begin(1);
    EXPECT_NE(Measure(1, kLayers), 0u);
    Begin(2);
    EXPECT_TRUE(Gate(1, 0, clients_[1].profile(), 1).ok());  // and waits while job 2 is measured
    EXPECT_NE(Measure(2, kLayers), 0u);
    EXPECT_TRUE(Gate(2, 0, clients_[2].profile(), 1).ok());
    EXPECT_EQ(Known(1).phase, Phase::kRunning);
    EXPECT_EQ(Known(2).phase, Phase::kParked);
  }
  void Begin(JobId job) {
    Start(job, 16, kBase);
    EXPECT_TRUE(Lease(job, kBase).ok());
    clients_[job].Push(protocol::OpKind::kAlloc, kBase * kUnit);
  }
  /// The first of job 1's iteration.
  void LaunchFirst() {
    clients_[1].Push(protocol::OpKind::kAlloc, kUnit);
    clients_[1].Launch(100, false);
  }
  void ExpectSoundLog() {
    for (const auto& violation : scheduler::Audit(sink_.records).violations) {
      ADD_FAILURE() << violation.text;
    }
  }
  uint64_t QuietNs() const { return flow_->options().patience.quiet_ns; }
};

TEST_F(FlowStalledTest, TakesUpNoLaneOnceItHasLaunchedNothingForAWhile) {
  Pass(QuietNs() - 10 * kMs);
  LaunchFirst();
  Pass(5 * kMs);
  Pass(QuietNs() - 10 * kMs);
  EXPECT_EQ(Known(2).phase, Phase::kParked) << "it computed in between";
  Pass(20 * kMs);
  ASSERT_EQ(Known(1).phase, Phase::kRunning);
  EXPECT_TRUE(Known(1).quiet);
  EXPECT_EQ(Known(2).phase, Phase::kRunning);
  // It was promised the rest of its claim.
  const Units left = Known(1).terms.claim - Known(1).leased;
  ASSERT_GT(left, 0u);
  ASSERT_TRUE(Lease(1, left).ok());
  EXPECT_EQ(Known(1).leased, Known(1).terms.claim);
  EXPECT_FALSE(Known(1).quiet);
  EXPECT_TRUE(sink_.denials.empty());
  ExpectSoundLog();
}

TEST_F(FlowStalledTest, MovesAgainWithItsNextLaunch) {
  Pass(QuietNs() + 10 * kMs);
  ASSERT_TRUE(Known(1).quiet);
  LaunchFirst();
  Pass(5 * kMs);
  EXPECT_FALSE(Known(1).quiet);
  EXPECT_EQ(sink_.Count(EventKind::kQuiet, 1), 1u);
  EXPECT_EQ(sink_.Count(EventKind::kBusy, 1), 1u);
}

/// Nobody is passed over for what nobody waits for.
TEST_F(FlowStalledTest, IsNotNoticedWhileNobodyWantsToBegin) {
  flow_->Die(2, now_);
  flow_->HolderGone(2, now_);
  Pass(2 * QuietNs());
  EXPECT_FALSE(Known(1).quiet);
}

}  // namespace
}  // namespace sluice::flow
