// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/silence.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using Say = Silence::Say;
constexpr uint64_t kBound = 30;

TEST(Silence, IsSaidOnceWhenTheBoundIsOver) {
  Silence silence;
  EXPECT_EQ(silence.Look(7, 100, kBound), Say::kNothing);
  EXPECT_EQ(silence.Look(7, 129, kBound), Say::kNothing);
  EXPECT_EQ(silence.Look(7, 130, kBound), Say::kSilent);
  for (uint64_t now = 131; now < 1000; now += 13) {
    EXPECT_EQ(silence.Look(7, now, kBound), Say::kNothing);
  }
}

TEST(Silence, IsNoneWhileTheDaemonBeatsHoweverLongSomebodyWaits) {
  Silence silence;
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(silence.Look(i / 2, i * (kBound - 1), kBound), Say::kNothing) << i;
  }
}

TEST(Silence, IsSaidAgainOnlyAfterTheDaemonWasBack) {
  Silence silence;
  silence.Look(7, 0, kBound);
  EXPECT_EQ(silence.Look(7, 30, kBound), Say::kSilent);
  EXPECT_EQ(silence.Look(8, 40, kBound), Say::kBack);
  EXPECT_EQ(silence.Look(8, 69, kBound), Say::kNothing);
  EXPECT_EQ(silence.Look(8, 70, kBound), Say::kSilent);
  EXPECT_EQ(silence.Look(9, 71, kBound), Say::kBack);
  EXPECT_EQ(silence.Look(10, 72, kBound), Say::kNothing);
}

TEST(Silence, EndsWithAnAnswer) {
  Silence silence;
  EXPECT_EQ(silence.Heard(), Say::kNothing);
  silence.Look(7, 0, kBound);
  EXPECT_EQ(silence.Heard(), Say::kNothing);
  // The next one who waits may find the page of another daemon, which says the same.
  EXPECT_EQ(silence.Look(7, 100, kBound), Say::kNothing);
  EXPECT_EQ(silence.Look(7, 130, kBound), Say::kSilent);
  EXPECT_EQ(silence.Heard(), Say::kBack);
  EXPECT_EQ(silence.Heard(), Say::kNothing);
}

// Nobody looks while nobody waits: the bound counts from what was seen, not from the wait.
TEST(Silence, CountsWhatPassedBetweenTwoWaits) {
  Silence silence;
  silence.Look(7, 0, kBound);
  EXPECT_EQ(silence.Look(7, 1000, kBound), Say::kSilent);
  EXPECT_EQ(silence.Look(9, 2000, kBound), Say::kBack);
  EXPECT_EQ(silence.Look(99, 9000, kBound), Say::kNothing);
}

}  // namespace
}  // namespace sluice
