// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/write.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/parse.h"
#include "tests/unit/scheduler/trace/random_trace.h"

namespace sluice::scheduler::trace {
namespace {

TEST(WriteTrace, WritesTheFormat) {
  Trace trace;
  trace.header = {{"model", "m"}};
  trace.blocks = {{BlockKind::kInput, {1, 2}}, {BlockKind::kTransient, {0, kMaxNumber}}};
  trace.operators = {{"relu", Phase::kForward, {3, 4}, {5, 6}, {0}, {1, 0}}};
  trace.events = {{EventKind::kAlloc, 1}, {EventKind::kOperator, 0}, {EventKind::kFree, 1}};
  EXPECT_EQ(WriteTrace(trace),
            "# sluice-trace 1\n"
            "# model=m\n"
            "block 0 input 1 2\n"
            "block 1 transient 0 9007199254740992\n"
            "alloc 1\n"
            "op 0 relu forward 3 4 5 6 r=0 w=1,0\n"
            "free 1\n");
  EXPECT_EQ(WriteTrace(Trace()), "# sluice-trace 1\n");
}

TEST(WriteTrace, RandomTracesComeBackEqual) {
  RandomTrace random(1);
  size_t operators = 0;
  for (int round = 0; round < 2000; ++round) {
    const Trace trace = random.Make();
    const std::string text = WriteTrace(trace);
    const Result<Trace> parsed = ParseTrace(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message() << "\n" << text;
    ASSERT_EQ(*parsed, trace) << text;
    ASSERT_EQ(WriteTrace(*parsed), text);
    operators += trace.operators.size();
  }
  EXPECT_GT(operators, 2000u);
}

/// The number in "line 12: ..."; 0 where there is none.
size_t LineOf(const std::string& fault) {
  if (fault.rfind("line ", 0) != 0) return 0;
  size_t end = 0;
  const size_t line = std::stoul(fault.substr(5), &end);
  return fault.substr(5 + end, 2) == ": " ? line : 0;
}

TEST(ParseTrace, WhateverTheBytesItGivesATraceOrALine) {
  constexpr std::string_view kBytes = "0123456789 \n#=,rwx-\r\t\x80";
  RandomTrace traces(2);
  std::mt19937 random(3);
  size_t valid = 0;
  size_t faults = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = WriteTrace(traces.Make());
    for (size_t i = 1 + random() % 3; i > 0; --i) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 8);
          break;
        case 1:
          text.insert(at, 1, kBytes[random() % kBytes.size()]);
          break;
        case 2:
          text[at] = kBytes[random() % kBytes.size()];
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
      if (text.empty()) text = "\n";
    }
    const Result<Trace> parsed = ParseTrace(text);
    if (parsed.ok()) {
      ++valid;
      ASSERT_EQ(WriteTrace(*parsed), text);
      const Result<BatchTrace> sized = AtBatch(*parsed, 1 + random() % kMaxBatch);
      ASSERT_TRUE(sized.ok() || !sized.status().message().empty());
      continue;
    }
    ++faults;
    const std::string fault = parsed.status().message();
    const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) +
                       (text.back() == '\n' ? 0 : 1);
    ASSERT_GE(LineOf(fault), 1u) << fault;
    ASSERT_LE(LineOf(fault), lines) << fault << "\n" << text;
    ASSERT_EQ(std::count(fault.begin(), fault.end(), '\n'), 0) << fault;
  }
  EXPECT_GT(valid, 1000u) << "some mutations change a name or a number";
  EXPECT_GT(faults, 10000u);
}

TEST(ParseTrace, TheCheckOfTheLineNumberCanFail) {
  EXPECT_EQ(LineOf("line 12: id: x"), 12u);
  EXPECT_EQ(LineOf("line 12"), 0u);
  EXPECT_EQ(LineOf("id: x"), 0u);
}

}  // namespace
}  // namespace sluice::scheduler::trace
