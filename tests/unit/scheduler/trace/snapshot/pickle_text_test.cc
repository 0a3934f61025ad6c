// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/pickle_text.h"

#include <gtest/gtest.h>

namespace sluice::scheduler::trace {
namespace {

TEST(ReadDecimalInteger, OfAnyLength) {
  EXPECT_EQ(ReadDecimalInteger("0")->value, 0);
  EXPECT_EQ(ReadDecimalInteger("-12")->value, -12);
  EXPECT_EQ(ReadDecimalInteger("9223372036854775807")->value, INT64_MAX);
  EXPECT_TRUE(ReadDecimalInteger("-9223372036854775808")->fits);
  EXPECT_FALSE(ReadDecimalInteger("9223372036854775808")->fits);
  EXPECT_FALSE(ReadDecimalInteger(std::string(5000, '9'))->fits);
  for (const std::string_view text : {"", "-", "--1", "+1", " 1", "1 ", "1x", "0x1", "1.0"}) {
    EXPECT_FALSE(ReadDecimalInteger(text).has_value()) << text;
  }
}

TEST(ReadDecimalFloat, AsReprWritesIt) {
  EXPECT_EQ(ReadDecimalFloat("-1.5"), -1.5);
  EXPECT_EQ(ReadDecimalFloat("1e+300"), 1e300);
  EXPECT_EQ(ReadDecimalFloat("inf"), std::numeric_limits<double>::infinity());
  for (const std::string_view text : {"", "x", "1.5 ", "1,5", "1e999"}) {
    EXPECT_FALSE(ReadDecimalFloat(text).has_value()) << text;
  }
}

TEST(DecodeRawUnicode, GivesUtf8) {
  EXPECT_EQ(DecodeRawUnicode("plain"), "plain");
  EXPECT_EQ(DecodeRawUnicode("\xe9"), "\xc3\xa9") << "Latin-1";
  EXPECT_EQ(DecodeRawUnicode("a\\u000ab"), "a\nb");
  EXPECT_EQ(DecodeRawUnicode("\\u20ac"), "\xe2\x82\xac");
  EXPECT_EQ(DecodeRawUnicode("\\U0001f600"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(DecodeRawUnicode("\\u007f\\u0080"), "\x7f\xc2\x80");
  EXPECT_EQ(DecodeRawUnicode("\\u07ff\\u0800"), "\xdf\xbf\xe0\xa0\x80");
  EXPECT_EQ(DecodeRawUnicode("\\uffff\\U00010000"), "\xef\xbf\xbf\xf0\x90\x80\x80");
  EXPECT_EQ(DecodeRawUnicode("\\U0010ffff"), "\xf4\x8f\xbf\xbf");
  EXPECT_EQ(DecodeRawUnicode("\\n \\"), "\\n \\") << "raw: no other escapes";
  for (const std::string_view text : {"\\u", "\\u12", "\\u12g4", "\\U0001f60", "\\U00110000"}) {
    EXPECT_FALSE(DecodeRawUnicode(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace sluice::scheduler::trace
