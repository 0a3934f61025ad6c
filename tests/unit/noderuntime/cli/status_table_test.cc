// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/status_table.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(RenderStatus, ShowsJobsInAlignedColumns) {
  const auto text = RenderStatus(R"({
    "gpu": 0, "gpu_name": "H200", "pool_bytes": 39845888, "free_bytes": 1048576, "policy": "flow",
    "jobs": [
      {"id": 1, "name": "train a", "phase": "running", "held_bytes": 10485760,
       "peak_held_bytes": 20971520, "request_bytes": 524288, "limit_bytes": 39845888,
       "waiting": null},
      {"id": 12, "name": "t", "phase": "parked", "held_bytes": 0, "peak_held_bytes": 0,
       "request_bytes": 0, "limit_bytes": 1048576,
       "waiting": {"kind": "iteration", "reason": "job 1 holds 10.0 MiB"}}]})");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(
      *text,
      "GPU 0 H200: pool 38.0 MiB, free 1.0 MiB, policy flow\n"
      "JOB  NAME     PHASE        HELD      PEAK    REQUEST     LIMIT  WAITS FOR\n"
      "1    train a  running  10.0 MiB  20.0 MiB  512.0 KiB  38.0 MiB\n"
      "12   t        parked        0 B       0 B        0 B   1.0 MiB  job 1 holds 10.0 MiB\n");
}

TEST(RenderStatus, SaysWhatAutoIsAbout) {
  const auto text =
      RenderStatus(R"({"policy": "temporal", "auto": {"state": "measuring"}, "jobs": []})");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "GPU ? ?: pool ?, free ?, policy temporal (auto: measuring)\nno jobs\n");
}

TEST(RenderStatus, SaysWhatIsLentOfThePool) {
  const auto less = RenderStatus(R"({"pool_bytes": 4194304, "budget_bytes": 2097152,
    "wanted_budget_bytes": 1048576, "budget_refusal": null, "jobs": []})");
  ASSERT_TRUE(less.ok());
  EXPECT_EQ(*less,
            "GPU ? ?: pool 4.0 MiB (2.0 MiB of it lent), falling to 1.0 MiB, free ?, policy ?\n"
            "no jobs\n");
  const auto all = RenderStatus(R"({"pool_bytes": 4194304, "budget_bytes": 4194304,
    "wanted_budget_bytes": 4194304, "budget_refusal": "job 1 needs more", "jobs": []})");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(*all,
            "GPU ? ?: pool 4.0 MiB, free ?, policy ?\n"
            "the budget was given up: job 1 needs more\nno jobs\n");
}

TEST(RenderStatus, SaysThatThereIsNoKeeperWhereOneIsMissing) {
  const auto text =
      RenderStatus(R"({"keeper": {"pid": null, "losses": 1, "missing_ms": 12900}, "jobs": []})");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text,
            "GPU ? ?: pool ?, free ?, policy ?\n"
            "no keeper for 12 s: if the daemon is killed now, its jobs keep what they hold and get "
            "no more; its log says why\nno jobs\n");
  for (const char* fine : {R"({"keeper": {"pid": 7, "losses": 1, "missing_ms": 0}, "jobs": []})",
                           R"({"keeper": null, "jobs": []})"}) {
    EXPECT_EQ(*RenderStatus(fine), "GPU ? ?: pool ?, free ?, policy ?\nno jobs\n");
  }
}

TEST(RenderStatus, SaysWhoElseIsThereAndThatNobodyNewMayBe) {
  const auto text =
      RenderStatus(R"({"draining": true, "bypassed": {"pods": 1, "others": 2}, "jobs": []})");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text,
            "GPU ? ?: pool ?, free ?, policy ?\n"
            "no new jobs are taken (sluice drain off ends that)\n"
            "processes found on the GPU without the library: 1 of pods, 2 others; the daemon's log "
            "names them\nno jobs\n");
  const auto none =
      RenderStatus(R"({"draining": false, "bypassed": {"pods": 0, "others": 0}, "jobs": []})");
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, "GPU ? ?: pool ?, free ?, policy ?\nno jobs\n");
}

TEST(RenderStatus, SaysWhenThereAreNoJobs) {
  const auto text = RenderStatus(R"({"jobs": []})");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "GPU ? ?: pool ?, free ?, policy ?\nno jobs\n");
}

TEST(RenderStatus, NamesAJobOnTheGpuWithoutASession) {
  const auto text = RenderStatus(R"({"jobs": [{"id": 1, "unseen": true}, {"id": 2}]})");
  ASSERT_TRUE(text.ok());
  const size_t said = text->find("on the GPU without a session");
  ASSERT_NE(said, std::string::npos) << *text;
  EXPECT_EQ(text->find("on the GPU", said + 1), std::string::npos) << *text;
}

TEST(RenderStatus, TellsOfFunctionsThatPassUnseen) {
  const auto text = RenderStatus(R"({"jobs": [
    {"id": 1, "unseen_functions": 0, "unseen_lookups": 0},
    {"id": 2, "unseen_functions": 3, "unseen_lookups": 40}, {"id": 3}]})");
  ASSERT_TRUE(text.ok());
  const size_t said = text->find(
      "\njob 2 was given 3 driver functions that this library does not know (looked up 40 times)");
  ASSERT_NE(said, std::string::npos) << *text;
  EXPECT_EQ(text->find("was given", said + 20), std::string::npos) << *text;
}

TEST(RenderStatus, WhatIsNoStatusIsAnError) {
  for (const char* bad : {"", "[]", "{}", "{\"jobs\": 1}", "{\"jobs\":"}) {
    EXPECT_FALSE(RenderStatus(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace sluice::cli
