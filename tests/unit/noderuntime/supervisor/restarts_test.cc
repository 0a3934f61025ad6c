// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/supervisor/restarts.h"

#include <gtest/gtest.h>

namespace sluice::supervisor {
namespace {

TEST(Restarts, EachWaitIsTwiceTheLastUpToTheLongest) {
  Restarts restarts;
  uint64_t expected = Restarts::kFirstNs;
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(restarts.Ended(0), expected);
    expected = std::min(2 * expected, Restarts::kLongestNs);
  }
  EXPECT_EQ(restarts.Ended(0), Restarts::kLongestNs);
}

TEST(Restarts, WhoRanForAWhileIsForgiven) {
  Restarts restarts;
  for (int i = 0; i < 8; ++i) (void)restarts.Ended(Restarts::kForgivenNs - 1);
  EXPECT_GT(restarts.Ended(Restarts::kForgivenNs - 1), Restarts::kFirstNs);
  EXPECT_EQ(restarts.Ended(Restarts::kForgivenNs), Restarts::kFirstNs);
  EXPECT_EQ(restarts.Ended(0), 2 * Restarts::kFirstNs);
}

TEST(Restarts, WhoIsNeededAtOnceWaitsFromTheSecondTimeOn) {
  Restarts restarts(0);
  EXPECT_EQ(restarts.Ended(0), 0u);
  EXPECT_EQ(restarts.Ended(0), Restarts::kFirstNs);
  EXPECT_EQ(restarts.Ended(0), 2 * Restarts::kFirstNs);
  EXPECT_EQ(restarts.Ended(Restarts::kForgivenNs), 0u);
}

}  // namespace
}  // namespace sluice::supervisor
