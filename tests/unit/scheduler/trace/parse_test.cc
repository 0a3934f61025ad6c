// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/parse.h"

#include <gtest/gtest.h>

#include "scheduler/trace/write.h"

namespace sluice::scheduler::trace {
namespace {

// Every record of the format in few lines.
constexpr const char* kLines[] = {
    "# sluice-trace 1",                              // 1
    "# model=two words",                             // 2
    "# note=",                                       // 3
    "block 0 persistent 4000 0",                     // 4
    "block 1 input 0 600",                           // 5
    "block 2 transient 16 64",                       // 6
    "block 3 transient 0 8",                         // 7
    "alloc 2",                                       // 8
    "op 0 addmm.out forward 10 20 30 40 r=1,0 w=2",  // 9
    "alloc 3",                                       // 10
    "op 1 neg backward 0 0 5 6 r= w=3",              // 11
    "free 2",                                        // 12
    "op 2 add_ optimizer 0 0 5 6 r=0,3 w=0",         // 13
    "free 3",                                        // 14
};

/// The lines with number `line` replaced; an empty replacement leaves it out.
std::string With(size_t line, const std::string& replacement) {
  std::string text;
  for (size_t i = 1; i <= std::size(kLines); ++i) {
    const std::string& chosen = i == line ? replacement : kLines[i - 1];
    if (!chosen.empty()) text += chosen + "\n";
  }
  return text;
}

std::string FaultOf(const std::string& text) { return ParseTrace(text).status().message(); }

TEST(ParseTrace, ReadsEveryRecord) {
  const std::string text = With(0, "");
  const Result<Trace> parsed = ParseTrace(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const Trace& trace = *parsed;
  EXPECT_EQ(trace.header, (std::vector<HeaderEntry>{{"model", "two words"}, {"note", ""}}));
  EXPECT_EQ(trace.blocks, (std::vector<Block>{{BlockKind::kPersistent, {4000, 0}},
                                              {BlockKind::kInput, {0, 600}},
                                              {BlockKind::kTransient, {16, 64}},
                                              {BlockKind::kTransient, {0, 8}}}));
  EXPECT_EQ(trace.operators,
            (std::vector<Operator>{{"addmm.out", Phase::kForward, {10, 20}, {30, 40}, {1, 0}, {2}},
                                   {"neg", Phase::kBackward, {0, 0}, {5, 6}, {}, {3}},
                                   {"add_", Phase::kOptimizer, {0, 0}, {5, 6}, {0, 3}, {0}}}));
  EXPECT_EQ(trace.events, (std::vector<Event>{{EventKind::kAlloc, 2},
                                              {EventKind::kOperator, 0},
                                              {EventKind::kAlloc, 3},
                                              {EventKind::kOperator, 1},
                                              {EventKind::kFree, 2},
                                              {EventKind::kOperator, 2},
                                              {EventKind::kFree, 3}}));
  EXPECT_EQ(WriteTrace(trace), text);
}

TEST(ParseTrace, LittleIsATraceToo) {
  EXPECT_TRUE(ParseTrace("# sluice-trace 1\n").ok());
  EXPECT_TRUE(ParseTrace("# sluice-trace 1\nblock 0 persistent 1 0\n").ok());
  EXPECT_TRUE(ParseTrace("# sluice-trace 1\nblock 0 transient 1 0\nalloc 0\nfree 0\n").ok())
      << "allocations without operators";
  EXPECT_TRUE(ParseTrace("# sluice-trace 1\nop 0 nop forward 0 0 0 0 r= w=\n").ok());
}

TEST(ParseTrace, NamesTheFirstLine) {
  EXPECT_EQ(FaultOf(""), "line 1: version: the first line is \"\", must be \"# sluice-trace 1\"");
  EXPECT_EQ(FaultOf(With(1, "")),
            "line 1: version: the first line is \"# model=two words\", must be \"# sluice-trace "
            "1\"");
  EXPECT_EQ(FaultOf(With(1, "# sluice-trace 2")), "line 1: version: \"2\" is unknown, must be 1");
  EXPECT_EQ(FaultOf(With(1, "# sluice-trace 1 ")), "line 1: version: \"1 \" is unknown, must be 1");
}

struct Malformed {
  size_t line;
  std::string text;
  std::string fault;
};

TEST(ParseTrace, SaysWhatIsWrongAndWhere) {
  const std::string number =
      " is not a number, must be decimal digits without sign and leading "
      "zeros";
  const Malformed cases[] = {
      // Header.
      {2, "# model", "2: header: \"# model\" must be \"# key=value\""},
      {2, "#model=m", "2: header: \"#model=m\" must be \"# key=value\""},
      {2, "# =m", "2: header: the key must be of letters, digits, '_', '-' or '.'"},
      {2, "# mo del=m", "2: header: the key must be of letters, digits, '_', '-' or '.'"},
      {3, "# model=again", "3: header: the key model occurs twice"},
      {5, "# late=1", "5: header: after a block or event, header lines come before them"},
      // Records and their fields.
      {8, "realloc 2", "8: record: \"realloc\" is unknown, must be block, alloc, free or op"},
      {8, " alloc 2", "8: record: \"\" is unknown, must be block, alloc, free or op"},
      {8, "\n", "8: record: \"\" is unknown, must be block, alloc, free or op"},
      {8, "alloc", "8: alloc: too few fields, must be 2 with one blank between them"},
      {8, "alloc 2 ", "8: alloc: too many fields, must be 2 with one blank between them"},
      {8, "alloc  2", "8: alloc: too many fields, must be 2 with one blank between them"},
      {12, "free 2 3", "12: free: too many fields, must be 2 with one blank between them"},
      {4, "block 0 persistent 1",
       "4: block: too few fields, must be 5 with one blank between them"},
      {9, "op 0 add forward 1 2 3 4 r=",
       "9: op: too few fields, must be 10 with one blank between them"},
      {9, "op 0 add forward 1 2 3 4 r= w= x",
       "9: op: too many fields, must be 10 with one blank between them"},
      {8, "alloc\t2", "8: byte 0x09 in column 6, must be a printable ASCII character"},
      {8, "alloc 2\r", "8: carriage return in column 8, lines end in a line feed alone"},
      // Blocks.
      {5, "block 2 input 0 600", "5: id: 2 is out of order, must be 1"},
      {5, "block 0 input 0 600", "5: id: 0 is out of order, must be 1"},
      {5, "block one input 0 600", "5: id: \"one\"" + number},
      {5, "block 1 weight 0 600",
       "5: kind: \"weight\" is unknown, must be persistent, input or transient"},
      {5, "block 1 transient 0 600",
       "8: id: block 2 is out of order, the next to be allocated is block 1"},
      {7, "block 3 input 0 8",
       "7: kind: input after transient, the order is persistent, input, transient"},
      {5, "block 1 input -1 600", "5: fixed_bytes: \"-1\"" + number},
      {5, "block 1 input 1 +6", "5: bytes_per_sample: \"+6\"" + number},
      {5, "block 1 input  6", "5: fixed_bytes: \"\"" + number},
      {5, "block 1 input 1 9007199254740993",
       "5: bytes_per_sample: \"9007199254740993\" is too large, must be at most 9007199254740992"},
      {11, "block 4 transient 1 0", "11: block: after an event, blocks come before them"},
      // Allocations.
      {8, "alloc 3", "8: id: block 3 is out of order, the next to be allocated is block 2"},
      {10, "alloc 2", "10: id: block 2 was allocated before"},
      {8, "alloc 0", "8: id: block 0 is persistent, only transient blocks are allocated and freed"},
      {8, "alloc 1", "8: id: block 1 is input, only transient blocks are allocated and freed"},
      {8, "alloc 4", "8: id: block 4 does not exist, there are 4"},
      {8, "alloc 02", "8: id: \"02\"" + number},
      {8, "", "8: w: block 2 is not allocated yet"},
      {8, "free 2", "8: id: block 2 is not allocated yet"},
      {12, "free 0",
       "12: id: block 0 is persistent, only transient blocks are allocated and freed"},
      {12, "free 4", "12: id: block 4 does not exist, there are 4"},
      {12, "free 0x2", "12: id: \"0x2\"" + number},
      {14, "free 2", "14: id: block 2 was freed before"},
      {14, "", "13: end: block 3 was never freed"},
      // Operators.
      {11, "op 0 neg backward 0 0 5 6 r= w=3", "11: index: 0 is out of order, must be 1"},
      {11, "op 2 neg backward 0 0 5 6 r= w=3", "11: index: 2 is out of order, must be 1"},
      {11, "op x neg backward 0 0 5 6 r= w=3", "11: index: \"x\"" + number},
      {11, "op 1  backward 0 0 5 6 r= w=3",
       "11: name: must be of printable ASCII characters other than blanks"},
      {11, "op 1 neg back 0 0 5 6 r= w=3",
       "11: phase: \"back\" is unknown, must be forward, backward or optimizer"},
      {11, "op 1 neg backward a 0 5 6 r= w=3", "11: flops: \"a\"" + number},
      {11, "op 1 neg backward 0 a 5 6 r= w=3", "11: flops_per_sample: \"a\"" + number},
      {11, "op 1 neg backward 0 0 a 6 r= w=3", "11: bytes: \"a\"" + number},
      {11, "op 1 neg backward 0 0 5 a r= w=3", "11: bytes_per_sample: \"a\"" + number},
      {11, "op 1 neg backward 0 0 5 6 w=3 r=", "11: r: \"w=3\" must begin with r="},
      {11, "op 1 neg backward 0 0 5 6 r= 3", "11: w: \"3\" must begin with w="},
      {11, "op 1 neg backward 0 0 5 6 r=3, w=3", "11: r: ends in a comma, must end in an id"},
      {11, "op 1 neg backward 0 0 5 6 r=,3 w=3", "11: r: \"\"" + number},
      {11, "op 1 neg backward 0 0 5 6 r=3 w=3,0,3", "11: w: block 3 occurs twice"},
      {11, "op 1 neg backward 0 0 5 6 r=4 w=3", "11: r: block 4 does not exist, there are 4"},
      {11, "op 1 neg backward 0 0 5 6 r=1048576 w=3",
       "11: r: block 1048576 does not exist, ids are below 1048576"},
      {13, "op 2 add_ optimizer 0 0 5 6 r=2 w=0", "13: r: block 2 was freed before"},
      {13, "op 2 add_ optimizer 0 0 5 6 r=0 w=0,2", "13: w: block 2 was freed before"},
  };
  for (const Malformed& malformed : cases) {
    EXPECT_EQ(FaultOf(With(malformed.line, malformed.text)), "line " + malformed.fault);
  }
}

TEST(ParseTrace, TheLastLineEndsToo) {
  std::string text = With(0, "");
  text.pop_back();
  EXPECT_EQ(FaultOf(text), "line 14: does not end in a line feed");
  EXPECT_EQ(FaultOf(With(0, "") + "\n"),
            "line 15: record: \"\" is unknown, must be block, alloc, free or op");
}

TEST(ParseTrace, WhatIsMissingNamesTheLastLine) {
  EXPECT_EQ(FaultOf("# sluice-trace 1\nblock 0 transient 1 0\n"),
            "line 2: end: block 0 was never allocated");
  EXPECT_EQ(FaultOf("# sluice-trace 1\nblock 0 transient 1 0\nalloc 0\n"),
            "line 3: end: block 0 was never freed");
}

TEST(ParseTrace, AFaultIsAnInvalidArgument) {
  EXPECT_EQ(ParseTrace("").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseTrace(With(14, "")).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::scheduler::trace
