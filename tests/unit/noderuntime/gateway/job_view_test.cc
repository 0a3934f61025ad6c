// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/job_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::gateway {
namespace {

TEST(ParseJob, TakesItsFigures) {
  const JobView job = ParseJob(nlohmann::json::parse(R"({"id": 3, "name": "a", "phase": "parked",
    "away_bytes": 7, "run_ahead_ns": 11, "profile": {"credit_ns": 12, "iteration_ns": 13},
    "waiting": {"kind": "gate", "since_ms": 5, "reason": "its turn", "code": "turn"},
    "figures": {"iterations": 1, "lent_bytes": 2, "borrowed_bytes": 3, "lent_total_bytes": 4,
      "borrowed_total_bytes": 5, "claim_raises": 6, "deviations_by": {"cycle": 7}, "returns": 9,
      "waits": {"turn": 2, "memory": 0}, "refusals": {},
      "gate_wait": {"counts": [1, 2, 3], "sum_ns": 99}}})"),
                               {10, 20});
  EXPECT_EQ(job.away_bytes, 7u);
  EXPECT_EQ(job.run_ahead_ns, 11u);
  EXPECT_EQ(job.credit_ns, 12u);
  EXPECT_EQ(job.iteration_ns, 13u);
  EXPECT_EQ(job.wait_code, "turn");
  EXPECT_EQ(job.waits_for, "its turn");
  EXPECT_EQ(job.iterations, 1u);
  EXPECT_EQ(job.borrowed_total_bytes, 5u);
  EXPECT_EQ(job.returns, 9u);
  EXPECT_EQ(job.deviations, (std::map<std::string, uint64_t>{{"cycle", 7}}));
  EXPECT_FALSE(job.evictions.has_value());
  EXPECT_EQ(job.waits, (std::map<std::string, uint64_t>{{"memory", 0}, {"turn", 2}}));
  ASSERT_TRUE(job.refusals.has_value());
  EXPECT_TRUE(job.refusals->empty());
  ASSERT_TRUE(job.gate_wait.has_value());
  EXPECT_EQ(job.gate_wait->bounds_ns, std::vector<uint64_t>{20});
  EXPECT_EQ(job.gate_wait->counts, (std::vector<uint64_t>{3, 3}));
  EXPECT_EQ(job.gate_wait->sum_ns, 99u);
  EXPECT_FALSE(job.lease_wait.has_value());
  EXPECT_FALSE(job.claim_bytes.has_value());
}

TEST(ParseJob, ItsHistogramsHaveFewBuckets) {
  const JobView job = ParseJob(nlohmann::json::parse(R"({"figures": {
    "gate_wait": {"counts": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], "sum_ns": 99},
    "lease_wait": {"counts": [1, 2], "sum_ns": 99}}})"),
                               {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(job.gate_wait->bounds_ns, (std::vector<uint64_t>{4, 6, 8, 10, 12}));
  EXPECT_EQ(job.gate_wait->counts, (std::vector<uint64_t>{10, 11, 15, 19, 23, 13}));
  EXPECT_EQ(job.gate_wait->sum_ns, 99u);
  EXPECT_EQ(job.lease_wait->counts.size(), 2u) << "of other bounds: left to who sees that";
}

TEST(ParseJob, WhatIsOfAnotherKindIsUnknown) {
  const JobView job =
      ParseJob(nlohmann::json::parse(R"({"id": -1, "held_bytes": "2", "profile": null,
    "live_bytes": -3, "waiting": [], "figures": {"iterations": 1.5, "waits": {"turn": "x"},
    "gate_wait": {"counts": [1, "2"]}}})"),
               {});
  EXPECT_EQ(job.id, 0u);
  EXPECT_FALSE(job.held_bytes.has_value());
  EXPECT_FALSE(job.live_bytes.has_value());
  EXPECT_FALSE(job.iterations.has_value());
  EXPECT_TRUE(job.waits->empty());
  EXPECT_TRUE(job.gate_wait->counts.empty());
  EXPECT_EQ(job.waits_for, "");
}

}  // namespace
}  // namespace sluice::gateway
