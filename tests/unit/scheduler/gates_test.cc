// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/gates.h"

#include <gtest/gtest.h>

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

TEST(PlanGates, GroupsOfATenthOfThePeak) {
  const Profile profile = TrainingProfile(10 * kMiB, 30, 3 * kMiB, true);
  const CyclePlan plan = PlanGates(profile, kMiB);
  // The peak is 100 MiB; it grows by 90 and falls by 90 in steps of 3: a gate for every 12 or so.
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
