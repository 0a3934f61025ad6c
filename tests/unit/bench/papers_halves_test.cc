// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/papers_halves.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::bench {
namespace {

scheduler::Profile ProfileOf(std::vector<uint64_t> live, std::vector<uint32_t> ns) {
  scheduler::Profile profile;
  profile.max_live = std::move(live);
  profile.launch_ns = std::move(ns);
  profile.peak_bytes = *std::max_element(profile.max_live.begin(), profile.max_live.end());
  return profile;
}

TEST(PapersHalves, OneRisesWhileTheOtherFalls) {
  // 1 + 6, 2 + 5, ...: always 7.
  EXPECT_EQ(HalvesNeed(ProfileOf({1, 2, 3, 6, 5, 4}, {1, 1, 1, 1, 1, 1}), 3), 7u);
  // The first one is at 3 for nearly all of its group, so beside 6.
  EXPECT_EQ(HalvesNeed(ProfileOf({1, 2, 3, 6, 5, 4}, {1, 1, 10, 1, 1, 1}), 3), 9u);
}

TEST(PapersHalves, WithoutACutBothHaveTheirPeaks) {
  const auto profile = ProfileOf({1, 9, 3}, {1, 1, 1});
  EXPECT_EQ(HalvesNeed(profile, 0), 18u);
  EXPECT_EQ(HalvesNeed(profile, 3), 18u);
}

TEST(PapersHalves, TheBetterCutCounts) {
  const auto profile = ProfileOf({3, 5, 9, 8, 2, 1}, {1, 1, 1, 1, 1, 1});
  const uint64_t peak = HalvesNeed(profile, 3);
  const uint64_t backward = HalvesNeed(profile, 2);
  EXPECT_EQ(peak, 11u);
  EXPECT_EQ(backward, 12u);
  EXPECT_EQ(HalvesNeedAtBest(profile, 2), std::min(peak, backward));
  EXPECT_EQ(HalvesNeedAtBest(profile, 3), peak);
}

}  // namespace
}  // namespace sluice::bench
