// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/patience.h"

#include <gtest/gtest.h>

namespace sluice::scheduler {
namespace {

constexpr uint64_t kS = 1'000'000'000;
constexpr Patience kPatience;

TEST(Patience, AJobThatCompilesIsWaitedFor) {
  // It launched its first kernels, and then nothing for a minute.
  EXPECT_EQ(Judge({.waited_ns = 60 * kS, .launches = 3, .silent_ns = 60 * kS}, kPatience),
            GiveUp::kNot);
}

TEST(Patience, SilenceCountsFromTheLastSign) {
  Measured job{.waited_ns = 300 * kS, .silent_ns = 120 * kS - 1};
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kNot);
  job.silent_ns = 120 * kS;
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kSilent);
}

// Whoever was idle for an hour is not waited for another two minutes, but may be about to go on.
TEST(Patience, AnIdleJobIsGivenUpSoonAfterSomebodyCame) {
  Measured job{.waited_ns = 5 * kS - 1, .silent_ns = 3600 * kS};
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kNot);
  job.waited_ns = 5 * kS;
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kSilent);
}

TEST(Patience, WhoWaitsForMemoryItselfIsNotSilent) {
  Measured job{.blocked = true, .waited_ns = 300 * kS, .silent_ns = 300 * kS};
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kNot);
  job.waited_ns = 900 * kS;
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kSlow) << "but it is not waited for without end";
}

TEST(Patience, ABusyJobIsNotWaitedForWithoutEnd) {
  Measured job{.waited_ns = 900 * kS - 1, .launches = 10'000};
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kNot);
  job.waited_ns = 900 * kS;
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kSlow);
}

TEST(Patience, AJobWithoutACycleIsGivenUpByItsLaunches) {
  Measured job{.waited_ns = kS, .launches = 49'151};
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kNot);
  job.launches = 49'152;
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kAimless);
  // What it launched before it was told its cycle says nothing about whether it finds that.
  job.published = Measured::Published{.launches = 10, .period = 100};
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kNot);
}

TEST(Patience, AnEarlierCycleIsLookedForAtLeastEightTimes) {
  Measured job{.waited_ns = kS, .published = Measured::Published{49'152, 100}};
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kNot);
  job.published->launches = 49'153;
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kLost);
  job.published->period = 16'384;
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kNot);
  job.published->launches = 8 * 16'384 + 1;
  EXPECT_EQ(Judge(job, kPatience), GiveUp::kLost);
}

TEST(Patience, EveryReasonIsSaid) {
  for (const GiveUp reason : {GiveUp::kSilent, GiveUp::kSlow, GiveUp::kAimless, GiveUp::kLost}) {
    EXPECT_FALSE(Why(reason, kPatience).empty());
  }
  EXPECT_EQ(Why(GiveUp::kSilent, kPatience), "nothing was heard of it for 120 s");
  EXPECT_NE(HowLong(kPatience).find("120 s without a sign of life"), std::string::npos);
}

}  // namespace
}  // namespace sluice::scheduler
