// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/printable.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string Utf8(uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  std::string text;
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kFirst[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
  return text;
}

TEST(Printable, LeavesWhatPeopleRead) {
  for (const char* text : {"", "train --model a", "grün 猫 😀 שלום", "a\\b \"c\" 'd'", "\u200D"}) {
    EXPECT_EQ(Printable(text), text);
    EXPECT_EQ(PrintableLines(text), text);
  }
}

TEST(Printable, WritesOutWhatATerminalObeys) {
  EXPECT_EQ(Printable("a\x1b[2Jb"), "a\\u001b[2Jb");
  EXPECT_EQ(Printable("a\u009b2Jb"), "a\\u009b2Jb") << "the same in one character";
  EXPECT_EQ(Printable("a\x9b"
                      "2Jb"),
            "a\\x9b2Jb")
      << "and in one byte, which is no UTF-8";
  EXPECT_EQ(Printable("a\nb\r\t\x7f"), "a\\u000ab\\u000d\\u0009\\u007f");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\u0000b");
  EXPECT_EQ(PrintableLines("a\nb\r\n"), "a\nb\\u000d\n");
  for (uint32_t code = 0; code < 0xa0; ++code) {
    const bool control = code < 0x20 || code >= 0x7f;
    EXPECT_EQ(Printable(Utf8(code)) != Utf8(code), control) << code;
  }
}

TEST(Printable, WritesOutWhatTurnsTheDirection) {
  EXPECT_EQ(Printable("ab\u202Ecd\u202C"), "ab\\u202ecd\\u202c");
  for (const uint32_t code : {0x061Cu, 0x200Eu, 0x200Fu, 0x202Au, 0x202Bu, 0x202Cu, 0x202Du,
                              0x202Eu, 0x2066u, 0x2067u, 0x2068u, 0x2069u}) {
    EXPECT_EQ(Printable(Utf8(code)).substr(0, 2), "\\u") << code;
  }
  EXPECT_EQ(Printable("a\u2028b\u2029"), "a\\u2028b\\u2029") << "other ends of a line";
  EXPECT_EQ(Printable(Utf8(0xE0041)), "\\U000e0041") << "a letter that is seen nowhere";
}

TEST(Printable, WritesOutBytesThatAreNoText) {
  EXPECT_EQ(Printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(Printable("\xC0\x80"), "\\xc0\\x80");
  EXPECT_EQ(Printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(Printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(Printable("猫\xE7\x8C"), "猫\\xe7\\x8c") << "cut in the middle of a character";
}

TEST(Printable, ChangesNothingTheSecondTime) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  all += "\u202E\u009b 猫";
  EXPECT_EQ(Printable(Printable(all)), Printable(all));
}

TEST(CutText, CutsNoCharacterInTwo) {
  EXPECT_EQ(CutText("abc", 3), "abc");
  EXPECT_EQ(CutText("abcd", 3), "abc");
  EXPECT_EQ(CutText("a猫猫", 7), "a猫猫");
  for (size_t most = 4; most < 7; ++most) EXPECT_EQ(CutText("a猫猫", most), "a猫") << most;
  EXPECT_EQ(CutText("猫", 2), "");
  EXPECT_EQ(CutText("\x80\x80\x80\x80\x80\x80\x80\x80", 6).size(), 6u) << "it has none";
}

}  // namespace
}  // namespace sluice
