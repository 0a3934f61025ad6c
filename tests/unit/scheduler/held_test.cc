// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/held.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::scheduler {
namespace {

Profile Of(std::vector<uint64_t> live, std::vector<uint32_t> ns) {
  Profile profile;
  profile.period = static_cast<uint32_t>(live.size());
  profile.max_live = std::move(live);
  profile.launch_ns = std::move(ns);
  profile.timed = true;
  return profile;
}

TEST(HeldUnderCredit, IsWhatLivesWithoutOne) {
  const Profile profile = Of({1, 5, 3, 2}, {10, 10, 10, 10});
  EXPECT_EQ(HeldUnderCredit(profile, 0), profile.max_live);
  EXPECT_EQ(HeldUnderCredit(profile, 9), profile.max_live) << "a launch is ahead as a whole";
}

TEST(HeldUnderCredit, IsTakenEarlierByWhatIsAhead) {
  const Profile profile = Of({1, 1, 5, 3, 2}, {10, 10, 10, 10, 10});
  EXPECT_EQ(HeldUnderCredit(profile, 10), (std::vector<uint64_t>{1, 5, 5, 3, 2}));
  EXPECT_EQ(HeldUnderCredit(profile, 25), (std::vector<uint64_t>{5, 5, 5, 3, 2}));
  EXPECT_DOUBLE_EQ(MeanHeld(profile, HeldUnderCredit(profile, 25)), 4);
}

TEST(HeldUnderCredit, NothingIsSaidWithoutTimes) {
  Profile profile = Of({1, 2}, {1, 1});
  profile.timed = false;
  EXPECT_TRUE(HeldUnderCredit(profile, 5).empty());
  EXPECT_EQ(MeanHeld(profile, {}), 0);
}

TEST(HeldUnderCredit, IsTheLargestOfItsWindow) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    Profile profile = Of({}, {});
    profile.period = static_cast<uint32_t>(1 + random() % 40);
    for (uint32_t n = 0; n < profile.period; ++n) {
      profile.max_live.push_back(random() % 10);
      profile.launch_ns.push_back(static_cast<uint32_t>(random() % 8));
    }
    const uint64_t credit = random() % 30;
    const std::vector<uint64_t> held = HeldUnderCredit(profile, credit);
    for (uint32_t n = 0; n < profile.period; ++n) {
      uint64_t most = profile.max_live[n];
      uint64_t ahead = 0;
      for (uint32_t m = n + 1; m < profile.period; ++m) {
        ahead += profile.launch_ns[m];
        if (ahead > credit) break;
        most = std::max(most, profile.max_live[m]);
      }
      ASSERT_EQ(held[n], most) << "round " << round << ", launch " << n;
    }
  }
}

}  // namespace
}  // namespace sluice::scheduler
