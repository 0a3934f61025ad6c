// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/node_view.h"

#include <gtest/gtest.h>

namespace sluice::gateway {
namespace {

TEST(ParseStatus, TakesWhatAStatusSays) {
  const Result<GpuView> gpu = ParseStatus(R"({"version": "0.1.0", "gpu": 2, "gpu_uuid": "GPU-x",
    "gpu_name": "H200", "pool_bytes": 100, "budget_bytes": 90, "free_bytes": 40, "policy": "flow",
    "lanes": 2, "draining": true, "bypassed": {"pods": 3, "others": 1}, "jobs": [
      {"id": 7, "name": "ns/a/main", "phase": "parked", "request_bytes": 10, "limit_bytes": 50,
       "held_bytes": 20, "peak_held_bytes": 30, "outside_bytes": 5,
       "waiting": {"kind": "gate", "since_ms": 1200, "reason": "job 8 holds 20 B"}},
      {"id": 8, "name": "b", "phase": "waiting", "waiting": null, "refused": "no room"}]})");
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  EXPECT_TRUE(gpu->up);
  EXPECT_EQ(gpu->number, 2u);
  EXPECT_EQ(gpu->uuid, "GPU-x");
  EXPECT_EQ(gpu->budget_bytes, 90u);
  EXPECT_TRUE(gpu->draining);
  EXPECT_EQ(gpu->bypassed_pods, 3u);
  EXPECT_EQ(gpu->bypassed_others, 1u);
  ASSERT_EQ(gpu->jobs.size(), 2u);
  EXPECT_EQ(gpu->jobs[0].limit_bytes, 50u);
  EXPECT_EQ(gpu->jobs[0].waits_for, "job 8 holds 20 B");
  EXPECT_EQ(gpu->jobs[0].waits_ms, 1200u);
  EXPECT_EQ(gpu->jobs[1].waits_for, "no room");
}

TEST(ParseStatus, WhatAnotherVersionDoesNotSayIsNothing) {
  const Result<GpuView> gpu =
      ParseStatus(R"({"gpu": "one", "bypassed": 3, "jobs": [1, {"id": -1}], "draining": "yes"})");
  ASSERT_TRUE(gpu.ok());
  EXPECT_EQ(gpu->number, 0u);
  EXPECT_FALSE(gpu->draining);
  EXPECT_EQ(gpu->bypassed_pods, 0u);
  ASSERT_EQ(gpu->jobs.size(), 1u);
  EXPECT_EQ(gpu->jobs[0].id, 0u);
  for (const char* text : {"", "[]", "{"}) {
    EXPECT_EQ(ParseStatus(text).status().code(), StatusCode::kUnavailable) << text;
  }
}

}  // namespace
}  // namespace sluice::gateway
