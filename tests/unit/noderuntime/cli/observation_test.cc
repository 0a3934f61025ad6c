// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/observation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/offline/simulate.h"
#include "noderuntime/cli/options.h"
#include "noderuntime/cli/work_dir.h"
#include "scheduler/trace/builder.h"
#include "scheduler/trace/measured.h"
#include "scheduler/trace/write.h"

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
  // A GPU in time slices has nothing to give that is busy all the time, and they cost some of it.
  const std::string busy = Said(Triangle(20'000'000), 200 * kMiB);
  EXPECT_GT(Ratio(busy), 1.02) << busy;
  EXPECT_LT(Ratio(busy), 1.1) << busy;
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
  EXPECT_NE(text.find("the best way to share: sluice simulate job.trace:1 job.trace:1 --sharing "
                      "timeslice --switch 160000ns --pool 167772160 --unit 8388608 --gap "),
            std::string::npos)
      << text;
}

TEST(Observation, TheCommandForTheSameSaysTheSame) {
  Result<WorkDir> work = WorkDir::Create("");
  ASSERT_TRUE(work.ok()) << work.status().message();
  const NamedTrace job = Triangle(40'000'000);
  const std::string file = work->File("job.trace");
  ASSERT_TRUE(WriteWholeFile(file, trace::WriteTrace(job.trace)).ok());
  const auto text = DescribeObservation(job, file, Gpu(200 * kMiB));
  ASSERT_TRUE(text.ok()) << text.status().message();
  const std::string before = ": sluice simulate ";
  const size_t at = text->find(before);
  ASSERT_NE(at, std::string::npos) << *text;
  std::istringstream line(text->substr(at + before.size(), text->find('\n', at) - at));
  std::vector<std::string> words = {"simulate"};
  for (std::string word; line >> word && word != "the";) words.push_back(word);
  const auto parsed = ParseCommandLine(words, Environment());
  ASSERT_TRUE(parsed.ok()) << parsed.status().message() << *text;
  auto options = std::get<SimulateOptions>(std::get<OfflineOptions>(*parsed));
  options.json = true;
  const Output output = RunSimulate(options, SLUICE_MACHINES);
  ASSERT_EQ(output.code, 0) << output.err;
  double longest = 0;
  const auto answer = nlohmann::json::parse(output.out, nullptr, false);
  for (const auto& one : answer["jobs"]) {
    longest = std::max(longest, one["iteration_ms"].get<double>());
  }
  const std::string said = "an iteration takes ";
  EXPECT_NEAR(std::stod(text->substr(text->find(said) + said.size())), longest, 0.1) << *text;
}

TEST(Observation, ItsCommandsAreAShellsWords) {
  const auto said = [](const std::string& file) {
    return DescribeObservation(Triangle(0), file, Gpu(200 * kMiB)).value();
  };
  EXPECT_NE(said("my run's.trace").find(" 'my run'\\''s.trace:1' 'my run'\\''s.trace:1' --"),
            std::string::npos);
  EXPECT_NE(said("$(reboot).trace").find(" '$(reboot).trace:1' "), std::string::npos);
  EXPECT_NE(said("-x.trace").find(" ./-x.trace:1 "), std::string::npos);
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
