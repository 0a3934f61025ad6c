// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/recorded_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/simulate/workload.h"
#include "scheduler/trace/parse.h"
#include "scheduler/trace/write.h"
#include "tests/unit/scheduler/training_stream.h"

namespace sluice::scheduler {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kWeights = 1000;

/// A job that is watched: what its client reports goes to a profiler and to a recorder.
class RecordedTrace : public ::testing::Test {
 protected:
  RecordedTrace() : profiler_(TestProfilerOptions()), stream_(&profiler_) {
    stream_.recorder = &recorder_;
  }
  void Iterations(int count, const std::function<void()>& iteration) {
    for (int i = 0; i < count; ++i) {
      iteration();
      stream_.ReportTimes();
      now_ += 3 * kMs;
      recorder_.Follow(profiler_, now_, alone_);
    }
  }
  /// Its trace, read again from its text.
  trace::Trace Read() {
    const Result<trace::Trace> made = TraceOf(recorder_, "a job");
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (!made.ok()) return {};
    const Result<trace::Trace> read = trace::ParseTrace(trace::WriteTrace(*made));
    EXPECT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(*read == *made);
    return *read;
  }
  /// What a simulation takes of the trace is what the profiler has measured.
  void ExpectAsMeasured() {
    const Profile measured = *profiler_.Current();
    const Result<Profile> simulated = simulate::ProfileOf(Read(), 1, Machine());
    ASSERT_TRUE(simulated.ok()) << simulated.status().message();
    EXPECT_EQ(simulated->period, measured.period);
    EXPECT_EQ(simulated->launch_ns, measured.launch_ns);
    EXPECT_EQ(simulated->iteration_ns, measured.iteration_ns);
    EXPECT_EQ(simulated->peak_bytes, measured.peak_bytes);
    EXPECT_EQ(simulated->base_bytes, measured.base_bytes);
    // What comes between the trough and launch 0 is after the last launch to the profiler, and
    // before the first to a simulation.
    std::vector<uint64_t> live = simulated->max_live;
    live.back() = std::max(live.back(), simulated->live_before.front());
    EXPECT_EQ(live, measured.max_live);
  }

