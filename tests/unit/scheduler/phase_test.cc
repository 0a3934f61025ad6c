// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/unit/scheduler/policy_desk.h"
#include "tests/unit/scheduler/predicted.h"

namespace sluice::scheduler {
namespace {

const std::vector<Units> kFour = {2, 3, 3, 2};

Predicted ThreeJobs(double phase) {
  Predicted jobs("flow", 100);
  jobs.config.lanes = 3;
  jobs.config.phase = phase;
  for (JobId id = 1; id <= 3; ++id) jobs.Add(id, kFour);
  return jobs;
}

/// Whether it is let in, as the decisions are made.
bool Begins(Predicted* jobs, JobId id) {
  jobs->About(id);
  jobs->requests[0].units = 1;
  jobs->requests[0].claim = 3;
  return Next(jobs->ledger, jobs->requests, jobs->config, jobs->Now()).has_value();
}

TEST(Phase, AnIterationBeginsWhenTheOneBeforeIsFarEnough) {
  Predicted jobs = ThreeJobs(0.5);
  EXPECT_TRUE(Begins(&jobs, 1)) << "nobody is before it";
  jobs.Begin(1, 0);
  EXPECT_FALSE(Begins(&jobs, 2));
  jobs.MoveTo(1, 1, 100);
  EXPECT_FALSE(Begins(&jobs, 2)) << "a quarter";
  jobs.MoveTo(1, 2, 200);
  EXPECT_TRUE(Begins(&jobs, 2)) << "half of it";
}

TEST(Phase, IsThatOfTheOneThatBeganLast) {
  Predicted jobs = ThreeJobs(0.5);
  jobs.Begin(1, 0);
  jobs.MoveTo(1, 3, 300);
  jobs.Begin(2, 300);
  EXPECT_FALSE(Begins(&jobs, 3)) << "job 1 is at three quarters, job 2 has just begun";
  jobs.MoveTo(2, 2, 500);
  EXPECT_TRUE(Begins(&jobs, 3));
}

TEST(Phase, WithoutOneNothingIsWaitedFor) {
  Predicted jobs = ThreeJobs(0);
  jobs.Begin(1, 0);
  EXPECT_TRUE(Begins(&jobs, 2));
}

TEST(Phase, NobodyWaitsForWhoComputesNothing) {
  Predicted jobs = ThreeJobs(0.5);
  jobs.Begin(1, 0);
  ASSERT_TRUE(jobs.ledger.SetQuiet(1, true).ok());
  EXPECT_TRUE(Begins(&jobs, 2));
}

TEST(Phase, NobodyWaitsForWhoIsNotKnown) {
  Predicted jobs = ThreeJobs(0.5);
  jobs.Begin(1, 0);
  jobs.courses.erase(1);
  EXPECT_TRUE(Begins(&jobs, 2));
}

}  // namespace
}  // namespace sluice::scheduler
