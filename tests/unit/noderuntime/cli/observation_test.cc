// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/observation.h"

#include <gtest/gtest.h>

#include "scheduler/trace/builder.h"
#include "scheduler/trace/measured.h"

namespace sluice::cli {
namespace {

namespace trace = scheduler::trace;

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// 10 blocks of 8 MiB that come and go beside 16 MiB, each with two launches of 1 ms.
NamedTrace Triangle(uint64_t clock_ns, uint64_t trough_bytes = 0) {
  constexpr uint64_t kBlocks = 10;
  trace::TraceBuilder builder;
  trace::Measured measured;
  measured.op_ns.assign(2 * kBlocks, 1'000'000);
  measured.trough_bytes = trough_bytes;
  EXPECT_TRUE(trace::AddMeasured(measured, &builder).ok());
  if (clock_ns != 0) {
    EXPECT_TRUE(builder.AddHeader("iteration_ns", std::to_string(clock_ns)).ok());
  }
  EXPECT_TRUE(builder.AddBlock({trace::BlockKind::kPersistent, {16 * kMiB, 0}}).ok());
  for (uint64_t i = 0; i < kBlocks; ++i) {
    EXPECT_TRUE(builder.AddBlock({trace::BlockKind::kTransient, {8 * kMiB, 0}}).ok());
  }
  trace::Operator op;
  op.name = "op";
  for (uint64_t i = 1; i <= kBlocks; ++i) {
    EXPECT_TRUE(builder.Alloc(i).ok());
    EXPECT_TRUE(builder.AddOperator(op).ok());
  }
  for (uint64_t i = kBlocks; i > 0; --i) {
    EXPECT_TRUE(builder.AddOperator(op).ok());
    EXPECT_TRUE(builder.Free(i).ok());
  }
  return {"job", builder.Finish().value()};
}

ObservedGpu Gpu(uint64_t pool_bytes) { return {"a GPU", pool_bytes, 8 * kMiB}; }

std::string Said(const NamedTrace& job, uint64_t pool_bytes) {
  const Result<std::string> text = DescribeObservation(job, "job.trace", Gpu(pool_bytes));
  return text.ok() ? *text : text.status().message();
}

double Ratio(const std::string& text) {
  const std::string before = "would finish in ";
  const size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? 0 : std::stod(text.substr(at + before.size()));
}

TEST(Observation, SaysWhatAnIterationTakes) {
  const std::string text = Said(Triangle(25'000'000), 160 * kMiB);
  EXPECT_NE(text.find("iteration: 20 launches, 20.000 ms of GPU time, 25.000 ms by the clock\n"
                      "memory: peak 96.0 MiB; base 16.0 MiB at the trough; 80.0 MiB at most come "
                      "and go\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("two of these: 112.0 MiB to take turns, 192.0 MiB to run side by side; the "
                      "pool has 160.0 MiB\n"),
            std::string::npos)
      << text;
}

TEST(Observation, WhatLivesAcrossTheTroughIsPartOfTheBase) {
  const std::string text = Said(Triangle(0, 24 * kMiB), 160 * kMiB);
  EXPECT_NE(text.find("base 24.0 MiB at the trough, 16.0 MiB of it through all of it"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("two of these: 120.0 MiB to take turns"), std::string::npos) << text;
}

TEST(Observation, AHostThatLeavesTheGpuIdleIsWhatSharingGains) {
  // As long again as the GPU works: the other job has all of it.
  const double idle = Ratio(Said(Triangle(40'000'000), 200 * kMiB));
  EXPECT_GT(idle, 0.45);
  EXPECT_LT(idle, 0.6);
  // Half as long: three halves of its time are to be shared by two.
  const double less = Ratio(Said(Triangle(30'000'000), 200 * kMiB));
  EXPECT_GT(less, 0.6);
  EXPECT_LT(less, 0.75);
  // A GPU in time slices has nothing to give that is busy all the time.
  const std::string busy = Said(Triangle(20'000'000), 200 * kMiB);
  EXPECT_GT(Ratio(busy), 0.97) << busy;
  EXPECT_LT(Ratio(busy), 1.03) << busy;
  EXPECT_EQ(busy.find("--gap"), std::string::npos) << busy;
}

TEST(Observation, WithoutTheClockItSaysSo) {
  const std::string text = Said(Triangle(0), 200 * kMiB);
  EXPECT_EQ(text.find("by the clock"), std::string::npos) << text;
  EXPECT_NE(text.find("what the host does between two iterations is not known)"), std::string::npos)
      << text;
}

TEST(Observation, TwoThatDoNotFitAreTold) {
  const std::string text = Said(Triangle(0), 104 * kMiB);
  EXPECT_NE(text.find("two of these: 112.0 MiB to take turns"), std::string::npos) << text;
  EXPECT_NE(text.find("two of these do not fit in this pool: "), std::string::npos) << text;
}

TEST(Observation, NamesACommandThatTellsMore) {
  const std::string text = Said(Triangle(30'000'000), 160 * kMiB);
  EXPECT_NE(text.find("more: sluice simulate job.trace:1 job.trace:1 --sharing timeslice --pool "
                      "167772160 --unit 8388608 --gap "),
            std::string::npos)
      << text;
}

TEST(Observation, EqualObservationsAreToldEqually) {
  EXPECT_EQ(Said(Triangle(30'000'000), 160 * kMiB), Said(Triangle(30'000'000), 160 * kMiB));
}

TEST(ObservedGpu, IsReadFromTheStatusWhateverThatIs) {
  const auto gpu =
      ReadObservedGpu(R"({"gpu_name": "X", "pool_bytes": 4096, "unit_bytes": 1024, "jobs": []})");
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  EXPECT_EQ(gpu->name, "X");
  EXPECT_EQ(gpu->pool_bytes, 4096u);
  EXPECT_EQ(gpu->unit_bytes, 1024u);
  for (const char* text :
       {"", "[]", "7", "{", R"({"pool_bytes": -1, "unit_bytes": 1})",
        R"({"pool_bytes": "many", "unit_bytes": 1})", R"({"pool_bytes": 4096})"}) {
    EXPECT_EQ(ReadObservedGpu(text).status().code(), StatusCode::kUnavailable) << text;
  }
}

}  // namespace
}  // namespace sluice::cli
