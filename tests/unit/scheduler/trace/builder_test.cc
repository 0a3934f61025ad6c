// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/builder.h"

#include <gtest/gtest.h>

namespace sluice::scheduler::trace {
namespace {

// The rules one by one, as they look from a text, are in parse_test.cc.

TEST(TraceBuilder, GivesTheTraceAndStartsOver) {
  TraceBuilder builder;
  ASSERT_TRUE(builder.AddHeader("model", "m").ok());
  ASSERT_TRUE(builder.AddBlock({BlockKind::kPersistent, {8, 0}}).ok());
  ASSERT_TRUE(builder.AddBlock({BlockKind::kTransient, {0, 4}}).ok());
  ASSERT_TRUE(builder.Alloc(1).ok());
  ASSERT_TRUE(builder.AddOperator({"relu", Phase::kForward, {}, {1, 2}, {0}, {1}}).ok());
  ASSERT_TRUE(builder.Free(1).ok());
  EXPECT_EQ(builder.blocks(), 2u);
  EXPECT_EQ(builder.operators(), 1u);

  const Result<Trace> trace = builder.Finish();
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ((*trace).events,
            (std::vector<Event>{
                {EventKind::kAlloc, 1}, {EventKind::kOperator, 0}, {EventKind::kFree, 1}}));
  EXPECT_EQ((*trace).operators[0].name, "relu");
  EXPECT_EQ(*builder.Finish(), Trace());
}

TEST(TraceBuilder, ARefusedRecordChangesNothing) {
  TraceBuilder builder;
  ASSERT_TRUE(builder.AddBlock({BlockKind::kTransient, {8, 0}}).ok());
  EXPECT_FALSE(builder.AddBlock({BlockKind::kInput, {8, 0}}).ok());
  EXPECT_FALSE(builder.Free(0).ok());
  EXPECT_FALSE(builder.AddOperator({"op", Phase::kForward, {}, {}, {0}, {}}).ok());
  ASSERT_TRUE(builder.Alloc(0).ok());
  EXPECT_FALSE(builder.Alloc(0).ok());
  EXPECT_FALSE(builder.Finish().ok());
  EXPECT_FALSE(builder.AddOperator({"op", Phase::kForward, {}, {}, {0, 0}, {}}).ok());
  ASSERT_TRUE(builder.AddOperator({"op", Phase::kForward, {}, {}, {0}, {0}}).ok());
  ASSERT_TRUE(builder.Free(0).ok());
  const Result<Trace> trace = builder.Finish();
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ((*trace).blocks.size(), 1u);
  EXPECT_EQ((*trace).events.size(), 3u);
}

TEST(TraceBuilder, RefusesTextThatTheFormatCannotHold) {
  TraceBuilder builder;
  for (const std::string_view key : {"", "two words", "a=b", "\xc3\xa9"}) {
    EXPECT_EQ(builder.AddHeader(key, "").message(),
              "header: the key must be of letters, digits, '_', '-' or '.'");
  }
  EXPECT_EQ(builder.AddHeader("key", "two\nlines").message(),
            "header: the value must be of printable ASCII characters");
  for (const std::string_view name : {"", "two words", "a\nb"}) {
    EXPECT_EQ(builder.AddOperator({std::string(name), Phase::kForward, {}, {}, {}, {}}).message(),
              "name: must be of printable ASCII characters other than blanks");
  }
}

TEST(TraceBuilder, HasBounds) {
  TraceBuilder builder;
  for (size_t i = 0; i < kMaxHeaderEntries; ++i) {
    ASSERT_TRUE(builder.AddHeader("k" + std::to_string(i), "").ok());
  }
  EXPECT_EQ(builder.AddHeader("k", "").message(), "header: more than 256 entries");
  for (size_t i = 0; i < kMaxBlocks; ++i) {
    ASSERT_TRUE(builder.AddBlock({BlockKind::kInput, {}}).ok());
  }
  EXPECT_EQ(builder.AddBlock({BlockKind::kInput, {}}).message(), "block: more than 1048576 blocks");
  const Operator op{"op", Phase::kForward, {}, {}, {}, {}};
  for (size_t i = 0; i < kMaxOperators; ++i) ASSERT_TRUE(builder.AddOperator(op).ok());
  EXPECT_EQ(builder.AddOperator(op).message(), "op: more than 1048576 operators");
  EXPECT_TRUE(builder.Finish().ok());
}

}  // namespace
}  // namespace sluice::scheduler::trace
