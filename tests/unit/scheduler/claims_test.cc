// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/claims.h"

#include <gtest/gtest.h>

namespace sluice::scheduler {
namespace {

CyclePlan PlanOf(const std::vector<Units>& needs) {
  CyclePlan plan;
  for (const Units need : needs) {
    plan.gates.push_back({static_cast<uint32_t>(plan.gates.size()), need, 1});
    plan.peak_units = std::max(plan.peak_units, need);
  }
  return plan;
}

TEST(ClaimsTest, AContractHoldsToTheTrough) {
  EXPECT_EQ(AheadOf(PlanOf({2, 9, 4}), 1, Claims::kContract, 4), (std::vector<Units>{9, 9, 9}));
}

TEST(ClaimsTest, ACurveIsTheMostThatIsStillToCome) {
  EXPECT_EQ(AheadOf(PlanOf({2, 9, 3, 6, 4, 0}), 1, Claims::kCurve, 4),
            (std::vector<Units>{9, 9, 6, 6, 4, 1}));
}

TEST(ClaimsTest, StepsAreTheNextOneAboveTheCurve) {
  // Four steps of two units between the base of 1 and the peak of 9.
  EXPECT_EQ(AheadOf(PlanOf({2, 9, 8, 7, 6, 3, 1}), 1, Claims::kSteps, 4),
            (std::vector<Units>{9, 9, 9, 7, 7, 3, 1}));
  EXPECT_EQ(AheadOf(PlanOf({2, 9, 8, 1}), 1, Claims::kSteps, 0), (std::vector<Units>{9, 9, 9, 1}));
}

TEST(ClaimsTest, APlanThatIsFlatOrEmptyClaimsWhatItNeeds) {
  for (const Claims claims : {Claims::kContract, Claims::kSteps, Claims::kCurve}) {
    EXPECT_EQ(AheadOf(PlanOf({5, 5}), 5, claims, 4), (std::vector<Units>{5, 5}));
    EXPECT_EQ(AheadOf(PlanOf({5, 4}), 9, claims, 4).front(), 5u) << "a base above the peak";
    EXPECT_TRUE(AheadOf(CyclePlan(), 0, claims, 4).empty());
  }
}

TEST(ClaimsTest, AreKnownByTheirNames) {
  for (const std::string& name : ClaimsNames()) EXPECT_EQ(ClaimsName(*FindClaims(name)), name);
  EXPECT_EQ(ClaimsNames().size(), 3u);
  EXPECT_FALSE(FindClaims("peak").has_value());
}

}  // namespace
}  // namespace sluice::scheduler
