// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/log/log.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace sluice::logging {
namespace {

class LogTest : public testing::Test {
 protected:
  /// SetUp is GoogleTest's, and takes standard error before the log does.
  void SetUp() override {
    testing::internal::CaptureStderr();
    logging::SetUp();
  }
  static std::string Written() { return testing::internal::GetCapturedStderr(); }
};

TEST_F(LogTest, ALineHasItsTimeAndLevel) {
  Info("job {}: {} held", 3, "2.0 MiB");
  Warn("none");
  Error("{}", "why");
  const std::regex lines(
      R"(\d\d:\d\d:\d\d\.\d{3} info job 3: 2\.0 MiB held\n\d\d:\d\d:\d\d\.\d{3} warning none\n)"
      R"(\d\d:\d\d:\d\d\.\d{3} error why\n)");
  const std::string text = Written();
  EXPECT_TRUE(std::regex_match(text, lines)) << text;
}

/// What clients make the daemon write is no format.
TEST_F(LogTest, TextIsWrittenAsItIs) {
  Write(Level::kInfo, "a {} and %s");
  const std::string text = Written();
  EXPECT_NE(text.find(" info a {} and %s\n"), std::string::npos) << text;
}

TEST_F(LogTest, TextIsOneLineThatTurnsNoTerminal) {
  Write(Level::kInfo, "'a\x1b[2J\u009b\u202e\xff'\n00:00:00.000 info forged 猫");
  const std::string text = Written();
  EXPECT_NE(text.find(" info 'a\\u001b[2J\\u009b\\u202e\\xff'\\u000a00:00:00.000 info forged 猫\n"),
            std::string::npos)
      << text;
}

TEST_F(LogTest, DetailsAreLeftOut) {
  EXPECT_FALSE(Writes(Level::kDebug));
  EXPECT_TRUE(Writes(Level::kInfo));
  Debug("{}", 1);
  EXPECT_EQ(Written(), "");
}

TEST_F(LogTest, CanBeSilenced) {
  Silence();
  Error("{}", 1);
  EXPECT_FALSE(Writes(Level::kError));
  EXPECT_EQ(Written(), "");
}

}  // namespace
}  // namespace sluice::logging
