// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/measured.h"

#include <gtest/gtest.h>

#include "scheduler/text/lines.h"
#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/parse.h"
#include "scheduler/trace/write.h"

namespace sluice::scheduler::trace {
namespace {

/// Two operators, and a block of 30 bytes beside 100 that stay.
Trace With(const std::vector<std::pair<std::string, std::string>>& header) {
  TraceBuilder builder;
  for (const auto& [key, value] : header) EXPECT_TRUE(builder.AddHeader(key, value).ok());
  EXPECT_TRUE(builder.AddBlock({BlockKind::kPersistent, {100, 0}}).ok());
  EXPECT_TRUE(builder.AddBlock({BlockKind::kTransient, {30, 0}}).ok());
  EXPECT_TRUE(builder.Alloc(1).ok());
  for (const char* name : {"a", "b"}) {
    Operator op;
    op.name = name;
    EXPECT_TRUE(builder.AddOperator(op).ok());
  }
  EXPECT_TRUE(builder.Free(1).ok());
  return builder.Finish().value();
}

std::string FaultOf(const std::vector<std::pair<std::string, std::string>>& header,
                    uint64_t batch = 1) {
  const Result<BatchTrace> at = AtBatch(With(header), batch);
  return at.ok() ? "" : at.status().message();
}

TEST(Measured, GivesEachOperatorItsTime) {
  const Result<BatchTrace> at = AtBatch(With({{"op_ns", "7,4294967295"}}), 1);
  ASSERT_TRUE(at.ok()) << at.status().message();
  EXPECT_EQ(at->costs[0].ns, 7u);
  EXPECT_EQ(at->costs[1].ns, UINT32_MAX);
  EXPECT_EQ(at->trough_bytes, 100u);
}

TEST(Measured, AnotherTraceHasNoTimes) {
  const Result<BatchTrace> at = AtBatch(With({{"trough_bytes", "many"}}), 64);
  ASSERT_TRUE(at.ok()) << "the key is somebody else's where nothing was measured";
  EXPECT_EQ(at->costs[0].ns, 0u);
  EXPECT_EQ(at->trough_bytes, 100u);
}

TEST(Measured, ATroughMayHoldMoreThanWhatStays) {
  const Result<BatchTrace> at = AtBatch(With({{"op_ns", "1,1"}, {"trough_bytes", "130"}}), 1);
  ASSERT_TRUE(at.ok()) << at.status().message();
  EXPECT_EQ(at->trough_bytes, 130u);
  EXPECT_EQ(AtBatch(With({{"op_ns", "1,1"}, {"trough_bytes", "90"}}), 1)->trough_bytes, 100u);
}

TEST(Measured, ItsBatchIsTheOnlyOne) {
  EXPECT_EQ(FaultOf({{"op_ns", "1,1"}}, 64),
            "batch: 64 is not the one that was measured, nothing is known of others; allowed: 1");
  EXPECT_EQ(FaultOf({{"op_ns", "1,1"}, {"recorded_batch", "64"}}, 64), "");
  EXPECT_NE(FaultOf({{"op_ns", "1,1"}, {"recorded_batch", "64"}}, 1).find("allowed: 64"),
            std::string::npos);
}

TEST(Measured, NamesWhatIsWrong) {
  const auto times = [](const std::string& text) { return FaultOf({{"op_ns", text}}); };
  EXPECT_EQ(times("5"), "op_ns: 1 for 2 operators, must be one for each");
  EXPECT_EQ(times("5,6,7"), "op_ns: more than 2, one for each operator");
  EXPECT_EQ(times("5,0"), "op_ns: of operator 1: 0 must be between 1 and 4294967295");
  EXPECT_EQ(times("5,4294967296"),
            "op_ns: of operator 1: 4294967296 must be between 1 and 4294967295");
  const std::string no_number =
      " is not a number, must be decimal digits without sign and leading zeros";
  EXPECT_EQ(times(""), "op_ns: of operator 0: \"\"" + no_number);
  EXPECT_EQ(times("5,"), "op_ns: of operator 1: \"\"" + no_number);
  EXPECT_EQ(times("5,,6"), "op_ns: of operator 1: \"\"" + no_number);
  EXPECT_EQ(times("5, 6"), "op_ns: of operator 1: \" 6\"" + no_number);
  EXPECT_EQ(times("-5,6"), "op_ns: of operator 0: \"-5\"" + no_number);
  EXPECT_EQ(times("05,6"), "op_ns: of operator 0: \"05\"" + no_number);
  EXPECT_EQ(FaultOf({{"op_ns", "1,1"}, {"trough_bytes", "131"}}),
            "trough_bytes: 131 is more than ever lives, 130");
  EXPECT_EQ(FaultOf({{"op_ns", "1,1"}, {"trough_bytes", "0"}}),
            "trough_bytes: 0 must be between 1 and 9007199254740992");
  EXPECT_EQ(FaultOf({{"op_ns", "1,1"}, {"recorded_batch", "1048577"}}),
            "recorded_batch: 1048577 must be between 1 and 1048576");
}

TEST(Measured, OfNoOperatorsThereAreNoTimes) {
  TraceBuilder builder;
  ASSERT_TRUE(builder.AddHeader("op_ns", "").ok());
  EXPECT_NE(AtBatch(builder.Finish().value(), 1).status().message().find("more than 0"),
            std::string::npos);
}

TEST(Measured, IsReadAsItWasWritten) {
  Measured measured;
  measured.op_ns = {12, 345678};
  measured.trough_bytes = 130;
  measured.batch = 32;
  TraceBuilder builder;
  ASSERT_TRUE(AddMeasured(measured, &builder).ok());
  for (const char* name : {"a", "b"}) {
    Operator op;
    op.name = name;
    ASSERT_TRUE(builder.AddOperator(op).ok());
  }
  const Result<Trace> again = ParseTrace(WriteTrace(builder.Finish().value()));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(IsMeasured(*again));
  const Result<Measured> read = MeasuredOf(*again);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->op_ns, measured.op_ns);
  EXPECT_EQ(read->trough_bytes, 130u);
  EXPECT_EQ(read->batch, 32u);
}

TEST(Measured, WhatALineCannotHoldIsRefusedAndTheLongestIsRead) {
  const auto lined = [](size_t operators) {
    Measured measured;
    measured.op_ns.assign(operators, 9);
    TraceBuilder builder;
    const Status status = AddMeasured(measured, &builder);
    if (!status.ok()) return status;
    Operator op;
    op.name = "a";
    for (size_t i = 0; i < operators; ++i) {
      if (Status bad = builder.AddOperator(op); !bad.ok()) return bad;
    }
    const Result<Trace> again = ParseTrace(WriteTrace(builder.Finish().value()));
    return again.ok() ? MeasuredOf(*again).status() : again.status();
  };
  // "# op_ns=" and "9,9,...,9".
  constexpr size_t kMost = (text::kMaxLineBytes - 8 + 1) / 2;
  EXPECT_TRUE(lined(kMost).ok());
  EXPECT_EQ(lined(kMost + 1).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::scheduler::trace
