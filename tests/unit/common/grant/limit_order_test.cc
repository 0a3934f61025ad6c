// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/limit_order.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(LimitOrder, ComesBackAsItWasWritten) {
  const LimitOrder order{8192, 4096};
  const Result<LimitOrder> read = ParseLimitOrder(LimitOrderText(order));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, order);
}

TEST(LimitOrder, StandsAboveWhatThePodAskedForUntilItAsksForSomethingElse) {
  EXPECT_EQ(LimitUnder(std::nullopt, 4096), 4096u);
  EXPECT_EQ(LimitUnder(LimitOrder{8192, 4096}, 4096), 8192u);
  EXPECT_EQ(LimitUnder(LimitOrder{8192, 4096}, 6144), 6144u);
}

TEST(LimitOrder, NamesWhatIsWrong) {
  const auto error = [](const char* text) { return ParseLimitOrder(text).status().message(); };
  EXPECT_NE(error("sluice-limit 2\n").find("allowed: 'sluice-limit 1'"), std::string::npos);
  EXPECT_EQ(error("sluice-limit 1\nlimit_bytes = 1\n"),
            "limit of a grant: limit_bytes and instead_of are needed");
  const std::string word = error("sluice-limit 1\nlimit_bytes = much\ninstead_of = 1\n");
  EXPECT_NE(word.find("line 2"), std::string::npos) << word;
  EXPECT_NE(word.find("'much'"), std::string::npos) << word;
  const std::string key = error("sluice-limit 1\nlimit = 1\n");
  EXPECT_NE(key.find("allowed keys: limit_bytes, instead_of"), std::string::npos) << key;
}

}  // namespace
}  // namespace sluice
