// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/answer.h"

#include <gtest/gtest.h>

namespace sluice::page {
namespace {

TEST(ParseNumber, TakesDigitsOnly) {
  EXPECT_EQ(ParseNumber("0"), 0u);
  EXPECT_EQ(ParseNumber("999999999"), 999999999u);
  for (const char* bad : {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "1234567890"}) {
    EXPECT_FALSE(ParseNumber(bad).has_value()) << bad;
  }
}

TEST(ServerSentEvent, IsOneEventAndEndsWithAnEmptyLine) {
  EXPECT_EQ(ServerSentEvent({"live", R"({"a":1})"}), "event: live\ndata: {\"a\":1}\n\n");
}

TEST(ReadPolicyOrder, TakesWhatSluicePolicyTakes) {
  const auto order = ReadPolicyOrder(R"({"gpu": 2, "policy": "temporal", "lanes": 1})");
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(order->gpu, 2u);
  EXPECT_EQ(order->policy, "temporal");
  EXPECT_EQ(order->lanes, 1u);
  EXPECT_EQ(ReadPolicyOrder(R"({"policy": "flow"})")->lanes, 0u);
}

TEST(ReadPolicyOrder, NamesTheFieldAndWhatIsAllowed) {
  const auto error = [](const char* json) { return ReadPolicyOrder(json).status().message(); };
  EXPECT_EQ(error("x"), "the request is no JSON object");
  EXPECT_EQ(error(R"({"policy": "best"})").find("policy: allowed: "), 0u);
  EXPECT_NE(error(R"({"policy": 1})").find("flow"), std::string::npos);
  EXPECT_EQ(error(R"({"policy": "flow", "lanes": 65})"),
            "lanes: allowed: 1 to 64, or 0 for as many as now");
  EXPECT_EQ(error(R"({"policy": "flow", "lanes": -1})").find("lanes: "), 0u);
  EXPECT_EQ(error(R"({"policy": "flow", "gpu": "0"})"), "gpu: allowed: a number");
}

TEST(ErrorJson, IsJsonWhateverTheTextHolds) {
  EXPECT_EQ(ErrorJson("a \"b\"\n"), R"({"error":"a \"b\"\n"})");
  EXPECT_NE(ErrorJson("\xff"), "");
}

}  // namespace
}  // namespace sluice::page
