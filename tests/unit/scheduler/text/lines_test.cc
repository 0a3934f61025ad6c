// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/text/lines.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice::scheduler::text {
namespace {

std::string FaultOf(std::string_view text, LineEnds ends = LineEnds::kLineFeed) {
  LineReader lines(text, ends);
  while (!lines.done()) {
    const auto line = lines.Next();
    if (!line.ok()) return std::to_string(lines.number()) + " " + line.status().message();
  }
  return "none";
}

TEST(LineReader, HandsOutLinesAndTheirNumbers) {
  LineReader lines("one\n\nthree\n");
  EXPECT_EQ(lines.number(), 1u);
  EXPECT_EQ(*lines.Next(), "one");
  EXPECT_EQ(lines.number(), 1u);
  EXPECT_EQ(*lines.Next(), "");
  EXPECT_EQ(*lines.Next(), "three");
  EXPECT_EQ(lines.number(), 3u);
  EXPECT_TRUE(lines.done());
  EXPECT_TRUE(LineReader("").done());
}

TEST(LineReader, RefusesWhatIsNoLine) {
  EXPECT_EQ(FaultOf("a\nb\n"), "none");
  EXPECT_EQ(FaultOf("a\nb"), "2 does not end in a line feed");
  EXPECT_EQ(FaultOf("a\r\nb\n"), "1 carriage return in column 2, lines end in a line feed alone");
  EXPECT_EQ(FaultOf("a\nb\tc\n"), "2 byte 0x09 in column 2, must be a printable ASCII character");
  EXPECT_EQ(FaultOf("\xc3\xa9\n"), "1 byte 0xc3 in column 1, must be a printable ASCII character");
  EXPECT_EQ(FaultOf(std::string("ab\0\n", 4)),
            "1 byte 0x00 in column 3, must be a printable ASCII character");
  EXPECT_EQ(FaultOf("\x7f\n"), "1 byte 0x7f in column 1, must be a printable ASCII character");
}

TEST(LineReader, TakesLineEndsOfOtherPrograms) {
  LineReader lines("one\r\n\r\nthree\nfour", LineEnds::kAny);
  for (const char* line : {"one", "", "three", "four"}) EXPECT_EQ(*lines.Next(), line);
  EXPECT_TRUE(lines.done());
  EXPECT_EQ(lines.number(), 4u);
  EXPECT_EQ(FaultOf("a\r", LineEnds::kAny), "none");
  EXPECT_EQ(FaultOf("a\rb\n", LineEnds::kAny),
            "1 carriage return in column 2, but only one may be before a line feed");
  EXPECT_EQ(FaultOf("a\r\r\n", LineEnds::kAny),
            "1 carriage return in column 2, but only one may be before a line feed");
}

TEST(LineReader, RefusesALineThatIsTooLong) {
  const std::string longest(kMaxLineBytes, 'x');
  EXPECT_EQ(FaultOf("a\n" + longest + "\n"), "none");
  EXPECT_EQ(FaultOf("a\n" + longest + "x\n"), "2 longer than 1048576 bytes");
  EXPECT_EQ(FaultOf(longest + "x"), "1 longer than 1048576 bytes");
}

TEST(SplitFields, AtEachBlank) {
  std::array<std::string_view, 3> fields;
  ASSERT_EQ(SplitFields("a bc", fields), 2u);
  EXPECT_EQ(fields[0], "a");
  EXPECT_EQ(fields[1], "bc");
  ASSERT_EQ(SplitFields("a  b", fields), 3u);
  EXPECT_EQ(fields[1], "");
  ASSERT_EQ(SplitFields("a ", fields), 2u);
  EXPECT_EQ(fields[1], "");
  EXPECT_EQ(SplitFields("", fields), 1u);
  EXPECT_EQ(SplitFields("a b c", fields), 3u);
  EXPECT_EQ(SplitFields("a b c d", fields), 4u);
  EXPECT_EQ(SplitFields("a b c d e f", fields), 4u) << "no further than one too many";
}

TEST(ReadNumber, DigitsUpToTheLargest) {
  EXPECT_EQ(*ReadNumber("n", "0"), 0u);
  EXPECT_EQ(*ReadNumber("n", "1234567890"), 1234567890u);
  EXPECT_EQ(*ReadNumber("n", "9007199254740992"), kMaxNumber);
  for (const std::string_view text :
       {"", "-1", "+1", " 1", "1 ", "0x1", "1.5", "1e3", "00", "01"}) {
    EXPECT_EQ(ReadNumber("n", text).status().message(),
              "n: \"" + std::string(text) +
                  "\" is not a number, must be decimal digits without sign and leading zeros");
  }
  EXPECT_EQ(ReadNumber("n", "9007199254740993").status().message(),
            "n: \"9007199254740993\" is too large, must be at most 9007199254740992");
  EXPECT_EQ(ReadNumber("n", "18446744073709551617").status().message(),
            "n: \"18446744073709551617\" is too large, must be at most 9007199254740992");
  EXPECT_EQ(
      ReadNumber("n", std::string(50, '9')).status().message(),
      "n: \"" + std::string(40, '9') + "...\" is too large, must be at most 9007199254740992");
}

TEST(Quoted, IsCutWhereItIsLong) {
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted(std::string(40, 'x')), '"' + std::string(40, 'x') + '"');
  EXPECT_EQ(Quoted(std::string(41, 'x')), '"' + std::string(40, 'x') + "...\"");
}

}  // namespace
}  // namespace sluice::scheduler::text
