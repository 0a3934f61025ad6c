// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/demo_plan.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::cli {
namespace {

TEST(PlanJobs, NoTwoJobsAreTheSame) {
  DemoOptions options;
  options.jobs = kMaxDemoJobs;
  options.seed = 5;
  std::set<std::pair<std::string, uint64_t>> seen;
  std::set<std::string> models;
  for (const DemoJob& job : PlanJobs(options)) {
    EXPECT_TRUE(seen.emplace(job.model, job.seed).second) << job.label;
    models.insert(job.model);
  }
  EXPECT_EQ(seen.size(), kMaxDemoJobs);
  EXPECT_EQ(models.size(), 2u);
}

TEST(PlanPool, IsTheFractionInWholeHandles) {
  DemoOptions options;
  options.pool_fraction = 0.6;
  const auto pool = PlanPool(options, {30 * kMiB, 29 * kMiB});
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  EXPECT_EQ(*pool, 34 * kMiB) << "59 MiB * 0.6 = 35.4 MiB, down to handles of 2 MiB";
}

TEST(PlanPool, RefusesAPoolThatHoldsNoJob) {
  DemoOptions options;
  options.pool_fraction = 0.6;
  const auto pool = PlanPool(options, {60 * kMiB, 20 * kMiB});
  EXPECT_EQ(
      pool.status().message(),
      "--pool-fraction: a pool of 48.0 MiB cannot hold the largest job alone; allowed: from 60.0 "
      "MiB");
}

TEST(PlanPool, RefusesAPoolThatShowsNothing) {
  DemoOptions options;
  options.pool_bytes = 40 * kMiB;
  EXPECT_EQ(PlanPool(options, {30 * kMiB, 30 * kMiB}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(PlanPool, RefusesTinyPeaks) {
  EXPECT_EQ(PlanPool({}, {30 * kMiB, 8 * kMiB}).status().message(),
            "a job's peak of 8.0 MiB is less than 64 lease units of 256.0 KiB");
}

TEST(CreditOffIterations, StayWithinTheRun) {
  EXPECT_EQ(CreditOffIterations(200), 100u);
  EXPECT_EQ(CreditOffIterations(100'000), 100u);
  EXPECT_EQ(CreditOffIterations(10), 10u);
}

}  // namespace
}  // namespace sluice::cli
