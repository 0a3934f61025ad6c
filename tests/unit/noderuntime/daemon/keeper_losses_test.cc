// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/keeper_losses.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::noded {
namespace {

using supervisor::Restarts;

TEST(KeeperLosses, TheFirstIsReplacedAtOnceAndTheNextEverLater) {
  KeeperLosses losses;
  losses.Got(0);
  losses.Lost(10);
  EXPECT_EQ(losses.due_ns(), 10u);
  uint64_t pause = Restarts::kFirstNs;
  for (uint64_t i = 0; i < 12; ++i) {
    const uint64_t now = losses.due_ns();
    losses.Lost(now);
    EXPECT_EQ(losses.due_ns(), now + pause) << i;
    pause = std::min(2 * pause, Restarts::kLongestNs);
  }
  EXPECT_EQ(pause, Restarts::kLongestNs) << "and so for good";
}

// One that ends as soon as it is there would keep the daemon busy otherwise.
TEST(KeeperLosses, OneThatWasThereForAMomentForgivesNothing) {
  KeeperLosses losses;
  losses.Got(0);
  losses.Lost(1);
  losses.Got(2);
  losses.Lost(3);
  EXPECT_EQ(losses.due_ns(), 3 + Restarts::kFirstNs);
  losses.Got(4);
  losses.Lost(4 + Restarts::kForgivenNs);
  EXPECT_EQ(losses.due_ns(), 4 + Restarts::kForgivenNs);
}

TEST(KeeperLosses, CountsThoseThatWereThereAndSinceWhenThereIsNone) {
  KeeperLosses losses;
  EXPECT_EQ(losses.MissingFor(5), 0u);
  losses.Lost(10);  // it never came
  EXPECT_EQ(losses.count(), 0u);
  EXPECT_EQ(losses.due_ns(), 10u);
  losses.Lost(20);
  EXPECT_EQ(losses.MissingFor(25), 15u);
  losses.Got(30);
  EXPECT_EQ(losses.MissingFor(35), 0u);
  losses.Lost(40);
  losses.Lost(50);
  EXPECT_EQ(losses.count(), 1u);
  EXPECT_EQ(losses.MissingFor(60), 20u);
}

}  // namespace
}  // namespace sluice::noded
