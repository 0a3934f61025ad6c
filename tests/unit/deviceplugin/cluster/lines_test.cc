// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::deviceplugin {
namespace {

class LinesTest : public ::testing::Test {
 protected:
  std::vector<std::string> heard_;
  size_t most_ = 1000;
  Lines lines_{[this](std::string_view line) {
    heard_.emplace_back(line);
    return heard_.size() < most_;
  }};
};
using Heard = std::vector<std::string>;

TEST_F(LinesTest, ComeWhenTheyEnd) {
  EXPECT_TRUE(lines_.Take("a"));
  EXPECT_EQ(heard_, Heard());
  EXPECT_TRUE(lines_.Take("b\n\nc\nd"));
  EXPECT_EQ(heard_, (Heard{"ab", "", "c"}));
  EXPECT_TRUE(lines_.Take("\n"));
  EXPECT_EQ(heard_, (Heard{"ab", "", "c", "d"}));
}

TEST_F(LinesTest, AreTheSameInAnyPieces) {
  const std::string text = "one\n\ntwo\nthree\n";
  for (size_t at = 0; at <= text.size(); ++at) {
    heard_.clear();
    EXPECT_TRUE(lines_.Take(text.substr(0, at)));
    EXPECT_TRUE(lines_.Take(text.substr(at)));
    EXPECT_EQ(heard_, (Heard{"one", "", "two", "three"})) << at;
  }
}

TEST_F(LinesTest, WhoWantsNoMoreGetsNoMore) {
  most_ = 2;
  EXPECT_FALSE(lines_.Take("a\nb\nc\n"));
  EXPECT_FALSE(lines_.Take("d\n"));
  EXPECT_EQ(heard_, (Heard{"a", "b"}));
  EXPECT_FALSE(lines_.too_long());
}

TEST_F(LinesTest, OneHasAnEnd) {
  const std::string most(Lines::kMost, 'x');
  EXPECT_TRUE(lines_.Take(most));
  EXPECT_TRUE(lines_.Take("\n"));
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_EQ(heard_[0].size(), Lines::kMost);
  EXPECT_TRUE(lines_.Take("a\n" + most));
  EXPECT_FALSE(lines_.Take("x")) << "nobody waits for its end";
  EXPECT_TRUE(lines_.too_long());
  EXPECT_FALSE(lines_.Take("\nb\n"));
  EXPECT_EQ(heard_.size(), 2u);
}

TEST_F(LinesTest, OneThatIsTooLongIsSoAlsoWithItsEnd) {
  EXPECT_FALSE(lines_.Take("a\n" + std::string(Lines::kMost + 1, 'x') + "\nb\n"));
  EXPECT_TRUE(lines_.too_long());
  EXPECT_EQ(heard_, Heard{"a"});
}

}  // namespace
}  // namespace sluice::deviceplugin
