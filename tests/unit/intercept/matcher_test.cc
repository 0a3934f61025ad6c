// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/gate/matcher.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace sluice {
namespace {

using protocol::ProfileImage;
using protocol::TroughPlace;

std::vector<uint64_t> Cycle(uint32_t period, uint32_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> ids(period);
  for (uint64_t& id : ids) id = random();
  return ids;
}

class MatcherTest : public ::testing::Test {
 protected:
  void Publish(const std::vector<uint64_t>& cycle, uint32_t window, TroughPlace place,
               const std::vector<uint32_t>& gates = {}) {
    profile_ = std::make_unique<ProfileImage>();
    profile_->profile_id = 1;
    profile_->period = static_cast<uint32_t>(cycle.size());
    profile_->window = window;
    profile_->trough_place = place;
    uint64_t hash = protocol::kHashSeed;
    for (size_t i = cycle.size() * 8 - window; i < cycle.size() * 8; ++i) {
      hash = protocol::FoldLaunch(hash, cycle[i % cycle.size()]);
    }
    profile_->trough_hash = hash;
    profile_->gate_count = 1;
    profile_->gates[0] = {0, 10};
    for (const uint32_t launch : gates) {
      profile_->gates[profile_->gate_count] = {launch, 20 + profile_->gate_count};
      ++profile_->gate_count;
    }
    for (uint32_t i = 0; i < cycle.size(); ++i) profile_->launch_ns[i] = 1000 + i;
    history_.assign(protocol::kMaxPeriodLaunches, 0);
    ASSERT_TRUE(matcher_.Follow(profile_.get(), history_.data()));
  }

  std::unique_ptr<ProfileImage> profile_;
  std::vector<uint64_t> history_;
  Matcher matcher_;
};

TEST_F(MatcherTest, FindsTheTroughFromAnywhereInTheCycle) {
  for (const uint32_t window : {1u, 7u, 20u}) {
    for (uint32_t start = 0; start < 20; ++start) {
      const auto cycle = Cycle(20);
      Publish(cycle, window, TroughPlace::kAfterLast);
      int troughs = 0;
      for (uint32_t i = 0; i < 100; ++i) {
        const uint32_t at = (start + i) % 20;
        const Matcher::Step step = matcher_.OnLaunch(cycle[at]);
        EXPECT_FALSE(step.mismatch);
        EXPECT_EQ(step.at_trough, i + 1 >= window && at == 19) << window << " " << start;
        troughs += step.at_trough ? 1 : 0;
      }
      EXPECT_GE(troughs, 3);
    }
  }
}

TEST_F(MatcherTest, BeforeFirstLeavesTheTroughPendingForTheNextLaunch) {
  const auto cycle = Cycle(5);
  Publish(cycle, 3, TroughPlace::kBeforeFirst);
  for (const uint64_t id : cycle) {
    EXPECT_FALSE(matcher_.TakePendingTrough());
    matcher_.OnLaunch(id);
  }
  EXPECT_TRUE(matcher_.TakePendingTrough());
  EXPECT_FALSE(matcher_.TakePendingTrough()) << "one thread goes through it";
}

TEST_F(MatcherTest, GatesStandAfterTheirLaunchesAndSetTheNeed) {
  const auto cycle = Cycle(10);
  Publish(cycle, 4, TroughPlace::kBeforeFirst, {3, 4, 9});
  for (const uint64_t id : cycle) EXPECT_EQ(matcher_.OnLaunch(id).gate, 0u) << "not synchronised";
  EXPECT_EQ(matcher_.need_units(), 10u);
  for (uint32_t i = 0; i < 10; ++i) {
    const Matcher::Step step = matcher_.OnLaunch(cycle[i]);
    const uint32_t expected = i == 2 ? 1 : i == 3 ? 2 : i == 8 ? 3 : 0;
    EXPECT_EQ(step.gate, expected);
    EXPECT_EQ(step.launch_ns, 1000 + i);
    if (expected != 0) {
      EXPECT_EQ(matcher_.need_units(), 20 + expected);
    }
  }
  EXPECT_EQ(matcher_.need_units(), 10u) << "a new cycle begins at gate 0";
}

TEST_F(MatcherTest, AnotherCycleIsAMismatchAtItsEndAndEndsFollowing) {
  const auto cycle = Cycle(10);
  Publish(cycle, 4, TroughPlace::kAfterLast);
  for (const uint64_t id : cycle) matcher_.OnLaunch(id);
  ASSERT_TRUE(matcher_.synchronised());
  for (uint32_t i = 0; i < 10; ++i) {
    const Matcher::Step step = matcher_.OnLaunch(cycle[i] + (i == 8 ? 1 : 0));
    EXPECT_EQ(step.mismatch, i == 9);
    EXPECT_FALSE(step.at_trough);
  }
  EXPECT_FALSE(matcher_.following());
  EXPECT_FALSE(matcher_.OnLaunch(5).at_trough);
}

// All that is hashed from the second cycle on is the window at its end.
TEST_F(MatcherTest, AnyLaunchOfTheWindowCountsAndNoOther) {
  for (const uint32_t window : {1u, 4u, 10u}) {
    for (uint32_t wrong = 0; wrong < 10; ++wrong) {
      const auto cycle = Cycle(10);
      Publish(cycle, window, TroughPlace::kAfterLast);
      for (uint32_t i = 0; i < 30; ++i) matcher_.OnLaunch(cycle[i % 10]);
      ASSERT_TRUE(matcher_.synchronised());
      for (uint32_t i = 0; i < 10; ++i) matcher_.OnLaunch(cycle[i] + (i == wrong ? 1 : 0));
      EXPECT_EQ(matcher_.following(), wrong < 10 - window) << window << " " << wrong;
    }
  }
}

TEST_F(MatcherTest, NonsenseIsIgnored) {
  const auto cycle = Cycle(10);
  Publish(cycle, 4, TroughPlace::kAfterLast, {3, 5});
  const auto refused = [&](auto change) {
    ProfileImage bad = *profile_;
    change(bad);
    Matcher matcher;
    return !matcher.Follow(&bad, history_.data()) && !matcher.following();
  };
  EXPECT_FALSE(refused([](ProfileImage&) {}));
  EXPECT_TRUE(refused([](ProfileImage& p) { p.period = 0; }));
  EXPECT_TRUE(refused([](ProfileImage& p) { p.period = protocol::kMaxPeriodLaunches + 1; }));
  EXPECT_TRUE(refused([](ProfileImage& p) { p.window = 0; }));
  EXPECT_TRUE(refused([](ProfileImage& p) { p.window = ~0u; }));
  EXPECT_TRUE(refused([](ProfileImage& p) { p.window = p.period + 1; })) << "tells no more";
  EXPECT_TRUE(refused([](ProfileImage& p) { p.pacing_slot = 256; }));
  EXPECT_TRUE(refused([](ProfileImage& p) { p.gate_count = 0; }));
  EXPECT_TRUE(refused([](ProfileImage& p) { p.gate_count = protocol::kMaxGates + 1; }));
  EXPECT_TRUE(refused([](ProfileImage& p) { p.gates[2].launch = 3; }));
  EXPECT_TRUE(refused([](ProfileImage& p) { p.gates[1].launch = 0; }));
  EXPECT_TRUE(refused([](ProfileImage& p) { p.gates[2].launch = 10; }));
  EXPECT_TRUE(refused([](ProfileImage& p) { p.trough_place = static_cast<TroughPlace>(2); }));
}

}  // namespace
}  // namespace sluice
