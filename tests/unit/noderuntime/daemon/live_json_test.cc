// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/live_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::noded {
namespace {

class LiveJsonTest : public flow::FlowTest {
 protected:
  nlohmann::json Live(const std::map<flow::JobId, JobFacts>& jobs) {
    return nlohmann::json::parse(LiveJson(*flow_, jobs, figures_, &history_, 0, 0, now_));
  }

  figures::Figures figures_{40};
  figures::HeldHistory history_;
};

TEST_F(LiveJsonTest, WhatAProgramSaysOfItselfIsNoMoreThanItHolds) {
  Start(1);
  ASSERT_TRUE(Lease(1, 20).ok());
  clients_[1].client->live_bytes = ~uint64_t{0};
  const nlohmann::json job = Live({{1, {.name = "one", .connected = true}}})["jobs"][0];
  EXPECT_EQ(job["held"], 20 * kUnit);
  EXPECT_EQ(job["live"], 20 * kUnit);
}

TEST_F(LiveJsonTest, WhatIsHeldAndFreeIsThePoolAlsoOfAJobThatNobodySpeaksFor) {
  Start(7);
  ASSERT_TRUE(Lease(7, 20).ok());
  const nlohmann::json live = Live({});
  ASSERT_EQ(live["jobs"].size(), 1u);
  EXPECT_EQ(live["jobs"][0]["id"], 7);
  EXPECT_EQ(live["jobs"][0]["name"], "job7");
  EXPECT_EQ(live["jobs"][0]["held"].get<uint64_t>() + live["free"].get<uint64_t>(), live["pool"]);
}

}  // namespace
}  // namespace sluice::noded
