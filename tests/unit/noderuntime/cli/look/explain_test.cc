// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/explain.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scheduler/record/reason.h"

namespace sluice::cli {
namespace {

constexpr char kStatus[] = R"({
 "gpu": 0, "gpu_name": "H100", "policy": "flow", "pool_bytes": 41943040, "free_bytes": 4194304,
 "figures": {"bounds_ns": {"wait": [1000000, 1000000000]},
             "loans": [{"lender": 1, "borrower": 2, "bytes": 2097152}]},
 "jobs": [
  {"id": 1, "name": "team/a/main", "phase": "running", "held_bytes": 20971520, "claim_bytes": 25165824,
   "limit_bytes": 33554432, "request_bytes": 8388608, "live_bytes": 10485760, "waiting": null,
   "figures": {"iterations": 7, "gate_wait": {"counts": [8, 2, 0], "sum_ns": 30000000},
               "lease_wait": {"counts": [0, 0, 0], "sum_ns": 0}, "waits": {"turn": 2},
               "refusals": {"over-limit": 1}, "deviations": 1,
               "events": [{"unix_ms": 1000, "kind": "refused", "reason": "over-limit", "text": "it would hold 40 MiB"}]}},
  {"id": 2, "name": "team/b/main", "phase": "parked", "held_bytes": 2097152, "limit_bytes": 33554432,
   "waiting": {"kind": "iteration", "since_ms": 3200, "reason": "waiting for its next iteration", "code": "turn"}}],
 "ended": [{"id": 9, "name": "old", "phase": "ended", "ended_unix_ms": 5000, "figures": {"iterations": 3, "events": []}}]})";

std::string Of(const std::string& job) {
  const Result<std::string> text = Explain(kStatus, job);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *text : "";
}

void ExpectIn(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
}

TEST(Explain, SaysWhyAJobWaitsWhoHoldsWhatAndWhatHelps) {
  const std::string text = Of("team/b");
  ExpectIn("job 2 'team/b/main': parked on GPU 0 (H100), policy flow", text);
  ExpectIn("waits since 3.2 s (turn): waiting for its next iteration", text);
  ExpectIn("what helps: jobs take turns", text);
  ExpectIn("borrows 2.0 MiB from job 1 'team/a/main'", text);
  ExpectIn("who else is there, free 4.0 MiB of 40.0 MiB", text);
  ExpectIn("job 1 'team/a/main'  running  20.0 MiB", text);
}

TEST(Explain, SaysWhatHappenedToAJobThatDoesNotWait) {
  const std::string text = Of("1");
  ExpectIn("waits for nothing", text);
  ExpectIn("lends 2.0 MiB to job 2 'team/b/main'", text);
  ExpectIn("waited at gates 2 of 10 times, 30.0 ms in all, 9 of 10 at most 1.0 s", text);
  ExpectIn("waited between gates never", text);
  ExpectIn("refused: over-limit 1", text);
  ExpectIn("left its iteration 1 times", text);
  ExpectIn("refused (over-limit): it would hold 40 MiB", text);
}

TEST(Explain, AJobThatEndedAMomentAgo) {
  const std::string text = Of("old");
  ExpectIn("job 9 'old': ended", text);
  ExpectIn("3 iterations", text);
}

TEST(Explain, NamesWhatIsThereWhereThereIsNoSuchJob) {
  const Result<std::string> text = Explain(kStatus, "nobody");
  EXPECT_EQ(text.status().code(), StatusCode::kNotFound);
  ExpectIn("1 (team/a/main)", text.status().message());
}

TEST(Explain, ADaemonOfAnotherVersionSaysLess) {
  const Result<std::string> text =
      Explain(R"({"jobs": [{"id": 1, "name": "a", "phase": "parked"}]})", "1");
  ASSERT_TRUE(text.ok());
  ExpectIn("waits for nothing", *text);
}

TEST(Explain, ARefusedJobIsToldWhatHelps) {
  const Result<std::string> text = Explain(
      R"({"jobs": [{"id": 1, "name": "a", "phase": "waiting", "refused": "no room for 9 GiB"}]})",
      "1");
  ASSERT_TRUE(text.ok());
  ExpectIn("refused: no room for 9 GiB", *text);
  ExpectIn("what helps: ask for less", *text);
}

TEST(Explain, ForProgramsItIsTheSame) {
  const Result<std::string> text = ExplainJson(kStatus, "2");
  ASSERT_TRUE(text.ok());
  const auto json = nlohmann::json::parse(*text);
  EXPECT_EQ(json["job"]["waiting"]["code"], "turn");
  EXPECT_EQ(json["gpu"]["policy"], "flow");
  EXPECT_EQ(json["help"], WhatHelps("turn"));
}

TEST(Explain, EveryReasonHasSomethingThatHelps) {
  using scheduler::RefusalReason;
  using scheduler::WaitReason;
  for (auto reason = static_cast<uint8_t>(WaitReason::kAdmission);
       reason <= static_cast<uint8_t>(WaitReason::kFence); ++reason) {
    const std::string name(ReasonName(static_cast<WaitReason>(reason)));
    EXPECT_NE(WhatHelps(name), "") << name;
  }
  for (auto reason = static_cast<uint8_t>(RefusalReason::kOverLimit);
       reason <= static_cast<uint8_t>(RefusalReason::kInternal); ++reason) {
    const std::string name(ReasonName(static_cast<RefusalReason>(reason)));
    EXPECT_NE(WhatHelps(name), "") << name;
  }
}

}  // namespace
}  // namespace sluice::cli