  Profiler profiler_;
  IterationRecorder recorder_;
  TrainingStream stream_;
  uint64_t now_ = 0;
  bool alone_ = true;
};

TEST_F(RecordedTrace, IsTheIterationThatWasMeasured) {
  stream_.Begin(kWeights);
  Iterations(20, [&] { stream_.Iteration(8, 64); });
  ASSERT_NE(recorder_.last(), nullptr);
  ExpectAsMeasured();
  const trace::Trace read = Read();
  EXPECT_EQ(read.operators.size(), 24u);
  EXPECT_EQ(read.blocks.size(), 1u + 8);
  EXPECT_EQ(read.blocks[0].bytes.fixed, kWeights);
  EXPECT_EQ(*read.Find("model"), "a job");
  // The same function has the same name: eight layers, and back, and one update of all.
  std::set<std::string> names;
  for (const trace::Operator& op : read.operators) names.insert(op.name);
  EXPECT_EQ(names.size(), 17u);
}

TEST_F(RecordedTrace, OfAProgramThatFreesLate) {
  // The last block goes only when the next iteration has begun to need memory.
  stream_.Begin(kWeights);
  bool first = true;
  Iterations(20, [&] {
    for (uint64_t l = 0; l < 6; ++l) {
      stream_.Alloc(100 + l);
      stream_.Launch(100 + l);
    }
    for (uint64_t l = 6; l-- > 0;) {
      stream_.Launch(200 + l);
      if (l > 0) stream_.Free(100 + l);
    }
    stream_.Launch(300);
    if (!first) stream_.Free(7);
    stream_.Alloc(7);
    stream_.Free(100);
    first = false;
  });
  EXPECT_EQ(profiler_.Current()->trough_place, TroughPlace::kBeforeFirst);
  ExpectAsMeasured();
}

TEST_F(RecordedTrace, ABlockThatLivesAcrossTheTroughIsThereAtBothEnds) {
  stream_.Begin(kWeights);
  // As a loop that loads the next batch while the last one is in use.
  stream_.Alloc(50);
  Iterations(20, [&] {
    stream_.Alloc(400);
    stream_.Launch(1);
    stream_.Free(50);
    stream_.Launch(2);
    stream_.Alloc(50);
    stream_.Launch(3);
    stream_.Free(400);
    stream_.Launch(4);
  });
  ExpectAsMeasured();
  const trace::Trace read = Read();
  EXPECT_EQ(read.blocks.size(), 4u);
  EXPECT_EQ(read.blocks[0].bytes.fixed, kWeights) << "what stays";
  EXPECT_EQ(*read.Find("trough_bytes"), "1050");
}

TEST_F(RecordedTrace, OtherStreamsAreCountedOnly) {
  stream_.Begin(kWeights);
  Iterations(20, [&] {
    stream_.Iteration(8, 64);
    stream_.stream = 3;
    stream_.Launch(77);
    stream_.stream = 0;
  });
  ExpectAsMeasured();
  EXPECT_EQ(*Read().Find("launches_beside"), "1");
}

TEST_F(RecordedTrace, SaysHowLongAnIterationTakesByTheClock) {
  stream_.Begin(kWeights);
  Iterations(30, [&] { stream_.Iteration(8, 64); });
  EXPECT_EQ(recorder_.iteration_ns(), 3 * kMs);
  EXPECT_EQ(*Read().Find(kIterationNsKey), "3000000");
}

TEST_F(RecordedTrace, BesideOthersTheClockSaysNothing) {
  alone_ = false;
  stream_.Begin(kWeights);
  Iterations(30, [&] { stream_.Iteration(8, 64); });
  EXPECT_EQ(recorder_.iteration_ns(), 0u);
  EXPECT_EQ(Read().Find(kIterationNsKey), nullptr);
}

TEST_F(RecordedTrace, ALostCycleLeavesTheLastWholeIteration) {
  stream_.Begin(kWeights);
  Iterations(20, [&] { stream_.Iteration(8, 64); });
  const size_t operations = recorder_.last()->ops.size();
  stream_.Alloc(9999);
  for (uint64_t i = 0; i < 100; ++i) stream_.Launch(5000 + i);
  stream_.Free(9999);
  EXPECT_FALSE(profiler_.certain());
  recorder_.Follow(profiler_, now_, true);
  ASSERT_NE(recorder_.last(), nullptr);
  EXPECT_EQ(recorder_.last()->ops.size(), operations);
  for (const Op& op : recorder_.last()->ops) EXPECT_LT(op.value, 1000u);
}

TEST_F(RecordedTrace, WithLostRecordsNothingIsSure) {
  stream_.Begin(kWeights);
  Iterations(20, [&] { stream_.Iteration(8, 64); });
  profiler_.Restart();
  recorder_.Forget();
  const Result<trace::Trace> none = TraceOf(recorder_, "a job");
  EXPECT_EQ(none.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(none.status().message(), "no whole iteration was recorded");
  // The next ones are whole again.
  Iterations(40, [&] { stream_.Iteration(8, 64); });
  ExpectAsMeasured();
}

TEST_F(RecordedTrace, IsBounded) {
  recorder_ = IterationRecorder(30);
  stream_.Begin(kWeights);
  Iterations(20, [&] { stream_.Iteration(8, 64); });
  EXPECT_EQ(recorder_.last(), nullptr);
  EXPECT_EQ(TraceOf(recorder_, "a job").status().message(),
            "an iteration has more operations than are recorded");
}

TEST_F(RecordedTrace, OddNamesAndSizesAreNotTakenOver) {
  stream_.Begin(kWeights);
  Iterations(20, [&] { stream_.Iteration(8, 64); });
  EXPECT_EQ(*TraceOf(recorder_, "caf\xc3\xa9\n")->Find("model"), "caf???");
  Iterations(20, [&] { stream_.Iteration(8, uint64_t{1} << 54); });
  EXPECT_EQ(TraceOf(recorder_, "a job").status().message(),
            "it has more bytes than a trace can say");
}

TEST_F(RecordedTrace, NothingIsRecordedBeforeThereAreTimes) {
  stream_.Begin(kWeights);
  for (int i = 0; i < 20; ++i) {
    stream_.Iteration(8, 64);
    recorder_.Follow(profiler_, now_, true);
  }
  ASSERT_TRUE(profiler_.certain());
  EXPECT_EQ(recorder_.last(), nullptr);
}

}  // namespace
}  // namespace sluice::scheduler
