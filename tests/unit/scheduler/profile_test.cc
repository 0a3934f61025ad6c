// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/profile.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/training_stream.h"

namespace sluice::scheduler {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kWeights = 10 * kMiB;

class ProfilerTest : public testing::Test {
 protected:
  Profiler profiler{TestProfilerOptions()};
  TrainingStream job{&profiler};
};

TEST_F(ProfilerTest, FindsTheIterationOfATrainingJob) {
  job.Begin(kWeights);
  for (int i = 0; i < 4; ++i) job.Iteration(4, 8 * kMiB);
  ASSERT_TRUE(profiler.certain());
  const auto profile = profiler.Current();
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->period, 12u);
  EXPECT_EQ(profile->base_bytes, kWeights);
  EXPECT_EQ(profile->peak_bytes, kWeights + 32 * kMiB);
  EXPECT_EQ(profile->trough_place, TroughPlace::kAfterLast);
  EXPECT_FALSE(profile->timed);
  EXPECT_EQ(profiler.live_bytes(), kWeights);
  // Launch 0 is the first of the forward pass: the updates are the row of launches at the base.
  ASSERT_EQ(profile->live_before.size(), 12u);
  EXPECT_EQ(profile->live_before[0], kWeights + 8 * kMiB);
  EXPECT_EQ(profile->live_before[3], kWeights + 32 * kMiB);
  EXPECT_EQ(profile->live_before[8], kWeights);
  EXPECT_EQ(profile->max_live[2], kWeights + 32 * kMiB)
      << "the last map is allocated after launch 2";
  EXPECT_EQ(profile->largest_alloc[2], 8 * kMiB);
  EXPECT_EQ(profile->largest_alloc[5], 0u);
}

TEST_F(ProfilerTest, TheTroughIsKnownByItsWindow) {
  job.Begin(kWeights);
  for (int i = 0; i < 4; ++i) job.Iteration(4, 8 * kMiB);
  const auto profile = profiler.Current();
  ASSERT_TRUE(profile.has_value());
  // Four updates by one function in a row: only four of them end the cycle.
  EXPECT_EQ(profile->window, 4u);
  uint64_t hash = 7;
  for (int i = 0; i < 4; ++i) hash = TestFold(hash, 300);
  EXPECT_EQ(profile->trough_hash, hash);
}

TEST_F(ProfilerTest, CutsBeforeALaunchWhenMemoryIsLeastThere) {
  for (int i = 0; i < 12; ++i) {
    job.Launch(1);  // at 0 bytes live
    job.Alloc(4 * kMiB);
    job.Launch(2);
    job.Launch(3);
    job.Free(4 * kMiB);
  }
  const auto profile = profiler.Current();
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->base_bytes, 0u);
  EXPECT_EQ(profile->period, 3u);
  // Nothing is live before and after launch 1: it ends the cycle.
  EXPECT_EQ(profile->trough_place, TroughPlace::kAfterLast);
  EXPECT_EQ(profile->live_before, (std::vector<uint64_t>{4 * kMiB, 4 * kMiB, 0}));

  Profiler other(TestProfilerOptions());
  TrainingStream dip(&other);
  dip.Alloc(8 * kMiB);
  for (int i = 0; i < 20; ++i) {
    dip.Free(6 * kMiB);
    dip.Alloc(1 * kMiB);
    dip.Launch(1);  // memory was lower on the way to this launch than on the way to the next
    dip.Alloc(5 * kMiB);
    dip.Launch(2);
  }
  const auto before = other.Current();
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->trough_place, TroughPlace::kBeforeFirst);
  EXPECT_EQ(before->live_before, (std::vector<uint64_t>{3 * kMiB, 8 * kMiB}));
}

