// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// A CPU that runs far ahead of its GPU: kernels take 20 times as long as launching them, an
/// iteration fits into the launch queue, and nobody synchronises.
constexpr uint64_t kBlocks = 64;
constexpr uint64_t kLaunchesPerBlock = 4;
constexpr uint64_t kIterations = 60;
constexpr char kMachine[] =
    "launch_ns = 5000\n"
    "launch_queue = 1024\n"
    "cost.default = 100000\n"
    "cost.pattern_fill = 100000\n"
    "cost.pattern_check = 100000\n"
    "cost.pattern_touch = 100000\n";

struct Outcome {
  double held_over_peak = 0;
  double iteration_us =
      0;  // by the device clock: kernels take their declared time, idle time is added
};

Outcome Measure(bool credit) {
  BedOptions options;
  options.machine = kMachine;
  options.noded_flags = {"--lend", "eager", "--credit", credit ? "on" : "off"};
  options.oracle = false;
  TestBed bed(options);
  const cli::JobProcess job = bed.Run(
      {.label = credit ? "credit on" : "credit off",
       .command = {Program("WORKLOAD"), "--iterations", std::to_string(kIterations), "--blocks",
                   std::to_string(kBlocks), "--block-bytes", "256KiB", "--base-bytes", "256KiB",
                   "--launches-per-block", std::to_string(kLaunchesPerBlock)}});
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_LT(Number(job.out(), "launches_per_iteration"), 1024u);
  bed.StopDaemon();
  const scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  EXPECT_EQ(report.jobs.size(), 1u);
  return {report.jobs.begin()->second.mean_over_peak, std::stod(Value(job.out(), "iteration_us"))};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Mean over the peak of what is live while each kernel runs: blocks rise and fall one by one over
/// a base of the same size.
constexpr double LiveOverPeak() {
  return (1 + (static_cast<double>(kBlocks) + 1) / 2) / (static_cast<double>(kBlocks) + 1);
}
static_assert(LiveOverPeak() <= 0.65);

TEST(LaunchAhead, TheCreditKeepsWhatIsHeldNearWhatIsLive) {
  const char* pairs_text = ::getenv("SLUICE_PAIRS");
  const int pairs = pairs_text == nullptr ? 3 : std::stoi(pairs_text);
  std::vector<double> held_on, held_off, growth;
  for (int pair = 0; pair < pairs; ++pair) {
    const Outcome off = Measure(false);
    const Outcome on = Measure(true);
    held_off.push_back(off.held_over_peak);
    held_on.push_back(on.held_over_peak);
    growth.push_back((on.iteration_us - off.iteration_us) / off.iteration_us);
    std::printf(
        "pair %d: held/peak off %.3f on %.3f, iteration off %.0f us on %.0f us (live %.3f)\n", pair,
        off.held_over_peak, on.held_over_peak, off.iteration_us, on.iteration_us, LiveOverPeak());
  }
  EXPECT_GE(Median(held_off), 0.9);
  EXPECT_LE(Median(held_on), LiveOverPeak() + 0.05);
  EXPECT_LE(Median(growth), 0.03);
}

}  // namespace
}  // namespace sluice::testing
