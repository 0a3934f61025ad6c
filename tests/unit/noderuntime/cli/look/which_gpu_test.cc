// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/which_gpu.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

const std::string kTrains = R"({"jobs": [{"id": 3, "name": "a/train/main"}], "ended": []})";
const std::string kTrained = R"({"jobs": [{"id": 9, "name": "b/other/main"}],
    "ended": [{"id": 3, "name": "a/train/main"}]})";
const Result<std::string> kGone = Status(StatusCode::kUnavailable, "no daemon runs in /run/1");

TEST(WhichGpu, OneThatRunsGoesBeforeOneThatEnded) {
  EXPECT_EQ(*WhichGpu({{"0", kTrained}, {"1", kTrains}}, "3"), 1u);
  EXPECT_EQ(*WhichGpu({{"0", kTrained}, {"1", kTrains}}, "a/train"), 1u);
  EXPECT_EQ(*WhichGpu({{"0", kTrained}}, "a/train"), 0u);
  EXPECT_EQ(*WhichGpu({{"0", kGone}, {"1", kTrains}}, "3"), 1u);
}

TEST(WhichGpu, SeveralAreRefused) {
  const Status run = WhichGpu({{"0", kTrains}, {"4", kTrains}}, "3").status();
  EXPECT_EQ(run.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(run.message(), "job '3': there is one on several GPUs; allowed: with --gpu 0 or 4");
  EXPECT_EQ(WhichGpu({{"0", kTrained}, {"1", kTrained}}, "3").status().code(),
            StatusCode::kInvalidArgument);
  const std::string kTwo = R"({"jobs": [{"id": 1, "name": "x"}, {"id": 2, "name": "x"}]})";
  EXPECT_NE(WhichGpu({{"0", kTwo}}, "x").status().message().find("1 (x), 2 (x)"),
            std::string::npos);
}

TEST(WhichGpu, WhoDidNotAnswerIsNotForgotten) {
  const Status unknown = WhichGpu({{"0", kTrains}, {"1", kGone}, {"2", kTrained}}, "x").status();
  EXPECT_EQ(unknown.code(), StatusCode::kUnavailable);
  EXPECT_EQ(unknown.message(),
            "job 'x': there is none where a daemon answers; GPU 1: no daemon runs in /run/1");
  EXPECT_EQ(WhichGpu({{"", kGone}}, "x").status().message(), kGone.status().message());
  EXPECT_EQ(WhichGpu({{"0", kTrains}, {"1", kTrained}}, "x").status().code(),
            StatusCode::kNotFound);
  EXPECT_NE(WhichGpu({{"", kTrains}}, "x").status().message().find("3 (a/train/main)"),
            std::string::npos)
      << "those that are there are named";
}

}  // namespace
}  // namespace sluice::cli
