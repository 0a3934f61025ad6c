// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/trace.h"

#include <gtest/gtest.h>

namespace sluice::scheduler::trace {
namespace {

TEST(Linear, IsANumberForEachBatch) {
  EXPECT_EQ((Linear{5, 3}).At(0), 5u);
  EXPECT_EQ((Linear{5, 3}).At(1), 8u);
  EXPECT_EQ((Linear{5, 3}).At(32), 101u);
  EXPECT_EQ((Linear{}).At(UINT64_MAX), 0u);
}

TEST(Linear, EndsAtTheLargestNumber) {
  EXPECT_EQ((Linear{kMaxNumber, 0}).At(kMaxBatch), kMaxNumber);
  EXPECT_EQ((Linear{kMaxNumber, 1}).At(0), kMaxNumber);
  EXPECT_EQ((Linear{kMaxNumber, 1}).At(1), std::nullopt);
  EXPECT_EQ((Linear{kMaxNumber + 1, 0}).At(1), std::nullopt);
  EXPECT_EQ((Linear{0, kMaxNumber / kMaxBatch}).At(kMaxBatch), kMaxNumber);
  EXPECT_EQ((Linear{1, kMaxNumber / kMaxBatch}).At(kMaxBatch), std::nullopt);
  EXPECT_EQ((Linear{0, kMaxNumber}).At(kMaxBatch), std::nullopt) << "the product has 73 bits";
  EXPECT_EQ((Linear{0, UINT64_MAX}).At(UINT64_MAX), std::nullopt);
}

TEST(Trace, FindsAHeaderEntryByItsKey) {
  Trace trace;
  trace.header = {{"model", "m"}, {"empty", ""}};
  ASSERT_NE(trace.Find("model"), nullptr);
  EXPECT_EQ(*trace.Find("model"), "m");
  ASSERT_NE(trace.Find("empty"), nullptr);
  EXPECT_EQ(*trace.Find("empty"), "");
  EXPECT_EQ(trace.Find("mode"), nullptr);
}

TEST(Names, AreTheWordsOfTheFormat) {
  for (const BlockKind kind : {BlockKind::kPersistent, BlockKind::kInput, BlockKind::kTransient}) {
    EXPECT_EQ(ParseBlockKind(BlockKindName(kind)), kind);
  }
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizer}) {
    EXPECT_EQ(ParsePhase(PhaseName(phase)), phase);
  }
  EXPECT_EQ(BlockKindName(BlockKind::kInput), "input");
  EXPECT_EQ(PhaseName(Phase::kBackward), "backward");
  EXPECT_EQ(ParseBlockKind("Input"), std::nullopt);
  EXPECT_EQ(ParsePhase(""), std::nullopt);
}

}  // namespace
}  // namespace sluice::scheduler::trace