TEST_F(ProfilerTest, AsksForTimesAndTakesTheMedian) {
  EXPECT_FALSE(profiler.wants_times());
  job.Begin(kWeights);
  for (int i = 0; i < 4; ++i) job.Iteration(4, 8 * kMiB);
  ASSERT_TRUE(profiler.certain());
  EXPECT_TRUE(profiler.wants_times());
  for (int i = 0; i < 3; ++i) {
    job.Iteration(4, 8 * kMiB);
    job.ReportTimes();
  }
  EXPECT_FALSE(profiler.wants_times());
  const auto profile = profiler.Current();
  ASSERT_TRUE(profile.has_value());
  EXPECT_TRUE(profile->timed);
  EXPECT_EQ(profile->launch_ns[0], 100'000u);
  EXPECT_EQ(profile->launch_ns[11], 300'000u);
  EXPECT_EQ(profile->iteration_ns,
            (100u + 101 + 102 + 103 + 200 + 201 + 202 + 203 + 4 * 300) * 1000u);
}

TEST_F(ProfilerTest, TimesMayComeManyCyclesLate) {
  job.Begin(kWeights);
  for (int i = 0; i < 120; ++i) {
    job.Iteration(4, 8 * kMiB);
    job.ReportTimes(1000);  // a full launch queue, 83 cycles
  }
  ASSERT_TRUE(profiler.Current().has_value());
  EXPECT_TRUE(profiler.Current()->timed);
}

TEST_F(ProfilerTest, TimesOfUnknownLaunchesAndOtherStreamsAreIgnored) {
  job.Begin(kWeights);
  for (int i = 0; i < 4; ++i) job.Iteration(4, 8 * kMiB);
  profiler.Consume({OpKind::kLaunchTime, 0, 12345, 77});
  profiler.Consume({OpKind::kLaunchTime, 3, job.launch_number - 1, 77});
  EXPECT_EQ(profiler.Current()->iteration_ns, 0u);
}

TEST_F(ProfilerTest, LaunchNumbersMayWrap) {
  job.launch_number = 0xffffffd0;
  job.Begin(kWeights);
  for (int i = 0; i < 8; ++i) {
    job.Iteration(4, 8 * kMiB);
    job.ReportTimes();
  }
  ASSERT_TRUE(profiler.Current().has_value());
  EXPECT_TRUE(profiler.Current()->timed);
}

TEST_F(ProfilerTest, SizesMayChangeBetweenRepetitions) {
  job.Begin(kWeights);
  for (uint64_t i = 0; i < 6; ++i) job.Iteration(4, (6 + i % 3) * kMiB);
  const auto profile = profiler.Current();
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->period, 12u);
  EXPECT_EQ(profile->peak_bytes, kWeights + 32 * kMiB) << "the envelope";
}

TEST_F(ProfilerTest, LayersOfOneIterationAreNotIterations) {
  job.Begin(kWeights);
  for (int l = 0; l < 40; ++l) {  // one forward pass: the same two launches for each layer
    job.Alloc(kMiB);
    job.Launch(1);
    job.Launch(2);
  }
  EXPECT_FALSE(profiler.certain()) << "memory only grows";
}

TEST_F(ProfilerTest, AFlatInnerLoopIsUnlearnt) {
  job.Begin(kWeights);
  uint64_t lost = 0;
  for (int i = 0; i < 12; ++i) {
    const uint64_t before = profiler.generation();
    job.Iteration(4, 8 * kMiB);
    for (int u = 0; u < 60; ++u) job.Launch(400);  // a long row of equal updates at the base
    if (i >= 6) lost += profiler.generation() - before;
  }
  const auto profile = profiler.Current();
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->period, 72u);
  EXPECT_EQ(lost, 0u) << "the loop is not taken for the cycle again and again";
}

TEST_F(ProfilerTest, StepsThatKeepLittleBesideLargeWeightsAreNotIterations) {
  job.Begin(400 * kMiB);
  for (int i = 0; i < 100; ++i) {  // a decoder: each step keeps its activations until the end
    job.Alloc(kMiB);
    for (uint64_t l = 0; l < 4; ++l) job.Launch(100 + l);
    EXPECT_FALSE(profiler.certain()) << "step " << i;
  }
}

TEST_F(ProfilerTest, ALongFlatLoopIsNotForgivenEachTime) {
  job.Begin(kWeights);
  uint64_t lost = 0;
  for (int i = 0; i < 30; ++i) {
    const uint64_t before = profiler.generation();
    job.Iteration(4, 8 * kMiB);
    for (int u = 0; u < 2000; ++u) job.Launch(400);  // many times what makes it believed
    if (i >= 20) lost += profiler.generation() - before;
  }
  ASSERT_TRUE(profiler.Current().has_value());
  EXPECT_EQ(profiler.Current()->period, 2012u);
  EXPECT_EQ(lost, 0u) << "the loop is not taken for the cycle again and again";
}

TEST_F(ProfilerTest, ACycleThatIsInterruptedNowAndThenIsForgivenEachTime) {
  job.Begin(kWeights);
  uint64_t believed = 0;
  int next = 0;
  for (int i = 1; i <= 3000; ++i) {
    job.Iteration(4, 8 * kMiB);
    if (i >= next) {  // never after the same time, or that would be the cycle
      job.Launch(500);
      next = i + 120 + i / 3 % 89;
    }
    if (i > 2400 && profiler.certain()) ++believed;
  }
  EXPECT_GT(believed, 450u) << "of 600";
}

