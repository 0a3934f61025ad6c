// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/lifetimes.h"

#include <gtest/gtest.h>

#include <memory>

namespace sluice {
namespace {

class LifetimesTest : public ::testing::Test {
 protected:
  /// As the library has it: memory of the system's.
  std::unique_ptr<Lifetimes> made_ = std::make_unique<Lifetimes>();
  Lifetimes& lifetimes_ = *made_;
};

TEST_F(LifetimesTest, WhatOutlivedItsIterationIsExpectedTo) {
  EXPECT_FALSE(lifetimes_.Expected(4)) << "no iteration has begun";
  lifetimes_.BeginIteration();
  lifetimes_.Ended(lifetimes_.Born(4));
  const Lifetimes::Birth kept = lifetimes_.Born(4);
  lifetimes_.BeginIteration();
  EXPECT_FALSE(lifetimes_.Expected(4)) << "the first one was freed where it was allocated";
  lifetimes_.Born(4);
  EXPECT_FALSE(lifetimes_.Expected(4)) << "not known before it ends";
  lifetimes_.Ended(kept);
  EXPECT_TRUE(lifetimes_.Expected(4));
  EXPECT_FALSE(lifetimes_.Expected(5)) << "another size is another allocation";
}

TEST_F(LifetimesTest, FollowsWhatTheLatestOneDid) {
  lifetimes_.BeginIteration();
  const Lifetimes::Birth kept = lifetimes_.Born(4);
  lifetimes_.BeginIteration();
  lifetimes_.Ended(kept);
  ASSERT_TRUE(lifetimes_.Expected(4));
  lifetimes_.Ended(lifetimes_.Born(4));
  lifetimes_.BeginIteration();
  EXPECT_FALSE(lifetimes_.Expected(4));
  lifetimes_.Born(8);
  lifetimes_.BeginIteration();
  EXPECT_FALSE(lifetimes_.Expected(8)) << "the size is new there";
}

TEST_F(LifetimesTest, NothingIsExpectedOfWhatCameBeforeItForgot) {
  const Lifetimes::Birth never = lifetimes_.Born(4);
  EXPECT_EQ(never.iteration, 0u);
  lifetimes_.BeginIteration();
  const Lifetimes::Birth kept = lifetimes_.Born(4);
  lifetimes_.BeginIteration();
  lifetimes_.Ended(kept);
  lifetimes_.Forget();
  EXPECT_FALSE(lifetimes_.Expected(4));
  lifetimes_.BeginIteration();
  EXPECT_FALSE(lifetimes_.Expected(4));
  lifetimes_.Born(4);
  lifetimes_.Ended(kept);   // born in another cycle
  lifetimes_.Ended(never);  // in none
  lifetimes_.BeginIteration();
  EXPECT_FALSE(lifetimes_.Expected(4));
}

TEST_F(LifetimesTest, BeyondItsRoomNothingIsExpected) {
  Lifetimes::Birth last;
  lifetimes_.BeginIteration();
  for (uint32_t i = 0; i < Lifetimes::kMost; ++i) last = lifetimes_.Born(1);
  EXPECT_EQ(lifetimes_.Born(1).iteration, 0u);
  lifetimes_.BeginIteration();
  lifetimes_.Ended(last);
  for (uint32_t i = 1; i < Lifetimes::kMost; ++i) lifetimes_.Born(1);
  EXPECT_TRUE(lifetimes_.Expected(1)) << "the last place";
  lifetimes_.Born(1);
  EXPECT_FALSE(lifetimes_.Expected(1)) << "none is left";
}

}  // namespace
}  // namespace sluice
