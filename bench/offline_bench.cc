// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "noderuntime/cli/job_process.h"
#include "noderuntime/cli/layout.h"
#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/work_dir.h"
#include "scheduler/trace/builder.h"
#include "scheduler/trace/write.h"

/// How long a person waits for an answer of `sluice simulate` and `sluice max-batch`: the programs
/// as they are started by hand, from their start to their end.
namespace sluice::bench {
namespace {

using scheduler::trace::Block;
using scheduler::trace::BlockKind;
using scheduler::trace::Operator;
using scheduler::trace::Phase;
using scheduler::trace::Trace;
using scheduler::trace::TraceBuilder;

constexpr double kSimulateSeconds = 1;
constexpr double kMaxBatchSeconds = 20;
constexpr int kRepeats = 3;  // the least counts
constexpr int kTimeoutMs = 300'000;

/// Layers, forwards and back, each of which keeps 4 MiB until its gradient is there: of 10,000
/// operators, two do not fit into 32 GiB.
Result<Trace> LongTrace() {
  constexpr uint32_t kLayers = 5'000;
  constexpr uint64_t kWeights = uint64_t{1} << 30;
  constexpr uint64_t kActivation = uint64_t{4} << 20;
  TraceBuilder builder;
  Status status = builder.AddBlock({BlockKind::kPersistent, {kWeights, 0}});
  for (uint32_t layer = 0; layer < kLayers && status.ok(); ++layer) {
    status = builder.AddBlock({BlockKind::kTransient, {kActivation, 0}});
  }
  for (uint32_t layer = 0; layer < kLayers && status.ok(); ++layer) {
    status = builder.Alloc(1 + layer);
    const Operator forward{"layer", Phase::kForward, {1'000'000'000 + layer, 0}, {kActivation, 0},
                           {0},     {1 + layer}};
    if (status.ok()) status = builder.AddOperator(forward);
  }
  for (uint32_t layer = kLayers; layer > 0 && status.ok(); --layer) {
    const Operator backward{"gradient",       Phase::kBackward, {2'000'000'000 + layer, 0},
                            {kActivation, 0}, {layer},          {0}};
    status = builder.AddOperator(backward);
    if (status.ok()) status = builder.Free(layer);
  }
  if (!status.ok()) return status;
  return builder.Finish();
}

struct Question {
  std::string name;
  std::vector<std::string> arguments;
  double goal_seconds = 0;
};

/// Wall time of the program.
Result<double> Ask(const std::string& program, const Question& question) {
  cli::SpawnOptions spawn;
  spawn.environment = cli::Environment::Current();
  spawn.argv = {program};
  spawn.argv.insert(spawn.argv.end(), question.arguments.begin(), question.arguments.end());
  const auto start = std::chrono::steady_clock::now();
  Result<cli::JobProcess> process = cli::JobProcess::Start(question.name, std::move(spawn));
  if (!process.ok()) return process.status();
  cli::JobGroup group;
  group.Add(std::move(*process));
  if (Status ran = group.Run(nullptr, -1, kTimeoutMs); !ran.ok()) return ran;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const cli::JobProcess& asked = group.jobs().front();
  if (!asked.status().ok()) {
    return Status(StatusCode::kInternal, question.name + ": " + asked.status().Describe() + ", " +
                                             (asked.err().empty() ? "" : asked.err().back()));
  }
  return took.count();
}

std::vector<Question> Questions(const std::string& long_trace) {
  const std::string traces = std::string(SLUICE_BENCH_REPO_DATA) + "/traces/";
  const auto simulate = [](const std::string& job) {
    return std::vector<std::string>{"simulate", job, job, "--gpu", "v100-32", "--iterations", "10"};
  };
  const auto max_batch = [&traces](const std::string& a, const std::string& b) {
    return std::vector<std::string>{
        "max-batch", traces + a + ".trace", traces + b + ".trace", "--gpu", "v100-32", "--keep",
        "95"};
  };
  std::vector<Question> questions = {
      {"simulate, two of 10,000 operators", simulate(long_trace + ":1"), kSimulateSeconds}};
  for (const char* job : {"tacotron2:1521", "nasnetalarge:28", "resnet152:168"}) {
    const std::string name(job);
    const size_t colon = name.find(':');
    questions.push_back({"simulate, 2 " + name,
                         simulate(traces + name.substr(0, colon) + ".trace" + name.substr(colon)),
                         kSimulateSeconds});
  }
  for (const char* name : {"tacotron2", "nasnetalarge", "resnet152"}) {
    questions.push_back(
        {std::string("max-batch --keep 95, 2 ") + name, max_batch(name, name), kMaxBatchSeconds});
  }
  return questions;
}

int Main(int argc, char** argv) {
  CLI::App app("How long sluice simulate and sluice max-batch take to answer");
  std::string json;
  app.add_option("--json", json, "Keep the figures in this file");
  CLI11_PARSE(app, argc, argv);
  const auto complain = [](const Status& status) {
    std::fprintf(stderr, "sluice_offline_bench: %s\n", status.message().c_str());
    return 2;
  };
  const Result<cli::Layout> layout = cli::Layout::Find();
  if (!layout.ok()) return complain(layout.status());
  const Result<cli::WorkDir> work = cli::WorkDir::Create("");
  if (!work.ok()) return complain(work.status());
  const Result<Trace> trace = LongTrace();
  if (!trace.ok()) return complain(trace.status());
  const std::string file = work->File("long.trace");
  if (Status kept = cli::WriteWholeFile(file, scheduler::trace::WriteTrace(*trace)); !kept.ok())
    return complain(kept);

  nlohmann::json figures = {{"machine", DescribeMachine()}};
  bool met = true;
  std::printf("%-36s %9s %9s\n", "", "seconds", "goal");
  for (const Question& question : Questions(file)) {
    double least = 0;
    for (int i = 0; i < kRepeats; ++i) {
      const Result<double> took = Ask(layout->Program("sluice"), question);
      if (!took.ok()) return complain(took.status());
      least = i == 0 ? *took : std::min(least, *took);
    }
    const bool in_time = least <= question.goal_seconds;
    met = met && in_time;
    std::printf("%-36s %9.2f %9.0f  %s\n", question.name.c_str(), least, question.goal_seconds,
                in_time ? "ok" : "missed");
    std::fflush(stdout);
    figures["rows"].push_back(
        {{"question", question.name}, {"seconds", least}, {"goal_seconds", question.goal_seconds}});
  }
  if (!json.empty()) {
    const Status status = cli::WriteWholeFile(json, figures.dump(2) + "\n");
    if (!status.ok()) return complain(status);
  }
  return met ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
