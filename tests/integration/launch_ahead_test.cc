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
/// iteration fits into the launch queue, and nobody synchronises. Memory grows slowly and is given
/// up fast, as seen by the GPU: without a bound all of it is held from the start of the iteration.
/// A block is as large as the groups that memory is handed out in, so that what is seen is the work
/// of the credit alone.
constexpr uint64_t kBlocks = 9;
constexpr uint64_t kUnit = 64 << 10;
constexpr uint64_t kBlockBytes = 8 * kUnit;
constexpr uint64_t kBaseBytes = kUnit;
constexpr uint64_t kLaunchesUp = 100;
constexpr uint64_t kLaunchesDown = 6;
constexpr uint64_t kIterations = 24;
constexpr char kMachine[] =
    "launch_ns = 10000\n"
    "launch_queue = 1024\n"
    "cost.default = 200000\n";

struct Outcome {
  double held_over_peak = 0;
  double iteration_us =
      0;  // by the device clock: kernels take their declared time, idle time is added
};

/// Time-weighted, over the second half of the iterations: the first ones are spent on learning the
/// cycle.
double HeldOverPeak(const std::vector<scheduler::Record>& records) {
  std::vector<uint64_t> troughs;
  for (const scheduler::Record& record : records) {
    if (record.event == scheduler::EventKind::kTrough) troughs.push_back(record.t_ns);
  }
  EXPECT_GE(troughs.size(), kIterations / 2);
  if (troughs.size() < 2) return 0;
  const uint64_t from = troughs[troughs.size() / 2];
  const uint64_t to = troughs.back();
  const scheduler::AuditReport report = scheduler::Audit(records, records.size());
  EXPECT_TRUE(report.ok()) << Violations(report);
  double area = 0;
  uint64_t peak = 0;
  for (size_t i = 0; i + 1 < report.series.size(); ++i) {
    const uint64_t begin = std::clamp(report.series[i].t_ns, from, to);
    const uint64_t end = std::clamp(report.series[i + 1].t_ns, from, to);
    uint64_t held = 0;
    for (const auto& [job, units] : report.series[i].held) held += units;
    area += static_cast<double>(held) * static_cast<double>(end - begin);
    if (end > begin) peak = std::max(peak, held);
  }
  return area / static_cast<double>(to - from) / static_cast<double>(peak);
}

Outcome Measure(bool credit) {
  BedOptions options;
  options.machine = kMachine;
  options.unit = std::to_string(kUnit);
  options.noded_flags = {"--lend", "eager", "--credit", credit ? "on" : "off"};
  options.oracle = false;
  TestBed bed(options);
  const cli::JobProcess job = bed.Run(
      {.label = credit ? "credit on" : "credit off",
       .command = {Program("WORKLOAD"), "--iterations", std::to_string(kIterations), "--blocks",
                   std::to_string(kBlocks), "--block-bytes", std::to_string(kBlockBytes),
                   "--base-bytes", std::to_string(kBaseBytes), "--launches-per-block",
                   std::to_string(kLaunchesUp), "--launches-down", std::to_string(kLaunchesDown)}});
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_LT(Number(job.out(), "launches_per_iteration"), 1024u);
  bed.StopDaemon();
  return {HeldOverPeak(bed.log().Read()), std::stod(Value(job.out(), "iteration_us"))};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Mean over the peak of what is live while each kernel runs: blocks rise and fall one by one over
/// a base.
constexpr double LiveOverPeak() {
  constexpr double kBase = kBaseBytes;
  constexpr double kBlock = kBlockBytes;
  constexpr double kCount = kBlocks;
  return (kBase + kBlock * (kCount + 1) / 2) / (kBase + kBlock * kCount);
}
static_assert(kBaseBytes + kBlocks * kBlockBytes >= 64 * kUnit);
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
