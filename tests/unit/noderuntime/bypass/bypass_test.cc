// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/bypass/bypass.h"

#include <gtest/gtest.h>

namespace sluice::bypass {
namespace {

using Pids = std::vector<pid_t>;

TEST(Bypass, WhoSaysNothingIsFoundAtTheSecondLookAndOnce) {
  Bypass bypass;
  EXPECT_EQ(bypass.Look({}, {}), Pids());
  EXPECT_EQ(bypass.Look({7}, {}), Pids()) << "it may be about to say so";
  EXPECT_EQ(bypass.Look({7, 8}, {}), Pids{7});
  EXPECT_EQ(bypass.Look({7, 8}, {}), Pids{8});
  EXPECT_EQ(bypass.Look({7, 8}, {}), Pids());
}

TEST(Bypass, WhoSaysSoIsNot) {
  Bypass bypass;
  (void)bypass.Look({}, {});
  EXPECT_EQ(bypass.Look({7}, {}), Pids());
  EXPECT_EQ(bypass.Look({7}, {7}), Pids());
  EXPECT_EQ(bypass.Look({7}, {7}), Pids());
}

TEST(Bypass, WhoWasThereBeforeTheDaemonIsNotJudgedAsLongAsItStays) {
  Bypass bypass;
  EXPECT_EQ(bypass.Look({7}, {}), Pids());
  EXPECT_EQ(bypass.Look({7}, {}), Pids());
  EXPECT_EQ(bypass.Look({}, {}), Pids());
  EXPECT_EQ(bypass.Look({7}, {}), Pids()) << "somebody else with its number";
  EXPECT_EQ(bypass.Look({7}, {}), Pids{7});
}

TEST(Bypass, WhoLeftInBetweenIsSomebodyElseWhenItComesAgain) {
  Bypass bypass;
  (void)bypass.Look({}, {});
  (void)bypass.Look({7}, {});
  (void)bypass.Look({}, {});
  EXPECT_EQ(bypass.Look({7}, {}), Pids());
  EXPECT_EQ(bypass.Look({7}, {}), Pids{7});
}

TEST(Bypass, ANumberThatIsListedTwiceIsOne) {
  Bypass bypass;
  (void)bypass.Look({}, {});
  EXPECT_EQ(bypass.Look({7, 7}, {}), Pids()) << "as a client of MPS may be";
  EXPECT_EQ(bypass.Look({7, 7}, {}), Pids{7});
}

TEST(Bypass, WhoIsForgivenIsFoundNoMore) {
  Bypass bypass;
  (void)bypass.Look({}, {});
  (void)bypass.Look({7}, {});
  bypass.Forgive(7);
  EXPECT_EQ(bypass.Look({7}, {}), Pids());
}

}  // namespace
}  // namespace sluice::bypass
