// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/policies.h"

#include <gtest/gtest.h>

namespace sluice::scheduler {
namespace {

TEST(Policies, AreFoundByName) {
  for (const char* name : {"flow", "nodegroup", "temporal", "timeshift"}) {
    EXPECT_NE(FindPolicy(name), nullptr) << name;
  }
  EXPECT_EQ(FindPolicy("Flow"), nullptr);
  EXPECT_EQ(FindPolicy(""), nullptr);
  for (const PolicyEntry& policy : Policies()) {
    EXPECT_EQ(FindPolicy(policy.name), &policy);
    EXPECT_FALSE(policy.about.empty());
  }
}

bool MayOpen(const std::string& policy, const Ledger& ledger, JobId job, uint32_t lanes = 2) {
  const Config config{.policy = policy, .lanes = lanes};
  const std::vector<Request> requests = {{.job = job, .kind = RequestKind::kGate0}};
  const Outlook outlook;
  Forecast forecast(ledger, outlook);
  return FindPolicy(policy)->may_open({ledger, requests, requests[0], config, outlook, forecast});
}

TEST(Policies, CountLanes) {
  Ledger ledger(20, 1);
  for (JobId id = 1; id <= 3; ++id) {
    ASSERT_TRUE(ledger.Admit(id, "j", 0, 6).ok());
    ASSERT_TRUE(ledger.StartUnprofiled(id).ok());
    ASSERT_TRUE(ledger.ReachTrough(id, true).ok());
  }
  for (const PolicyEntry& policy : Policies()) {
    EXPECT_TRUE(MayOpen(std::string(policy.name), ledger, 1)) << policy.name;
  }
  ASSERT_TRUE(ledger.OpenGate(1, {.claim = 5}).ok());
  EXPECT_FALSE(MayOpen("temporal", ledger, 2));
  EXPECT_TRUE(MayOpen("flow", ledger, 2));
  EXPECT_FALSE(MayOpen("timeshift", ledger, 2)) << "nothing is known of job 1: one at a time";
  EXPECT_FALSE(MayOpen("nodegroup", ledger, 2));
  ASSERT_TRUE(ledger.OpenGate(2, {.claim = 5}).ok());
  EXPECT_FALSE(MayOpen("flow", ledger, 3));
  EXPECT_TRUE(MayOpen("flow", ledger, 3, 3));
}

}  // namespace
}  // namespace sluice::scheduler