/// An iteration that broke off early once, and from then on goes on for long each time.
TEST_F(ProfilerTest, ACycleThatWasInterruptedEarlyIsForgivenOnceItLasts) {
  job.Begin(kWeights);
  for (int i = 0; i < 10; ++i) job.Iteration(4, 8 * kMiB);
  ASSERT_TRUE(profiler.certain());
  uint64_t believed = 0;
  uint64_t iterations = 0;
  for (int n = 0; n < 40; ++n) {
    job.Launch(500);
    for (int i = 0; i < 50 + n % 30; ++i, ++iterations) {
      job.Iteration(4, 8 * kMiB);
      if (profiler.certain()) ++believed;
    }
  }
  EXPECT_GT(believed, iterations * 3 / 4);
}

TEST_F(ProfilerTest, AccumulationCyclesAreFoundWhole) {
  job.Begin(kWeights);
  for (int i = 0; i < 4; ++i) {
    for (int micro = 0; micro < 3; ++micro) {
      for (uint64_t l = 0; l < 3; ++l) {
        job.Alloc(4 * kMiB);
        job.Launch(100 + l);
      }
      job.Free(12 * kMiB);
      if (micro == 0) job.Alloc(6 * kMiB);  // gradients
      job.Launch(200);
    }
    job.Launch(300);
    job.Free(6 * kMiB);
  }
  const auto profile = profiler.Current();
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->period, 13u);
}

TEST_F(ProfilerTest, AnotherLaunchEndsTheProfile) {
  job.Begin(kWeights);
  for (int i = 0; i < 4; ++i) job.Iteration(4, 8 * kMiB);
  ASSERT_TRUE(profiler.certain());
  const uint64_t generation = profiler.generation();
  job.Launch(999);
  EXPECT_FALSE(profiler.certain());
  EXPECT_FALSE(profiler.Current().has_value());
  EXPECT_GT(profiler.generation(), generation);
  for (int i = 0; i < 6; ++i) job.Iteration(4, 8 * kMiB);
  EXPECT_TRUE(profiler.certain()) << "and it is found again";
}

TEST_F(ProfilerTest, ALongTrainingSurvivesAnEvaluationPass) {
  job.Begin(kWeights);
  for (int i = 0; i < 500; ++i) job.Iteration(4, 8 * kMiB);
  for (int i = 0; i < 30; ++i)
    job.Launch(500 + static_cast<uint64_t>(i % 7) * static_cast<uint64_t>(i));
  ASSERT_FALSE(profiler.certain());
  int needed = 0;
  while (!profiler.certain() && needed < 100) {
    job.Iteration(4, 8 * kMiB);
    ++needed;
  }
  EXPECT_LE(needed, 5);
}

TEST_F(ProfilerTest, RestartForgetsTheCycleAndKeepsTheLiveBytes) {
  job.Begin(kWeights);
  for (int i = 0; i < 4; ++i) job.Iteration(4, 8 * kMiB);
  profiler.Restart();
  EXPECT_FALSE(profiler.certain());
  EXPECT_EQ(profiler.live_bytes(), kWeights);
}

TEST_F(ProfilerTest, OtherStreamsAndCopiesDoNotDisturb) {
  job.Begin(kWeights);
  uint32_t stray = 0;
  for (int i = 0; i < 6; ++i) {
    job.Iteration(4, 8 * kMiB);
    profiler.Consume({OpKind::kCopy, 1, 0, 4096});
    for (int k = 0; k < i; ++k) profiler.Consume({OpKind::kLaunch, 1, 5000 + stray++, 70});
  }
  ASSERT_TRUE(profiler.Current().has_value());
  EXPECT_EQ(profiler.Current()->period, 12u);
  EXPECT_EQ(profiler.Current()->pacing_stream, 0u);
}

TEST_F(ProfilerTest, TheBusiestStreamPaces) {
  job.stream = 2;
  profiler.Consume({OpKind::kLaunch, 0, 0, 1});
  job.Begin(kWeights);
  for (int i = 0; i < 6; ++i) job.Iteration(4, 8 * kMiB);
  ASSERT_TRUE(profiler.Current().has_value());
  EXPECT_EQ(profiler.Current()->pacing_stream, 2u);
}

TEST_F(ProfilerTest, FreesOfUnknownMemoryDoNotUnderflow) {
  job.Free(kWeights);
  EXPECT_EQ(profiler.live_bytes(), 0u);
}

}  // namespace
}  // namespace sluice::scheduler
