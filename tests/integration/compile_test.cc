// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;

bool Says(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

/// A first job that compiles, with little held and nothing launched, while a second one waits. The
/// pool holds one of them and a half.
class Compile : public ::testing::Test {
 protected:
  /// The first one goes on after `silence_ms`, or, once it was given up, when the second one ended.
  void RunBoth(TestBed& bed, int silence_ms) {
    InputPipe input = MakeInputPipe();
    std::vector<std::string> command = {
        Program("WORKLOAD"), "--blocks", "16", "--block-bytes", "512KiB", "--base-bytes", "256KiB",
        "--iterations",      "60"};
    JobSpec second{.label = "second", .command = command};
    command.emplace_back("--compile");
    jobs_.Add(bed.Start({.label = "first", .command = command, .input = input.read_end.get()}));
    const auto observe = [&](cli::JobGroup& running) {
      if (running.jobs().size() > 1) {
        if (running.jobs()[1].ended()) input.write_end.reset();
        return;
      }
      if (!Says(running.jobs().front().out(), "compiling")) return;
      running.Add(bed.Start(second));
      ASSERT_TRUE(bed.log().Await(
          [&](const auto&) { return bed.log().Find(EventKind::kWait, 2).has_value(); }, 20'000));
      settled_ = bed.log().Await(
          [&](const auto&) { return bed.log().Find(EventKind::kSettle, 1).has_value(); },
          silence_ms);
      if (!settled_) input.write_end.reset();
    };
    Finish(jobs_, 60'000, observe);
    ASSERT_EQ(jobs_.jobs().size(), 2u);
    bed.StopDaemon();
    const scheduler::AuditReport report = bed.log().Audit();
    EXPECT_TRUE(report.ok()) << Violations(report);
  }
  static BedOptions Pool() {
    BedOptions options;
    options.pool = "12MiB";
    return options;
  }

  cli::JobGroup jobs_;
  bool settled_ = false;
};

TEST_F(Compile, SixSecondsAreNotTakenForTheEndOfItsGrowth) {
  TestBed bed(Pool());
  RunBoth(bed, 6'000);
  EXPECT_FALSE(settled_);
  for (const cli::JobProcess& job : jobs_.jobs()) EXPECT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_TRUE(Says(jobs_.jobs()[1].err(), "at most 120 s without a sign of life"))
      << Describe(jobs_.jobs()[1]);
}

// Nobody is waited for without end: who is silent for longer is taken to need what it holds, and
// both are told.
TEST_F(Compile, BeyondTheDaemonsPatienceItKeepsWhatItHolds) {
  BedOptions options = Pool();
  options.noded_flags = {"--patience", "1"};
  TestBed bed(options);
  RunBoth(bed, 20'000);
  EXPECT_TRUE(settled_);
  const cli::JobProcess& first = jobs_.jobs().front();
  EXPECT_TRUE(Says(first.err(), "nothing was heard of it for 1 s")) << Describe(first);
  for (const cli::JobProcess& job : jobs_.jobs()) EXPECT_TRUE(job.status().ok()) << Describe(job);
}

}  // namespace
}  // namespace sluice::testing
