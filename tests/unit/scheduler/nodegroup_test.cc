// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/unit/scheduler/policy_desk.h"
#include "tests/unit/scheduler/predicted.h"

namespace sluice::scheduler {
namespace {

/// In groups of two units: 1-2, 3-4, 5-6, 7-8 taking; back down giving.
const std::vector<Units> kTriangle = {1, 2, 3, 4, 5, 6, 7, 8, 7, 6, 5, 4, 3, 2};

Predicted TwoJobs(Units pool) {
  Predicted jobs("nodegroup", pool);
  jobs.config.groups_per_peak = 4;
  jobs.Add(1, kTriangle);
  jobs.Add(2, kTriangle);
  return jobs;
}

TEST(NodeGroup, TakesBesideOnesThatGiveBack) {
  Predicted jobs = TwoJobs(100);
  EXPECT_TRUE(jobs.MayOpen(2));
  jobs.Begin(1, 0);
  EXPECT_FALSE(jobs.MayOpen(2)) << "job 1 takes memory, however much there is";
  jobs.MoveTo(1, 6, 600);
  EXPECT_FALSE(jobs.MayOpen(2));
  jobs.MoveTo(1, 9, 900);
  EXPECT_TRUE(jobs.MayOpen(2)) << "its group from 6 down to 5 gives memory back";
  jobs.config.lanes = 1;
  EXPECT_FALSE(jobs.MayOpen(2));
}

TEST(NodeGroup, CountsTheHighWaterOfBoth) {
  Predicted jobs("nodegroup", 9);
  jobs.config.groups_per_peak = 4;
  jobs.Add(1, kTriangle);
  jobs.Add(2, {3, 4, 6, 8, 4});
  jobs.Begin(1, 0);
  jobs.MoveTo(1, 8, 800);
  EXPECT_FALSE(jobs.MayOpen(2)) << "7 and 4 are more than 9";
  jobs.MoveTo(1, 11, 1100);
  EXPECT_TRUE(jobs.MayOpen(2)) << "4 and 4";
  jobs.Begin(2, 1100);
  EXPECT_TRUE(jobs.MayPass(2, 1)) << "inside its group";
  EXPECT_FALSE(jobs.MayPass(2, 2)) << "4 and 6";
  jobs.MoveTo(1, 13, 1300);
  EXPECT_TRUE(jobs.MayPass(2, 2)) << "2 and 6";
}

TEST(NodeGroup, FollowsWhereThePartsAreCut) {
  Predicted jobs = TwoJobs(100);
  jobs.config.groups_per_peak = 1;
  jobs.Begin(1, 0);
  jobs.MoveTo(1, 7, 700);
  EXPECT_FALSE(jobs.MayOpen(2)) << "one group up to the peak";
}

TEST(NodeGroup, KnowsNothingOfOthersAndTakesTurns) {
  Predicted jobs = TwoJobs(100);
  jobs.courses.erase(1);
  ASSERT_TRUE(jobs.ledger.OpenGate(1, {.claim = 8}).ok());
  EXPECT_FALSE(jobs.MayOpen(2));
  EXPECT_TRUE(jobs.MayPass(1, 3)) << "nobody holds up what it cannot judge";
}

/// Both stand at gates that do not fit beside each other: where nothing moves nobody is held back.
TEST(NodeGroup, HoldsNobodyBackWhereNothingMoves) {
  Predicted jobs = TwoJobs(9);
  jobs.Begin(1, 0);
  jobs.MoveTo(1, 8, 800);
  const Request request{.job = 1, .kind = RequestKind::kGate, .gate = 10, .ticket = 1};
  jobs.config.policy = "flow";
  ASSERT_TRUE(jobs.ledger.Waive(1, 7).ok());
  jobs.Begin(2, 800);
  jobs.MoveTo(2, 3, 900);
  jobs.config.policy = "nodegroup";
  const Request other{.job = 2, .kind = RequestKind::kGate, .gate = 4, .ticket = 2};
  EXPECT_FALSE(Next(jobs.ledger, {other}, jobs.config, jobs.Now()).has_value()) << "job 1 computes";
  const auto decision = Next(jobs.ledger, {request, other}, jobs.config, jobs.Now());
  ASSERT_TRUE(decision.has_value());
  EXPECT_EQ(decision->kind, Decision::Kind::kGrant);
}

}  // namespace
}  // namespace sluice::scheduler
