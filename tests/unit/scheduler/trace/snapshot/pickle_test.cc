// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/pickle.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/unit/scheduler/trace/snapshot/plain_pickle.h"

namespace sluice::scheduler::trace {
namespace {

using namespace std::string_literals;

std::string FaultOf(const std::string& bytes, const PickleLimits& limits = {}) {
  return ReadPickle(bytes, limits).status().message();
}

std::string Repeat(size_t count, const std::string& text) {
  std::string result;
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

/// The only integer of a pickle.
std::optional<int64_t> IntegerOf(const std::string& bytes) {
  const Result<Pickle> read = ReadPickle(bytes);
  return read.ok() ? (*read).values.Integer((*read).root) : std::nullopt;
}

TEST(ReadPickle, ReadsIntegersOfEveryOpcode) {
  EXPECT_EQ(IntegerOf("K\xff."), 255);
  EXPECT_EQ(IntegerOf("M\x01\x02."), 513);
  EXPECT_EQ(IntegerOf("J\xff\xff\xff\xff."), -1);
  EXPECT_EQ(IntegerOf("I-12\n."), -12);
  EXPECT_EQ(IntegerOf("L12L\n."), 12);
  EXPECT_EQ(IntegerOf("\x8a\x00."s), 0);
  EXPECT_EQ(IntegerOf("\x8a\x01\x80."), -128);
  EXPECT_EQ(IntegerOf("\x8a\x03\xff\xff\x00."s), 65535);
  EXPECT_EQ(IntegerOf("\x8b\x02\x00\x00\x00\x00\x01."s), 256);
  EXPECT_EQ(IntegerOf(plain::Dump(plain::Int(INT64_MIN))), INT64_MIN);
  EXPECT_EQ(IntegerOf("\x8a\x09" + std::string(9, '\x01') + "."), std::nullopt);
  EXPECT_EQ(IntegerOf("I01\n."), std::nullopt) << "True";
}

TEST(ReadPickle, ReadsContainers) {
  // {"k": [None, True, ("b", 1.5)]}, with every way to fill one.
  const std::string bytes = "\x80\x04}" + plain::Str("k") + "](N\x88" + "e" + "C\x01" + "b" +
                            "G\x3f\xf8" + std::string(6, '\0') + "\x86" + "as" + ".";
  const Result<Pickle> read = ReadPickle(bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Values& values = (*read).values;
  const std::optional<ValueId> list = values.Get((*read).root, "k");
  ASSERT_TRUE(list.has_value());
  ASSERT_EQ(values.Items(*list).size(), 3u);
  EXPECT_EQ(values.kind(values.Items(*list)[0]), ValueKind::kNone);
  EXPECT_EQ(values.Bool(values.Items(*list)[1]), true);
  const ValueId tuple = values.Items(*list)[2];
  ASSERT_EQ(values.kind(tuple), ValueKind::kTuple);
  EXPECT_EQ(values.Text(values.Items(tuple)[0]), "b");
  EXPECT_EQ(values.Float(values.Items(tuple)[1]), 1.5);
}

TEST(ReadPickle, RemembersByTheMemo) {
  // ["a", "a", "a"] by each kind of put and get.
  const Result<Pickle> read = ReadPickle("](Va\np7\nh\x07g7\ne.");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ((*read).values.Items((*read).root).size(), 3u);
  EXPECT_EQ(IntegerOf("(K\x07q\x01"
                      "h\x01l0."),
            std::nullopt);
  EXPECT_TRUE(ReadPickle("(K\x07r\x01\0\0\0j\x01\0\0\0l."s).ok());
  EXPECT_TRUE(ReadPickle("(K\x07\x94K\x08\x94h\x00h\x01l."s).ok()) << "MEMOIZE counts";
}

TEST(ReadPickle, AListInItselfIsReadOnce) {
  const Result<Pickle> read = ReadPickle(
      "]q\x01h\x01"
      "a.");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ((*read).values.Items((*read).root)[0], (*read).root);
}

TEST(ReadPickle, RefusesWhatRunsCode) {
  EXPECT_EQ(FaultOf("cos\nsystem\n(S'true'\ntR."),
            "byte 0: GLOBAL: refused, it would look up or run code");
  EXPECT_EQ(FaultOf("\x80\x04\x8c\x02os\x8c\x06system\x93."),
            "byte 14: STACK_GLOBAL: refused, it would look up or run code");
  EXPECT_EQ(FaultOf("(ios\nsystem\n."), "byte 1: INST: refused, it would look up or run code");
  const std::pair<std::string, std::string> opcodes[] = {
      {"R", "REDUCE"},       {"b", "BUILD"},          {"o", "OBJ"},
      {"P1\n", "PERSID"},    {"Q", "BINPERSID"},      {"\x81", "NEWOBJ"},
      {"\x92", "NEWOBJ_EX"}, {"\x82\x01", "EXT1"},    {"\x83\x01\x01", "EXT2"},
      {"\x84....", "EXT4"},  {"\x97", "NEXT_BUFFER"}, {"\x98", "READONLY_BUFFER"}};
  for (const auto& [bytes, name] : opcodes) {
    EXPECT_EQ(FaultOf("]" + bytes + "."),
              "byte 1: " + name + ": refused, it would look up or run code");
  }
  for (const std::string bytes :
       {"0", "1", "2", "S'a'\n", "T", "U", "\x8f", "\x90", "\x91", "\x96"}) {
    EXPECT_NE(FaultOf("]" + bytes + ".").find("refused, a dump of plain data has none"),
              std::string::npos);
  }
}

TEST(ReadPickle, SaysWhatIsWrongAndWhere) {
  const std::string cut = "the dump ends within it";
  const std::pair<std::string, std::string> cases[] = {
      {"", "byte 0: the dump ends without STOP"},
      {"N", "byte 1: the dump ends without STOP"},
      {"\xff", "byte 0: opcode: is not one of pickle's"},
      {"\x80", "byte 0: PROTO: " + cut},
      {"\x80\x06N.", "byte 0: PROTO: an unknown protocol, must be at most 5"},
      {"N\x80\x02.", "byte 1: PROTO: must be the first opcode"},
      {"\x95\x09\0\0\0\0\0\0\0N."s, "byte 0: FRAME: a frame longer than the dump"},
      {"\x95\x01", "byte 0: FRAME: " + cut},
      {".", "byte 0: STOP: must leave one value"},
      {"NN.", "byte 2: STOP: must leave one value"},
      {"(N.", "byte 2: STOP: must leave one value"},
      {"N.N", "byte 1: STOP: must be the last byte"},
      {"K", "byte 0: BININT1: " + cut},
      {"M\x01", "byte 0: BININT2: " + cut},
      {"J\x01\x02\x03", "byte 0: BININT: " + cut},
      {"G1234567", "byte 0: BINFLOAT: " + cut},
      {"\x8a\x02\x01", "byte 0: LONG1: " + cut},
      {"\x8b\xff\xff\xff\xff.", "byte 0: LONG4: " + cut},
      {"I12", "byte 0: INT: " + cut},
      {"I\n.", "byte 0: INT: is not a decimal integer"},
      {"L1LL\n.", "byte 0: LONG: is not a decimal integer"},
      {"F1.5", "byte 0: FLOAT: " + cut},
      {"Fx\n.", "byte 0: FLOAT: is not a decimal number"},
      {"Va", "byte 0: UNICODE: " + cut},
      {"V\\u12\n.", "byte 0: UNICODE: has an escape that is no character"},
      {"X\xff\xff\xff\xff.", "byte 0: BINUNICODE: " + cut},
      {"\x8c\x05"s + "abc.", "byte 0: SHORT_BINUNICODE: " + cut},
      {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "byte 0: BINUNICODE8: " + cut},
      {"B\x02\0\0\0a"s, "byte 0: BINBYTES: " + cut},
      {"C\x02"
       "a",
       "byte 0: SHORT_BINBYTES: " + cut},
      {"C\x01"
       "a",
       "byte 3: the dump ends without STOP"},
      {"\x8e\x02", "byte 0: BINBYTES8: " + cut},
      {"\x85.", "byte 0: TUPLE1: needs more on the stack than there is"},
      {"N\x86.", "byte 1: TUPLE2: needs more on the stack than there is"},
      {"N(N\x86.", "byte 3: TUPLE2: needs more on the stack than there is"},
      {"t.", "byte 0: TUPLE: has no MARK before it"},
      {"l.", "byte 0: LIST: has no MARK before it"},
      {"e.", "byte 0: APPENDS: has no MARK before it"},
      {"(Nd.", "byte 2: DICT: has a key without a value"},
      {"}(Nu.", "byte 3: SETITEMS: has a key without a value"},
      {"]a.", "byte 1: APPEND: needs more on the stack than there is"},
      {"(Ne.", "byte 2: APPENDS: needs more on the stack than there is"},
      {"}Na.", "byte 2: APPEND: adds to what is not a list"},
      {"]NNs.", "byte 3: SETITEM: adds to what is not a dict"},
      {"q\x01.", "byte 0: BINPUT: needs more on the stack than there is"},
      {"N(q\x01.", "byte 2: BINPUT: needs more on the stack than there is"},
      {"\x94.", "byte 0: MEMOIZE: needs more on the stack than there is"},
      {"h\x01.", "byte 0: BINGET: a place of the memo without value"},
      {"Nq\x01h\x00."s, "byte 3: BINGET: a place of the memo without value"},
      {"Nr\xff\xff\xff\xff.",
       "byte 1: LONG_BINPUT: a place of the memo beyond the size of the dump"},
      {"Np-1\n.", "byte 1: PUT: is not a place of the memo"},
      {"g99999999999999999999\n.", "byte 0: GET: is not a place of the memo"},
      {"j\x01\x00."s, "byte 0: LONG_BINGET: " + cut},
  };
  for (const auto& [bytes, fault] : cases) EXPECT_EQ(FaultOf(bytes), fault);
  EXPECT_EQ(ReadPickle("").status().code(), StatusCode::kInvalidArgument);
}

TEST(ReadPickle, TakesWhatJustFits) {
  EXPECT_EQ(FaultOf("\x80\x05N."), "") << "the highest protocol";
  EXPECT_EQ(FaultOf("\x95\x02\0\0\0\0\0\0\0N."s), "") << "a frame to the end";
  EXPECT_EQ(FaultOf("Np0\n."), "") << "the lowest";
  EXPECT_EQ(FaultOf("Nr\x07\0\0\0."s), "") << "the highest place of the memo";
  EXPECT_EQ(FaultOf("Nr\x08\0\0\0."s),
            "byte 1: LONG_BINPUT: a place of the memo beyond the size of the dump");
}

TEST(ReadPickle, HasLimits) {
  EXPECT_EQ(FaultOf(Repeat(65, "(") + "N" + Repeat(65, "t") + "."),
            "byte 64: MARK: too many open marks");
  EXPECT_EQ(FaultOf(")" + Repeat(64, "\x85") + "."),
            "byte 64: TUPLE1: containers lie too deep in each other");
  EXPECT_EQ(FaultOf(")" + Repeat(63, "\x85") + "."), "");
  EXPECT_EQ(FaultOf(Repeat(65, "]") + Repeat(64, "a") + "."),
            "byte 128: APPEND: containers lie too deep in each other");
  PickleLimits limits;
  limits.values = 10;
  limits.stack = 5;
  EXPECT_EQ(FaultOf("(NNNNNl.", limits), "byte 5: NONE: too much on the stack");
  EXPECT_EQ(FaultOf("(NNNNl.", limits), "");
  EXPECT_EQ(FaultOf("]" + Repeat(10, "Na") + ".", limits), "byte 19: NONE: too many values");
  EXPECT_EQ(FaultOf("]" + Repeat(9, "Na") + ".", limits), "");
}

TEST(ReadPickle, WhateverTheBytesItGivesAValueOrAByte) {
  const std::string seeds[] = {
      plain::Snapshot({plain::Entry("alloc", 1, 2, 3), plain::Entry("free_requested", 1, 2, 4)}),
      "](Va\np7\nh\x07g7\nI01\nL5L\nF1.5\nd(lt)}e."};
  std::mt19937 random(7);
  size_t valid = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = seeds[random() % 2];
    for (size_t i = 1 + random() % 4; i > 0; --i) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.insert(at, 1, "(]})NKaestuldqh.\x85\x86\x94"[random() % 19]);
          break;
        default:
          bytes.erase(at, 1 + random() % 4);
      }
      if (bytes.empty()) bytes = ".";
    }
    const Result<Pickle> read = ReadPickle(bytes);
    if (read.ok()) {
      ++valid;
      continue;
    }
    const std::string fault = read.status().message();
    ASSERT_EQ(fault.rfind("byte ", 0), 0u) << fault;
    ASSERT_LE(std::stoul(fault.substr(5)), bytes.size()) << fault;
  }
  EXPECT_GT(valid, 500u);
}

}  // namespace
}  // namespace sluice::scheduler::trace
