// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "common/bytes.h"
#include "tests/clients/client_runs.h"

namespace sluice::testing {
namespace {

ClientRun Train(std::vector<std::string> arguments, int seed = 1) {
  ClientRun run{.label = "tinygrad seed " + std::to_string(seed),
                .command = {Python(), SourceFile("examples/tinygrad/train.py"), "--seed",
                            std::to_string(seed)},
                .environment = {{"DEV", "CUDA"}}};
  run.command.insert(run.command.end(), arguments.begin(), arguments.end());
  return run;
}

/// Without tinygrad's own cache of freed memory, so that it frees what it does not need.
ClientRun WithoutCache(ClientRun run) {
  run.environment.emplace_back("LRU", "0");
  return run;
}

std::vector<double> Losses(const Lines& lines) {
  std::vector<double> losses;
  for (const std::string& line : lines) {
    std::string word;
    std::string step;
    std::string bits;
    double value = 0;
    if (std::istringstream(line) >> word >> step >> bits >> value && word == "loss") {
      losses.push_back(value);
    }
  }
  return losses;
}

class Tinygrad : public ClientTest {
 protected:
  // Peaks of 2.5 MiB each; half of an iteration it holds much less.
  static ClientRun MicroBatches(int seed, const char* steps = "32") {
    return WithoutCache(Train({"--batch", "128", "--micro-batches", "2", "--steps", steps}, seed));
  }
  static ClientRun Jit(int seed) {
    return Train({"--batch", "128", "--jit", "--steps", "8"}, seed);
  }
};

TEST_F(Tinygrad, TwoRunsAreEqualAndLikeTheCpu) {
  const std::vector<std::string> arguments = {"--model", "mlp", "--batch", "64", "--steps", "8"};
  ClientRun again = Train(arguments);
  again.label += " again";
  ClientRun on_cpu = Train(arguments);
  on_cpu.environment = {{"DEV", "CPU"}, {"CC", Clang()}};
  const std::vector<Lines> printed = RunUnhooked({Train(arguments), again, on_cpu});
  EXPECT_EQ(printed[1], printed[0]);
  const std::vector<double> losses = Losses(printed[0]);
  const std::vector<double> reference = Losses(printed[2]);
  ASSERT_EQ(losses.size(), 8u);
  ASSERT_EQ(reference.size(), 8u);
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], reference[i], 5e-6) << i;
  EXPECT_LT(losses.back(), losses.front()) << "it learns";
}

TEST_F(Tinygrad, TwoTrainingsLendWithinIterations) {
  const std::vector<ClientRun> runs = {MicroBatches(1), MicroBatches(2)};
  const std::vector<Lines> expected = RunUnhooked(runs);
  EXPECT_EQ(Losses(expected[0]).size(), 32u);
  EXPECT_NE(expected[0], expected[1]);
  const scheduler::AuditReport report = RunHooked(runs, expected, 4 * kMiB);
  ExpectPeaksDoNotFit(report);
  EXPECT_GT(report.lent_bytes_within_iterations, 0u);
}

TEST_F(Tinygrad, AloneUnderSluiceItComputesTheSame) {
  const std::vector<ClientRun> runs = {WithoutCache(Train({"--batch", "128", "--steps", "5"})),
                                       MicroBatches(1, "5")};
  const std::vector<Lines> expected = RunUnhooked(runs);
  RunHooked({runs[0]}, {expected[0]}, 32 * kMiB);
  RunHooked({runs[1]}, {expected[1]}, 32 * kMiB);
}

TEST_F(Tinygrad, ReplaysItsGraphs) {
  ClientRun without_graphs = Jit(1);
  std::erase(without_graphs.command, "--jit");
  const std::vector<Lines> expected = RunUnhooked({Jit(1), Jit(2), without_graphs});
  EXPECT_EQ(expected[0], expected[2]);
  RunHooked({Jit(1)}, {expected[0]}, 64 * kMiB);
  ExpectPeaksDoNotFit(RunHooked({Jit(1), Jit(2)}, {expected[0], expected[1]}, 12 * kMiB));
}

TEST_F(Tinygrad, StaysBelowItsLimit) {
  ClientRun run = WithoutCache(Train({"--model", "mlp", "--batch", "64", "--steps", "4"}));
  const Lines expected = RunUnhooked(run);
  run.run_flags = {"--limit", "4MiB"};
  const scheduler::AuditReport report = RunHooked({run}, {expected}, 32 * kMiB);
  EXPECT_LE(report.jobs.begin()->second.peak_units * report.unit_bytes, 4 * kMiB);
}

TEST_F(Tinygrad, LearnsOfALimitThatIsTooLow) {
  BedOptions options;
  options.pool = "32MiB";
  const TestBed bed(options);
  const ClientRun run = WithoutCache(Train({"--model", "mlp", "--batch", "64", "--steps", "4"}));
  const cli::JobProcess job = bed.Run({.label = run.label,
                                       .command = run.command,
                                       .run_flags = {"--limit", "1MiB"},
                                       .environment = run.environment},
                                      200'000);
  EXPECT_FALSE(job.status().ok()) << Describe(job);
  const auto says = [&](const char* text) {
    return std::any_of(job.err().begin(), job.err().end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(says("MemoryError: Allocation of")) << Describe(job);
  EXPECT_TRUE(says("its limit is 1.0 MiB")) << Describe(job);
}

}  // namespace
}  // namespace sluice::testing
