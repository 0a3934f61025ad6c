// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/at_batch.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/scheduler/trace/random_trace.h"

namespace sluice::scheduler::trace {
namespace {

Trace Small() {
  Trace trace;
  trace.blocks = {{BlockKind::kPersistent, {1000, 0}}, {BlockKind::kPersistent, {500, 1}},
                  {BlockKind::kInput, {0, 10}},        {BlockKind::kTransient, {1, 2}},
                  {BlockKind::kTransient, {0, 30}},    {BlockKind::kTransient, {0, 30}}};
  trace.operators = {{"a", Phase::kForward, {1, 2}, {3, 4}, {0}, {3}}};
  trace.events = {{EventKind::kAlloc, 3}, {EventKind::kOperator, 0}, {EventKind::kAlloc, 4},
                  {EventKind::kFree, 4},  {EventKind::kAlloc, 5},    {EventKind::kFree, 3},
                  {EventKind::kFree, 5}};
  return trace;
}

TEST(AtBatch, GivesPlainNumbers) {
  const Result<BatchTrace> result = AtBatch(Small(), 4);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const BatchTrace& sized = *result;
  EXPECT_EQ(sized.batch, 4u);
  EXPECT_EQ(sized.block_bytes, (std::vector<uint64_t>{1000, 504, 40, 9, 120, 120}));
  ASSERT_EQ(sized.costs.size(), 1u);
  EXPECT_EQ(sized.costs[0].flops, 9u);
  EXPECT_EQ(sized.costs[0].bytes, 19u);
  EXPECT_EQ(sized.persistent_bytes, 1504u);
  EXPECT_EQ(sized.input_bytes, 40u);
  EXPECT_EQ(sized.load, (std::vector<uint64_t>{9, 9, 129, 9, 129, 120, 0}));
  EXPECT_EQ(sized.peak_bytes, 129u);
  EXPECT_EQ(sized.peak_event, 2u) << "the first of two equal ones";
}

TEST(AtBatch, OfNothingIsNothing) {
  const Result<BatchTrace> sized = AtBatch(Trace(), 1);
  ASSERT_TRUE(sized.ok());
  EXPECT_EQ((*sized).peak_bytes, 0u);
  EXPECT_TRUE((*sized).load.empty());
}

TEST(AtBatch, NamesABatchThatIsNone) {
  EXPECT_EQ(AtBatch(Small(), 0).status().message(), "batch: 0 must be between 1 and 1048576");
  EXPECT_EQ(AtBatch(Small(), kMaxBatch + 1).status().message(),
            "batch: 1048577 must be between 1 and 1048576");
  EXPECT_TRUE(AtBatch(Small(), kMaxBatch).ok());
}

TEST(AtBatch, NamesTheNumberThatIsTooLarge) {
  constexpr uint64_t kHalf = kMaxNumber / 2;
  const auto fault = [](void (*change)(Trace*)) {
    Trace trace = Small();
    change(&trace);
    return AtBatch(trace, 4).status().message();
  };
  EXPECT_EQ(fault([](Trace* trace) {
              trace->blocks[4].bytes = {1, kMaxNumber / 4};
            }),
            "batch 4: block 4: bytes: more than 9007199254740992");
  EXPECT_EQ(fault([](Trace* trace) {
              trace->operators[0].flops = {0, kHalf};
            }),
            "batch 4: op 0: flops: more than 9007199254740992");
  EXPECT_EQ(fault([](Trace* trace) {
              trace->operators[0].bytes = {0, kHalf};
            }),
            "batch 4: op 0: bytes: more than 9007199254740992");
  EXPECT_EQ(fault([](Trace* trace) {
              trace->blocks[0].bytes = {kMaxNumber, 0};
            }),
            "batch 4: all persistent blocks: bytes: more than 9007199254740992");
  EXPECT_EQ(fault([](Trace* trace) {
              trace->blocks[1].kind = BlockKind::kInput;
              trace->blocks[1].bytes = trace->blocks[2].bytes = {kHalf, 1};
            }),
            "batch 4: all input blocks: bytes: more than 9007199254740992");
  EXPECT_EQ(fault([](Trace* trace) {
              trace->blocks[4].bytes = {kMaxNumber, 0};
            }),
            "batch 4: transient load after event 2: bytes: more than 9007199254740992");
}

TEST(AtBatch, ASumMayReachTheLargestNumber) {
  Trace trace = Small();
  trace.blocks[0].bytes = {kMaxNumber - 504, 0};
  const Result<BatchTrace> sized = AtBatch(trace, 4);
  ASSERT_TRUE(sized.ok()) << sized.status().message();
  EXPECT_EQ((*sized).persistent_bytes, kMaxNumber);
}

TEST(AtBatch, MatchesTheDefinition) {
  RandomTrace random(5);
  size_t checked = 0;
  for (int round = 0; round < 2000; ++round) {
    const Trace trace = random.Make();
    const Result<BatchTrace> sized = AtBatch(trace, 3);
    if (!sized.ok()) continue;  // a random number is often too large
    ++checked;
    std::map<uint32_t, uint64_t> live;
    uint64_t peak = 0;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind == EventKind::kAlloc) {
        const Linear& bytes = trace.blocks[event.index].bytes;
        live[event.index] = bytes.fixed + 3 * bytes.per_sample;
      }
      if (event.kind == EventKind::kFree) live.erase(event.index);
      uint64_t load = 0;
      for (const auto& [block, bytes] : live) load += bytes;
      ASSERT_EQ((*sized).load[i], load);
      peak = std::max(peak, load);
    }
    ASSERT_EQ((*sized).peak_bytes, peak);
  }
  EXPECT_GT(checked, 100u);
}

}  // namespace
}  // namespace sluice::scheduler::trace
