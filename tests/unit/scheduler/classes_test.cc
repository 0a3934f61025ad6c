// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/classes.h"

#include <gtest/gtest.h>

#include "scheduler/trace/builder.h"
#include "scheduler/trace/parse.h"
#include "tests/unit/scheduler/trace/trace_files.h"

namespace sluice::scheduler {
namespace {

using trace::Phase;

/// Parameters 0, batch 1; forward makes 2 (kept) and 3 (not), backward makes 4 from 2 and 5 for
/// itself alone, the optimizer uses 4.
trace::Trace Step() {
  trace::TraceBuilder builder;
  const auto must = [](const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); };
  must(builder.AddBlock({trace::BlockKind::kPersistent, {100, 0}}));
  must(builder.AddBlock({trace::BlockKind::kInput, {0, 10}}));
  for (const uint64_t bytes : {20u, 30u, 40u, 50u}) {
    must(builder.AddBlock({trace::BlockKind::kTransient, {bytes, 0}}));
  }
  const auto op = [&](Phase phase, std::vector<trace::BlockId> reads,
                      std::vector<trace::BlockId> writes) {
    trace::Operator made;
    made.name = "op";
    made.phase = phase;
    made.reads = std::move(reads);
    made.writes = std::move(writes);
    must(builder.AddOperator(made));
  };
  must(builder.Alloc(2));
  op(Phase::kForward, {0, 1}, {2});
  must(builder.Alloc(3));
  op(Phase::kForward, {2}, {3});
  must(builder.Free(3));
  must(builder.Alloc(4));
  op(Phase::kBackward, {2}, {4});
  must(builder.Alloc(5));
  op(Phase::kBackward, {4}, {5});
  must(builder.Free(5));
  must(builder.Free(2));
  op(Phase::kOptimizer, {4}, {0});
  must(builder.Free(4));
  return builder.Finish().value();
}

TEST(Classify, TellsWhatABlockIsFor) {
  EXPECT_EQ(Classify(Step()),
            (std::vector<BlockClass>{BlockClass::kPersistent, BlockClass::kInput,
                                     BlockClass::kFeatureMap, BlockClass::kTemporary,
                                     BlockClass::kGradient, BlockClass::kTemporary}));
  EXPECT_EQ(BlockClassName(BlockClass::kFeatureMap), "feature map");
}

TEST(Classify, WithoutOperatorsNothingIsKnown) {
  trace::TraceBuilder builder;
  ASSERT_TRUE(builder.AddBlock({trace::BlockKind::kTransient, {1, 0}}).ok());
  ASSERT_TRUE(builder.Alloc(0).ok());
  ASSERT_TRUE(builder.Free(0).ok());
  EXPECT_EQ(Classify(builder.Finish().value()), (std::vector<BlockClass>{BlockClass::kTemporary}));
}

TEST(DemandCurve, HasAPointPerOperator) {
  const trace::Trace step = Step();
  const std::vector<CurvePoint> curve =
      DemandCurve(step, AtBatch(step, 2).value(), std::vector<double>{10, 20, 30, 40, 50});
  ASSERT_EQ(curve.size(), 5u);
  const double starts[] = {0, 10, 30, 60, 100};
  // The allocation behind an operator counts to it: it is there before the next launch.
  const uint64_t totals[] = {170, 180, 230, 230, 160};
  for (size_t i = 0; i < curve.size(); ++i) {
    EXPECT_EQ(curve[i].ns, starts[i]);
    EXPECT_EQ(curve[i].total(), totals[i]) << i;
  }
  EXPECT_EQ(curve[2].bytes, (std::array<uint64_t, 5>{100, 20, 20, 40, 50}));
}

/// Of a real network: feature maps are what the peak is made of (Zico, Figure 1).
TEST(DemandCurve, FeatureMapsMakeThePeak) {
  const trace::Trace resnet = trace::ParseTrace(trace::ReadTraceFile("resnet50")).value();
  const trace::BatchTrace at = AtBatch(resnet, 32).value();
  const std::vector<CurvePoint> curve =
      DemandCurve(resnet, at, std::vector<double>(resnet.operators.size(), 1));
  const CurvePoint* peak = &curve.front();
  for (const CurvePoint& point : curve) {
    if (point.total() > peak->total()) peak = &point;
  }
  EXPECT_EQ(peak->total(), at.persistent_bytes + at.input_bytes + at.peak_bytes);
  const auto maps = static_cast<double>(peak->bytes[static_cast<size_t>(BlockClass::kFeatureMap)]);
  EXPECT_GT(maps, 0.9 * static_cast<double>(at.peak_bytes));
}

}  // namespace
}  // namespace sluice::scheduler
