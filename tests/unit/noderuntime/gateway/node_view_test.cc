// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/node_view.h"

#include <gtest/gtest.h>

namespace sluice::gateway {
namespace {

TEST(ParseStatus, TakesWhatAStatusSays) {
  const Result<GpuView> gpu = ParseStatus(R"({"version": "0.1.0", "gpu": 2, "gpu_uuid": "GPU-x",
    "gpu_name": "H200", "pool_bytes": 100, "budget_bytes": 90, "free_bytes": 40, "policy": "flow",
    "lanes": 2, "draining": true, "bypassed": {"pods": 3, "others": 1},
    "keeper": {"pid": 71, "losses": 2, "missing_ms": 0}, "jobs": [
      {"id": 7, "name": "ns/a/main", "phase": "parked", "request_bytes": 10, "limit_bytes": 50,
       "held_bytes": 20, "peak_held_bytes": 30, "outside_bytes": 5,
       "waiting": {"kind": "gate", "since_ms": 1200, "reason": "job 8 holds 20 B"}},
      {"id": 8, "name": "b", "phase": "waiting", "waiting": null, "refused": "no room"}]})");
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  EXPECT_TRUE(gpu->up);
  EXPECT_EQ(gpu->number, 2u);
  EXPECT_EQ(gpu->uuid, "GPU-x");
  EXPECT_EQ(gpu->budget_bytes, 90u);
  EXPECT_EQ(gpu->draining, true);
  EXPECT_EQ(gpu->bypassed_pods, 3u);
  EXPECT_EQ(gpu->bypassed_others, 1u);
  EXPECT_EQ(gpu->keeper, true);
  EXPECT_EQ(gpu->keeper_losses, 2u);
  ASSERT_EQ(gpu->jobs.size(), 2u);
  EXPECT_EQ(gpu->jobs[0].limit_bytes, 50u);
  EXPECT_EQ(gpu->jobs[0].waits_for, "job 8 holds 20 B");
  EXPECT_EQ(gpu->jobs[0].waits_ms, 1200u);
  EXPECT_EQ(gpu->jobs[1].waits_for, "no room");
}

TEST(ParseStatus, ToHaveNoKeeperIsNotToLackOne) {
  EXPECT_EQ(ParseStatus(R"({"keeper": {"pid": null, "losses": 1}, "jobs": []})")->keeper, false);
  EXPECT_FALSE(ParseStatus(R"({"keeper": null, "jobs": []})")->keeper.has_value());
}

TEST(ParseStatus, TakesFigures) {
  const Result<GpuView> gpu = ParseStatus(R"({"started_unix_ms": 5, "reserve_bytes": 6,
    "nvml": {"used_bytes": 7, "drift_bytes": -8}, "sessions": {"1.4": 2, "1.3": 1},
    "host_tier": {"capacity_bytes": 9, "used_bytes": 3}, "claims": "steps",
    "figures": {"bounds_ns": {"wait": [1], "decision": [2, 3]},
      "decision": {"counts": [1, 0, 4], "sum_ns": 70}, "policy_switches": 2,
      "loans": [{"lender": 1, "borrower": 2, "bytes": 3, "lent_bytes": 4, "returned_bytes": 1,
        "loans": 6}]},
    "jobs": [{"id": 2, "figures": {"gate_wait": {"counts": [0, 1], "sum_ns": 9}}}], "ended": []})");
  ASSERT_TRUE(gpu.ok());
  EXPECT_EQ(gpu->started_unix_ms, 5u);
  EXPECT_EQ(gpu->reserve_bytes, 6u);
  EXPECT_EQ(gpu->nvml_used_bytes, 7u);
  EXPECT_EQ(gpu->drift_bytes, -8);
  EXPECT_EQ(gpu->host_tier_used_bytes, 3u);
  EXPECT_EQ(gpu->claims, "steps");
  EXPECT_EQ(gpu->sessions->at("1.3"), 1u);
  EXPECT_EQ(gpu->policy_switches, 2u);
  EXPECT_EQ(gpu->decision->bounds_ns, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(gpu->decision->counts, (std::vector<uint64_t>{1, 0, 4}));
  EXPECT_FALSE(gpu->service.has_value());
  ASSERT_EQ(gpu->loans.size(), 1u);
  EXPECT_EQ(gpu->loans[0].borrower, 2u);
  EXPECT_EQ(gpu->loans[0].returned_bytes, 1u);
  EXPECT_EQ(gpu->jobs.at(0).gate_wait->bounds_ns, std::vector<uint64_t>{1});
  EXPECT_TRUE(gpu->ended.has_value());
}

TEST(ParseStatus, LeavesOutTheEventsAndNothingElse) {
  const Result<GpuView> gpu = ParseStatus(
      R"({"jobs":[{"id":1,"name":"a \"events\":[ b","figures":{"events":[{"text":"] \" [\\"},[]],)"
      R"("iterations":7}},{"id":2,"figures":{"events":[],"iterations":8}}]})");
  ASSERT_TRUE(gpu.ok());
  ASSERT_EQ(gpu->jobs.size(), 2u);
  EXPECT_EQ(gpu->jobs[0].name, "a \"events\":[ b");
  EXPECT_EQ(gpu->jobs[0].iterations, 7u);
  EXPECT_EQ(gpu->jobs[1].iterations, 8u);
  for (const char* cut : {R"({"events":[)", R"({"events":["\)", R"({"events":[]])"}) {
    EXPECT_EQ(ParseStatus(cut).status().code(), StatusCode::kUnavailable) << cut;
  }
}

TEST(ParseStatus, WhatAnotherVersionDoesNotSayIsNothing) {
  const Result<GpuView> gpu =
      ParseStatus(R"({"gpu": "one", "bypassed": 3, "jobs": [1, {"id": -1}], "draining": "yes"})");
  ASSERT_TRUE(gpu.ok());
  EXPECT_EQ(gpu->number, 0u);
  EXPECT_FALSE(gpu->draining.has_value());
  EXPECT_FALSE(gpu->bypassed_pods.has_value());
  EXPECT_FALSE(gpu->keeper.has_value());
  ASSERT_EQ(gpu->jobs.size(), 1u);
  EXPECT_EQ(gpu->jobs[0].id, 0u);
  for (const char* text : {"", "[]", "{"}) {
    EXPECT_EQ(ParseStatus(text).status().code(), StatusCode::kUnavailable) << text;
  }
}

}  // namespace
}  // namespace sluice::gateway
