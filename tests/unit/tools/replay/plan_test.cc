// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/plan.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/replay/small_trace.h"

namespace sluice::replay {
namespace {

using scheduler::trace::EventKind;

TEST(PlanTest, FollowsTheTraceInProgramOrder) {
  const Plan plan = SmallPlan();
  EXPECT_EQ(plan.events, SmallTrace().events);
  EXPECT_EQ(plan.kept_blocks, 2u);
  ASSERT_EQ(plan.launches.size(), 3u);
  EXPECT_EQ(plan.launches[0].uses,
            (std::vector<Use>{{1, true, false}, {0, true, false}, {2, false, true}}));
  // A block in both lists is one use.
  EXPECT_EQ(plan.launches[1].uses,
            (std::vector<Use>{{0, true, false}, {2, true, true}, {3, true, true}}));
  EXPECT_EQ(plan.launches[2].uses, (std::vector<Use>{{3, true, false}, {0, false, true}}));
  EXPECT_EQ(plan.uses, 8u);
}

TEST(PlanTest, SizesAreOfTheBatchAndWholeWords) {
  const Plan plan = SmallPlan();
  EXPECT_EQ(plan.block_bytes, (std::vector<uint64_t>{12, 8, 204, 16}));
  EXPECT_EQ(plan.kept_bytes, 20u);
  EXPECT_EQ(plan.peak_bytes, 20u + 204 + 16);

  Scaling small = kSmallScaling;
  small.size = 0.125;
  const Plan scaled = SmallPlan(2, small);
  // 10, 8, 201 and 16 bytes, an eighth of each; never less than a word.
  EXPECT_EQ(scaled.block_bytes, (std::vector<uint64_t>{4, 4, 28, 4}));
  EXPECT_EQ(scaled.peak_bytes, 40u);
}

TEST(PlanTest, AnOperatorLastsAsLongAsItsSlowestPart) {
  const Plan plan = SmallPlan();
  // 2000 FLOP at 1e9 per second; 480 bytes at 1e8; nothing at all.
  EXPECT_EQ(plan.launches[0].ns, 2000u);
  EXPECT_EQ(plan.launches[1].ns, 4800u);
  EXPECT_EQ(plan.launches[2].ns, 50u);
  EXPECT_EQ(plan.kernel_ns, 6850u);

  Scaling slow = kSmallScaling;
  slow.time = 2.5;
  slow.size = 0.5;  // changes no duration
  const Plan scaled = SmallPlan(2, slow);
  EXPECT_EQ(scaled.launches[1].ns, 12'000u);
  EXPECT_EQ(scaled.launches[2].ns, 125u);
}

TEST(PlanTest, EachNameIsAKernelOfItsOwn) {
  const Plan plan = SmallPlan();
  EXPECT_EQ(plan.kernels, (std::vector<std::string>{"replay_mm_out", "replay_add_"}));
  EXPECT_EQ(plan.launches[0].kernel, 0u);
  EXPECT_EQ(plan.launches[1].kernel, 1u);
  EXPECT_EQ(plan.launches[2].kernel, 0u);

  const Result<Plan> alike = MakePlan(SmallTrace("# sluice-trace 1\n"
                                                 "op 0 a.b forward 0 0 0 0 r= w=\n"
                                                 "op 1 a_b forward 0 0 0 0 r= w=\n"
                                                 "op 2 a.b forward 0 0 0 0 r= w=\n"),
                                      1, kSmallScaling);
  ASSERT_TRUE(alike.ok());
  EXPECT_EQ(alike->kernels, (std::vector<std::string>{"replay_a_b", "replay_a_b_1"}));
  EXPECT_EQ(alike->launches[2].kernel, 0u);
}

TEST(PlanTest, SaysWhatIsOutOfBounds) {
  const auto error = [](uint64_t batch, const Scaling& scaling) {
    const Result<Plan> plan = MakePlan(SmallTrace(), batch, scaling);
    return plan.ok() ? "" : plan.status().message();
  };
  EXPECT_NE(error(0, kSmallScaling).find("batch"), std::string::npos);
  Scaling slow = kSmallScaling;
  slow.time = 1e12;
  EXPECT_EQ(error(2, slow), "operator 0: lasts more than an hour");
  Scaling large = kSmallScaling;
  large.size = 1e16;
  EXPECT_EQ(error(2, large), "block 0: scaled to more than 2^53 bytes");
}

}  // namespace
}  // namespace sluice::replay
