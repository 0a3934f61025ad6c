// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/answer.h"

#include <gtest/gtest.h>

namespace sluice::cli::answer {
namespace {

using nlohmann::json;

TEST(Answer, WhatIsThere) {
  const json answer = json::parse(R"({"bytes": 7, "name": "a", "part": {"bytes": 8}})");
  EXPECT_EQ(Number(answer, "bytes"), 7u);
  EXPECT_EQ(MaybeNumber(answer, "bytes"), 7u);
  EXPECT_EQ(Text(answer, "name"), "a");
  EXPECT_EQ(Number(Member(answer, "part"), "bytes"), 8u);
  EXPECT_EQ(Number(nlohmann::ordered_json::parse(R"({"bytes": 9})"), "bytes"), 9u);
}

TEST(Answer, WhatIsNotThereOrOfAnotherKind) {
  const json answer = json::parse(R"({"text": "7", "less": -1, "half": 0.5, "none": null})");
  for (const char* key : {"text", "less", "half", "none", "absent"}) {
    EXPECT_EQ(Number(answer, key), 0u) << key;
    EXPECT_EQ(MaybeNumber(answer, key), std::nullopt) << key;
  }
  EXPECT_EQ(Text(answer, "less"), "");
  EXPECT_TRUE(Member(answer, "absent").is_null());
}

TEST(Answer, OfNoObject) {
  for (const char* text : {"[1]", "7", "null", "\"bytes\""}) {
    const json answer = json::parse(text);
    EXPECT_EQ(Number(answer, "bytes"), 0u) << text;
    EXPECT_EQ(Text(answer, "bytes"), "") << text;
    EXPECT_TRUE(Member(answer, "bytes").is_null()) << text;
  }
}

}  // namespace
}  // namespace sluice::cli::answer
