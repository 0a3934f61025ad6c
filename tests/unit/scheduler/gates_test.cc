// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/gates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/scheduler/training_stream.h"

namespace sluice::scheduler {
namespace {

constexpr uint64_t kMiB = 1 << 20;

Profile TrainingProfile(uint64_t weights, uint64_t layers, uint64_t map_bytes, bool timed) {
  Profiler profiler(TestProfilerOptions());
  TrainingStream job(&profiler);
  job.Begin(weights);
  for (int i = 0; i < 16; ++i) {
    job.Iteration(layers, map_bytes);
    if (timed) job.ReportTimes();
  }
  return profiler.Current().value();
}

/// What the job holds over an iteration, in units times launches.
Units Held(const CyclePlan& plan, uint32_t period) {
  Units held = 0;
  for (size_t k = 0; k < plan.gates.size(); ++k) {
    const uint32_t to = k + 1 < plan.gates.size() ? plan.gates[k + 1].launch : period;
    held += plan.gates[k].need_units * (to - plan.gates[k].launch);
  }
  return held;
}

/// The peak is 100 MiB; it grows by 90 and falls by 90 in steps of 3.
TEST(PlanGates, AGateForEachStepAndOneAtTheTrough) {
  const Profile profile = TrainingProfile(10 * kMiB, 30, 3 * kMiB, true);
  const CyclePlan plan = PlanGates(profile, kMiB, {.max_gates = 128});
  EXPECT_EQ(plan.gates.size(), 61u);
}

/// A step that takes no time is joined with its neighbour before one that does.
TEST(PlanGates, JoinsWhereItCostsLeast) {
  Profile profile;
  profile.period = 8;
  profile.max_live = {10 * kMiB, 20 * kMiB, 30 * kMiB, 40 * kMiB,
                      50 * kMiB, 40 * kMiB, 20 * kMiB, 10 * kMiB};
  profile.live_before = {0,         10 * kMiB, 20 * kMiB, 30 * kMiB,
                         40 * kMiB, 50 * kMiB, 40 * kMiB, 20 * kMiB};
  profile.largest_alloc.assign(8, 0);
  profile.launch_ns = {1000, 1000, 1000, 1, 1000, 1000, 1000, 1000};
  profile.timed = true;
  profile.peak_bytes = 50 * kMiB;
  const auto launches = [&](uint32_t max_gates) {
    std::vector<uint32_t> at;
    for (const GatePlan& gate : PlanGates(profile, kMiB, {max_gates, 100, Placing::kPacked}).gates)
      at.push_back(gate.launch);
    return at;
  };
  EXPECT_EQ(launches(8), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(launches(7), (std::vector<uint32_t>{0, 1, 2, 3, 5, 6, 7}))
      << "launch 3 needs 30 units, for 1 ns";
}

TEST(PlanGates, LaunchesWithoutATimeCountTheSame) {
  Profile none = TrainingProfile(10 * kMiB, 30, 3 * kMiB, true);
  std::fill(none.launch_ns.begin(), none.launch_ns.end(), 0u);
  const Profile untimed = TrainingProfile(10 * kMiB, 30, 3 * kMiB, false);
  const GateOptions few = {.max_gates = 12};
  EXPECT_EQ(Held(PlanGates(none, kMiB, few), none.period),
            Held(PlanGates(untimed, kMiB, few), untimed.period));
}

Profile OneLaunch(uint64_t live) {
  Profile one;
  one.period = 1;
  one.live_before = {kMiB};
  one.max_live = {live};
  one.largest_alloc = {2 * kMiB};
  one.launch_ns = {5};
  one.peak_bytes = live;
  one.timed = true;
  return one;
}

TEST(PlanGates, AnIterationOfOneLaunch) {
  const CyclePlan plan = PlanGates(OneLaunch(3 * kMiB), kMiB, {.placing = Placing::kPacked});
  ASSERT_EQ(plan.gates.size(), 1u);
  EXPECT_EQ(plan.gates[0].need_units, 3u);
  EXPECT_EQ(plan.gates[0].contiguous, 2u);
}

TEST(PlanGates, TheMarginIsAPartAndSomeUnits) {
  GateOptions options;
  const auto peak = [&](uint64_t live) {
    return PlanGates(OneLaunch(live), kMiB, options).peak_units;
  };
  EXPECT_EQ(peak(3 * kMiB), 4u + 1u) << "a part of a unit begins one";
  EXPECT_EQ(peak(6400 * kMiB), 6600u + 1u);
  options.placing = Placing::kPieces;
  EXPECT_EQ(peak(31 * kMiB), 32u + 1u);
  EXPECT_EQ(peak(32 * kMiB), 33u + 2u);
  EXPECT_EQ(peak(48 * kMiB), 50u + 3u);
  EXPECT_EQ(peak(64 * kMiB), 66u + 4u);
  EXPECT_EQ(peak(80 * kMiB), 83u + 5u);
  EXPECT_EQ(peak(96 * kMiB), 99u + 6u);
  EXPECT_EQ(peak(6400 * kMiB), 6600u + 6u);
  options.placing = Placing::kPacked;
  EXPECT_EQ(peak(6400 * kMiB), 6400u);
}

TEST(PlanGates, WithinALimitNoGateAsksForMore) {
  const Profile profile = TrainingProfile(10 * kMiB, 60, 1536 << 10, true);
  const CyclePlan all = PlanGates(profile, kMiB);
  const Units limit = all.peak_units - 2;
  const CyclePlan within = WithinLimit(all, limit);
  EXPECT_EQ(within.peak_units, limit);
  ASSERT_EQ(within.gates.size(), all.gates.size());
  for (size_t k = 0; k < all.gates.size(); ++k) {
    EXPECT_EQ(within.gates[k].need_units, std::min(all.gates[k].need_units, limit));
    EXPECT_EQ(within.gates[k].launch, all.gates[k].launch);
  }
  EXPECT_EQ(WithinLimit(all, 1).gates.front().contiguous, 1u);
  EXPECT_EQ(WithinLimit(all, 1).piece_units, 1u);
  EXPECT_EQ(WithinLimit(all, all.peak_units).peak_units, all.peak_units);
}

/// How much a job holds falls with the gates that it may have, and a few that are placed well are
/// nearly as good as all.
TEST(PlanGates, AFewHoldLittleMoreThanAll) {
  const Profile profile = TrainingProfile(10 * kMiB, 60, 1536 << 10, true);
  const auto held = [&](uint32_t max_gates) {
    return Held(PlanGates(profile, kMiB, {.max_gates = max_gates}), profile.period);
  };
  Units before = held(1);
  for (const uint32_t gates : {2u, 4u, 8u, 16u, 24u, 32u, 64u, 128u}) {
    EXPECT_LE(held(gates), before) << gates;
    before = held(gates);
  }
  EXPECT_LE(held(24) * 10, held(128) * 11);
  EXPECT_EQ(PlanGates(profile, kMiB).gates.size(), GateOptions().max_gates);
}

TEST(PlanGates, GroupsOfATenthOfThePeak) {
  const Profile profile = TrainingProfile(10 * kMiB, 30, 3 * kMiB, true);
  const CyclePlan plan = PlanGates(profile, kMiB, {.groups_per_peak = 10});
  // A gate for every 12 or so.
  EXPECT_GE(plan.gates.size(), 12u);
  EXPECT_LE(plan.gates.size(), 20u);
  EXPECT_EQ(plan.gates[0].launch, 0u);
  for (size_t i = 1; i < plan.gates.size(); ++i)
    EXPECT_GT(plan.gates[i].launch, plan.gates[i - 1].launch);
  EXPECT_LT(plan.gates.back().launch, profile.period);
  EXPECT_EQ(plan.piece_units, 3u);
  EXPECT_GE(plan.peak_units, 100u);
  EXPECT_LE(plan.peak_units, 106u);
}

/// The need of a gate covers everything that is live until the next one, and not much more.
TEST(PlanGates, NeedCoversTheGroup) {
  for (const uint64_t layers : {1u, 4u, 17u, 30u}) {
    const Profile profile = TrainingProfile(10 * kMiB, layers, 3 * kMiB, false);
    const CyclePlan plan = PlanGates(profile, kMiB);
    for (size_t k = 0; k < plan.gates.size(); ++k) {
      const uint32_t from = plan.gates[k].launch;
      const uint32_t to = k + 1 < plan.gates.size() ? plan.gates[k + 1].launch : profile.period;
      uint64_t most = 0;
      // After `from` launches were issued until `to` were: the time behind launches from - 1 .. to
      // - 2.
      for (uint32_t n = from; n < to; ++n) {
        most = std::max(most, profile.max_live[(n + profile.period - 1) % profile.period]);
      }
      EXPECT_GE(plan.gates[k].need_units * kMiB, most) << layers << " layers, gate " << k;
      EXPECT_LE(plan.gates[k].need_units * kMiB, most + most / 16 + 2 * kMiB)
          << layers << " layers, gate " << k;
    }
  }
}

TEST(PlanGates, NothingIsAskedForLongBeforeAJump) {
  Profiler profiler(TestProfilerOptions());
  TrainingStream job(&profiler);
  for (int i = 0; i < 8; ++i) {
    for (uint64_t l = 0; l < 6; ++l) job.Launch(l);
    job.Alloc(50 * kMiB);
    job.Launch(50);
    job.Free(50 * kMiB);
    for (uint64_t l = 0; l < 3; ++l) job.Launch(60 + l);
  }
  const CyclePlan plan = PlanGates(profiler.Current().value(), kMiB);
  // The trough is at the end of the longest row of launches at the base, so that the jump follows
  // it at once.
  ASSERT_EQ(plan.gates.size(), 3u);
  EXPECT_GE(plan.gates[0].need_units, 50u);
  EXPECT_GE(plan.gates[1].need_units, 50u) << "still live when launch 0 is issued";
  EXPECT_EQ(plan.gates[2].launch, 2u);
  EXPECT_LE(plan.gates[2].need_units, 1u);
}

TEST(PlanGates, NoMoreThanTheTableHolds) {
  const Profile profile = TrainingProfile(0, 100, kMiB, false);
  EXPECT_LE(PlanGates(profile, kMiB, {.max_gates = 4}).gates.size(), 4u);
  EXPECT_EQ(PlanGates(profile, kMiB, {.max_gates = 1}).gates.size(), 1u);
}

TEST(PlanGates, TheCreditIsAnEighthOfAShortIteration) {
  const Profile timed = TrainingProfile(10 * kMiB, 4, 8 * kMiB, true);
  ASSERT_TRUE(timed.timed);
  EXPECT_EQ(PlanGates(timed, kMiB).credit_ns, timed.iteration_ns / 8);
  EXPECT_EQ(PlanGates(TrainingProfile(10 * kMiB, 4, 8 * kMiB, false), kMiB).credit_ns, 5'000'000u);
}

TEST(PlanGates, AFlatCycleHasOneGate) {
  Profiler profiler(TestProfilerOptions());
  TrainingStream job(&profiler);
  job.Alloc(8 * kMiB);
  for (int i = 0; i < 20; ++i) {
    for (uint64_t f = 0; f < 5; ++f) job.Launch(f);
  }
  const CyclePlan plan = PlanGates(profiler.Current().value(), kMiB);
  ASSERT_EQ(plan.gates.size(), 1u);
  EXPECT_EQ(plan.gates[0].need_units, 10u);
}

}  // namespace
}  // namespace sluice::scheduler
