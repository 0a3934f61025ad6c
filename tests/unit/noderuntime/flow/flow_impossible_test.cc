// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What is proved to be impossible and happens all the same (docs/design/impossible-states.md): it
// ends the session of the job that it concerns, and nothing else.
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

using scheduler::EventKind;
using scheduler::Phase;

class FlowImpossibleTest : public FlowTest {
 protected:
  FlowImpossibleTest() {
    options_.faults.misnumber_fences = true;
    Restart();
    Start(1, 20, 20);
    EXPECT_TRUE(Lease(1, 8).ok());
    // The ledger knows release 1, and is asked for release 2.
    EXPECT_TRUE(Release(1, {{0, 2}}).ok());
  }
};

TEST_F(FlowImpossibleTest, EndsTheSessionOfThatJob) {
  ASSERT_TRUE(sink_.ended.contains(1));
  EXPECT_EQ(sink_.ended[1].rfind("internal error: ", 0), 0u) << sink_.ended[1];
}

TEST_F(FlowImpossibleTest, IsNotLoggedAsDoneAndCountsAsARefusal) {
  EXPECT_EQ(sink_.Count(EventKind::kFenced, 1), 0u);
  ASSERT_EQ(sink_.Count(EventKind::kDeny, 1), 1u);
  EXPECT_EQ(sink_.records.back().reason, "internal");
  EXPECT_EQ(sink_.records.back().text, sink_.ended[1]);
}

TEST_F(FlowImpossibleTest, TheMemoryIsTheJobsUntilItsLastHolderIsGone) {
  EXPECT_EQ(Known(1).held(), 8u);
  EXPECT_TRUE(flow_->Die(1, now_));
  EXPECT_EQ(Known(1).quarantined, 8u);
  EXPECT_EQ(flow_->ledger().free(), 32u);
  flow_->HolderGone(1, now_);
  EXPECT_EQ(flow_->ledger().free(), 40u);
  EXPECT_TRUE(flow_->ledger().CheckInvariants().ok());
}

TEST_F(FlowImpossibleTest, OtherJobsGoOn) {
  EXPECT_TRUE(flow_->Die(1, now_));
  flow_->HolderGone(1, now_);
  Start(2, 20, 20);
  EXPECT_TRUE(Lease(2, 20).ok());
  ASSERT_EQ(sink_.grants[2].size(), 1u);
  EXPECT_FALSE(sink_.ended.contains(2));
  EXPECT_EQ(Known(2).phase, Phase::kUnprofiled);
}

}  // namespace
}  // namespace sluice::flow
