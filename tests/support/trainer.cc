// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/trainer.h"

#include <gtest/gtest.h>

#include "noderuntime/cli/trainer_output.h"

namespace sluice::testing {

std::vector<std::string> TrainerRun::Command() const {
  std::vector<std::string> command = {
      Program("TRAINER"),        "--model", model, "--seed", std::to_string(seed), "--iterations",
      std::to_string(iterations)};
  command.insert(command.end(), extra.begin(), extra.end());
  return command;
}

std::string TrainerRun::Label() const {
  std::string label = model + " seed " + std::to_string(seed);
  for (const std::string& flag : extra) label += " " + flag;
  return label;
}

BedOptions TrainerBed() {
  BedOptions options;
  options.machine = cli::Layout::At(Program("BIN")).simgpu + "/demo.machine";
  return options;
}

TrainerResult ResultOf(const cli::JobProcess& job) {
  EXPECT_TRUE(job.ended() && job.status().ok()) << Describe(job);
  Result<cli::TrainerOutput> output = cli::ParseTrainerOutput(job.out());
  if (!output.ok()) {
    ADD_FAILURE() << output.status().message() << "\n" << Describe(job);
    return {};
  }
  return {std::move(output->losses), output->peak_bytes.value_or(0)};
}

TrainerResult RunAlone(const TrainerRun& run) {
  BedOptions options = TrainerBed();
  options.gpu_memory = "1GiB";
  options.start_noded = false;
  const TestBed bed(options);
  TrainerResult result = ResultOf(
      bed.Run({.label = run.Label() + " alone", .command = run.Command(), .under_sluice = false}));
  EXPECT_EQ(result.losses.size(), run.iterations);
  EXPECT_TRUE(cli::AllFinite(result.losses)) << run.Label();
  EXPECT_GT(result.peak_bytes, 0u);
  return result;
}

void ExpectSameLosses(const TrainerResult& expected, const cli::JobProcess& job) {
  const TrainerResult actual = ResultOf(job);
  EXPECT_EQ(cli::CompareLosses(expected.losses, actual.losses), "") << Describe(job);
}

}  // namespace sluice::testing
