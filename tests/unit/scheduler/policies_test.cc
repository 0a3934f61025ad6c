// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "scheduler/policy/policy.h"

namespace sluice::scheduler {
namespace {

TEST(Policies, AreFoundByName) {
  ASSERT_NE(FindPolicy("flow"), nullptr);
  ASSERT_NE(FindPolicy("temporal"), nullptr);
  EXPECT_EQ(FindPolicy("Flow"), nullptr);
  EXPECT_EQ(FindPolicy(""), nullptr);
  for (const PolicyEntry& policy : Policies()) {
    EXPECT_EQ(FindPolicy(policy.name), &policy);
    EXPECT_FALSE(policy.about.empty());
  }
}

TEST(Policies, CountLanes) {
  Ledger ledger(20, 1);
  for (JobId id = 1; id <= 3; ++id) {
    ASSERT_TRUE(ledger.Admit(id, "j", 0, 6).ok());
    ASSERT_TRUE(ledger.StartUnprofiled(id).ok());
    ASSERT_TRUE(ledger.ReachTrough(id, true).ok());
  }
  Config config;
  const PolicyEntry& flow = *FindPolicy("flow");
  const PolicyEntry& temporal = *FindPolicy("temporal");
  EXPECT_TRUE(temporal.may_open(ledger, 1, config));
  ASSERT_TRUE(ledger.OpenGate(1, {.claim = 5}).ok());
  EXPECT_FALSE(temporal.may_open(ledger, 2, config));
  EXPECT_TRUE(flow.may_open(ledger, 2, config));
  ASSERT_TRUE(ledger.OpenGate(2, {.claim = 5}).ok());
  EXPECT_FALSE(flow.may_open(ledger, 3, config));
  config.lanes = 3;
  EXPECT_TRUE(flow.may_open(ledger, 3, config));
}

}  // namespace
}  // namespace sluice::scheduler
