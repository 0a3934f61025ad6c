// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/algorithm1_as_printed.h"

#include <gtest/gtest.h>

namespace sluice::bench {
namespace {

std::string Text(const PrintedPlan::Stream& stream) {
  std::string text;
  for (const auto& [place, groups] : stream) {
    text += (text.empty() ? "" : " ") + std::to_string(place) + ":";
    for (const auto& group : groups) {
      text += static_cast<char>('a' + group.job) + std::to_string(group.group);
    }
  }
  return text;
}

/// Room for three groups beside the first job's peak; one is kept for the
/// group that frees.
TEST(AlgorithmOneAsPrinted, DelaysTheSecondJob) {
  const std::vector<GroupedJob> jobs = {{6, 8, 60}, {5, 7, 50}};
  const PrintedPlan plan = AlgorithmOneAsPrinted(jobs, 90, 10);
  EXPECT_EQ(plan.p, 2);
  EXPECT_EQ(Text(plan.av), "0:a0 1:a1 2:a2 3:a3 4:a4 5:a5 6:b2 7:b3 8:b4");
  EXPECT_EQ(Text(plan.dv), "4:b0 5:b1 6:a6 7:a7 8:b5 9:b6");
  EXPECT_EQ(FaultsOf(plan, jobs), (std::set<PlanFault>{PlanFault::kBesideItself}))
      << "b4 takes what b5 is to give back at the same time";
}

/// Two jobs that take in two groups and give back in two.
TEST(AlgorithmOneAsPrinted, PutsTwoGroupsOfOneJobIntoAPair) {
  const std::vector<GroupedJob> jobs = {{2, 4, 20}, {2, 4, 20}};
  const PrintedPlan plan = AlgorithmOneAsPrinted(jobs, 30, 10);
  EXPECT_EQ(plan.p, 0);
  EXPECT_EQ(Text(plan.av), "0:a0 1:a1 2:b0 3:b1 4:b3");
  EXPECT_EQ(Text(plan.dv), "2:a2 3:a3 4:b2");
  EXPECT_EQ(FaultsOf(plan, jobs), (std::set<PlanFault>{PlanFault::kBesideItself}));
}

TEST(AlgorithmOneAsPrinted, BeginsBeforeTheBeginning) {
  const std::vector<GroupedJob> jobs = {{2, 4, 20}, {2, 4, 20}};
  const PrintedPlan tight = AlgorithmOneAsPrinted(jobs, 25, 10);
  EXPECT_EQ(tight.p, -1) << "less than a group is left beside the first job's peak";
  EXPECT_TRUE(FaultsOf(tight, jobs).contains(PlanFault::kNoSuchGroup));
  const PrintedPlan wide = AlgorithmOneAsPrinted(jobs, 100, 10);
  EXPECT_EQ(wide.p, 7);
  EXPECT_TRUE(FaultsOf(wide, jobs).contains(PlanFault::kNoSuchPlace));
  EXPECT_TRUE(FaultsOf(wide, jobs).contains(PlanFault::kNoSuchGroup));
}

TEST(AlgorithmOneAsPrinted, IsAScheduleForSome) {
  const std::vector<GroupedJob> jobs = {{1, 3, 10}, {1, 3, 10}};
  const PrintedPlan plan = AlgorithmOneAsPrinted(jobs, 30, 10);
  EXPECT_EQ(Text(plan.av), "0:a0 1:b1 2:b2");
  EXPECT_EQ(Text(plan.dv), "0:b0 1:a1 2:a2");
  EXPECT_TRUE(FaultsOf(plan, jobs).empty());
}

TEST(AlgorithmOneAsPrinted, EachFaultIsSeen) {
  const std::vector<GroupedJob> jobs = {{1, 2, 10}};
  PrintedPlan plan;
  plan.av[0] = {{0, 1}, {0, 1}};
  EXPECT_EQ(FaultsOf(plan, jobs),
            (std::set<PlanFault>{PlanFault::kOverwritten, PlanFault::kBesideItself,
                                 PlanFault::kLeftOut}));
  plan = PrintedPlan();
  plan.av[-1] = {{0, 1}};
  plan.dv[2] = {{0, 0}};
  plan.dv[3] = {{0, 2}};
  EXPECT_EQ(FaultsOf(plan, jobs),
            (std::set<PlanFault>{PlanFault::kNoSuchPlace, PlanFault::kNoSuchGroup,
                                 PlanFault::kOutOfOrder}));
  plan = PrintedPlan();
  plan.av[0] = {{0, 0}};
  plan.dv[1] = {{0, 1}};
  EXPECT_TRUE(FaultsOf(plan, jobs).empty());
}

}  // namespace
}  // namespace sluice::bench
