// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/live_view.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

std::string Answer(uint64_t now_ms, const std::string& frames) {
  return R"({"seq": 7, "now_ms": )" + std::to_string(now_ms) +
         R"(, "pool": 4096, "budget": 4096, "unit": 1024, "free": 1024, "policy": "flow", "lanes": 2,
            "jobs": [{"id": 3, "name": "a", "phase": "running", "held": 2048, "waits_ms": 5,
                      "waits_for": "a sentence", "code": "turn", "gate": 1, "gates": 4}],
            "frames": )" +
         frames + "}";
}

TEST(LiveView, TakesAnAnswer) {
  LiveView view;
  ASSERT_TRUE(view.Take(Answer(5'000, "[[4980, [3, 2]], [5000, [3, 1]]]")).ok());
  EXPECT_EQ(view.cursor(), 7u);
  ASSERT_EQ(view.jobs().size(), 1u);
  EXPECT_EQ(view.jobs()[0].code, "turn");
  EXPECT_EQ(view.jobs()[0].gates, 4u);
  ASSERT_EQ(view.steps().size(), 2u);
  EXPECT_EQ(view.steps()[0].bytes.at(3), 2048u);
}

TEST(LiveView, AStepThatWasNotOverIsReplaced) {
  LiveView view;
  ASSERT_TRUE(view.Take(Answer(5'000, "[[4980, [3, 2]], [5000, [3, 1]]]")).ok());
  ASSERT_TRUE(view.Take(Answer(5'100, "[[5000, [3, 4]], [5020, []]]")).ok());
  ASSERT_EQ(view.steps().size(), 3u);
  EXPECT_EQ(view.steps()[1].bytes.at(3), 4096u);
}

TEST(LiveView, KeepsAMinuteAndWhatWasHeldBefore) {
  LiveView view;
  ASSERT_TRUE(view.Take(Answer(1'000, "[[1000, [3, 1]]]")).ok());
  for (uint64_t at = 2'000; at <= 200'000; at += 1'000) {
    ASSERT_TRUE(view.Take(Answer(at, "[[" + std::to_string(at) + ", [3, 1]]]")).ok());
  }
  EXPECT_LE(view.steps().size(), LiveView::kKeptMs / 1'000 + 2);
  ASSERT_TRUE(view.Take(Answer(900'000, "[]")).ok());
  EXPECT_EQ(view.steps().size(), 1u);
}

TEST(LiveView, WhatIsNoAnswerChangesNothing) {
  LiveView view;
  ASSERT_TRUE(view.Take(Answer(5'000, "[[4980, [3, 2]]]")).ok());
  for (const char* bad :
       {"", "[]", "{}", R"({"jobs": 3})", R"({"jobs": [], "frames": [[1]]})",
        R"({"jobs": [], "frames": [[1, [2]]]})", R"({"jobs": [], "frames": [[1, ["a", "b"]]]})"}) {
    EXPECT_FALSE(view.Take(bad).ok()) << bad;
  }
  EXPECT_EQ(view.jobs().size(), 1u);
  EXPECT_EQ(view.steps().size(), 1u);
}

}  // namespace
}  // namespace sluice::cli
