// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "tests/support/peer.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;

BedOptions SmallPool() {
  BedOptions options;
  options.gpu_memory = "64MiB";
  options.pool = "16MiB";
  return options;
}

std::vector<std::string> Workload(std::vector<std::string> flags) {
  flags.insert(flags.begin(), Program("WORKLOAD"));
  return flags;
}

/// Lines of a job's standard error that the library wrote.
std::vector<std::string> SluiceLines(const cli::JobProcess& job) {
  std::vector<std::string> lines;
  for (const std::string& line : job.err()) {
    if (line.starts_with("sluice")) lines.push_back(line);
  }
  return lines;
}

bool Says(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST(Limits, MoreThanTheLimitIsRefusedAtOnceAndPeersDoNotNotice) {
  TestBed bed(SmallPool());
  Peer peer(bed);
  peer.AwaitProfile();
  const cli::JobProcess job =
      bed.Run({.label = "job",
               .command = Workload({"--over-limit", "6MiB", "--blocks", "4", "--iterations", "3"}),
               .run_flags = {"--limit", "4MiB"}});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_EQ(Value(job.out(), "over_limit"), "CUDA_ERROR_OUT_OF_MEMORY");
  const std::vector<std::string> said = SluiceLines(job);
  EXPECT_TRUE(Says(said, "limit")) << Describe(job);
  EXPECT_TRUE(Says(said, "4.0 MiB")) << Describe(job);
  peer.FinishAndCompare();
}

TEST(Limits, AtOnceMeansWithoutWaitingForOthers) {
  TestBed bed(SmallPool());
  const cli::JobProcess job = bed.Run({.label = "job",
                                       .command = Workload({"--over-limit", "12MiB", "--one-shot"}),
                                       .run_flags = {"--limit", "8MiB"}});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  // A denial needs one round trip; waiting for memory is bounded by seconds.
  EXPECT_LT(Number(job.out(), "over_limit_us"), 900'000u);
}

TEST(Limits, AJobThatExceedsItsLimitInItsCycleIsToldSo) {
  TestBed bed(SmallPool());
  Peer peer(bed);
  peer.AwaitProfile();
  const cli::JobProcess job =
      bed.Run({.label = "job",
               .command = Workload({"--blocks", "8", "--block-bytes", "512KiB", "--iterations",
                                    "40", "--grow-at", "20:4MiB"}),
               .run_flags = {"--limit", "6MiB"}});
  EXPECT_EQ(job.status().code, 4) << Describe(job);
  EXPECT_TRUE(Says(SluiceLines(job), "limit")) << Describe(job);
  peer.FinishAndCompare();
}

// Who holds memory is asked for patience, not for an excuse: the second job goes on as soon as the
// first one ends, and says meanwhile whom it waits for.
TEST(Limits, WhatIsLentOutIsWaitedForAndSaidAloud) {
  BedOptions options = SmallPool();
  options.noded_flags = {"--patience", "5"};
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobGroup group;
  group.Add(bed.Start({.label = "holder",
                       .command = Workload({"--one-shot", "--hold", "--block-bytes", "12MiB"}),
                       .run_flags = {"--limit", "13MiB"},
                       .input = input.read_end.get()}));
  bool waited = false;
  const auto observe = [&](cli::JobGroup& running) {
    const bool holding = Says(running.jobs().front().out(), "holding");
    if (holding && running.jobs().size() == 1) {
      running.Add(bed.Start({.label = "waiter",
                             .command = Workload({"--one-shot", "--block-bytes", "10MiB"}),
                             .run_flags = {"--limit", "11MiB"}}));
    }
    if (running.jobs().size() == 2 && !waited && !SluiceLines(running.jobs()[1]).empty()) {
      waited = true;
      // Longer than any bound that the daemon has for jobs that do nothing.
      EXPECT_FALSE(bed.log().Await(
          [&](const auto&) { return bed.log().Find(EventKind::kLeave, 2).has_value(); }, 10'000));
      input.write_end.reset();
    }
  };
  Finish(group, 60'000, observe);
  ASSERT_EQ(group.jobs().size(), 2u);
  const cli::JobProcess& waiter = group.jobs()[1];
  EXPECT_TRUE(group.jobs()[0].status().ok()) << Describe(group.jobs()[0]);
  EXPECT_TRUE(waiter.status().ok()) << Describe(waiter);
  const std::vector<std::string> said = SluiceLines(waiter);
  ASSERT_TRUE(waited) << Describe(waiter);
  EXPECT_TRUE(Says({said.front()}, "wait")) << said.front();
  EXPECT_TRUE(Says({said.front()}, "workload")) << "does not name the holder: " << said.front();
  EXPECT_TRUE(Says({said.front()}, "MiB")) << said.front();
}

TEST(Limits, JobsThatDoNotFitTogetherWaitForEachOtherAndGoOn) {
  TestBed bed(SmallPool());
  cli::JobGroup group;
  for (const char* seed : {"1", "2"}) {
    group.Add(bed.Start({.label = seed,
                         .command = Workload({"--blocks", "20", "--block-bytes", "512KiB",
                                              "--iterations", "60", "--seed", seed})}));
  }
  Finish(group);
  for (const cli::JobProcess& job : group.jobs()) {
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    EXPECT_EQ(Value(job.out(), "mismatches"), "0");
  }
  bed.StopDaemon();
  const scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  size_t waits = 0;
  for (const scheduler::Record& record : bed.log().Read()) {
    waits += record.event == scheduler::EventKind::kWait;
  }
  EXPECT_GT(waits, 0u);
}

TEST(Limits, WithoutADaemonTheFirstAllocationFailsWithOneLine) {
  BedOptions options = SmallPool();
  options.start_noded = false;
  const TestBed bed(options);
  const cli::JobProcess job =
      bed.Run({.label = "job",
               .command = Workload({"--one-shot"}),
               .environment = {{"SLUICE_SOCKET", bed.work().File("nobody.sock")},
                               {"LD_PRELOAD", Program("LIBRARY")}},
               .under_sluice = false});
  EXPECT_EQ(job.status().code, 4) << Describe(job);
  const std::vector<std::string> said = SluiceLines(job);
  ASSERT_EQ(said.size(), 1u) << Describe(job);
  EXPECT_NE(said.front().find("nobody.sock"), std::string::npos) << said.front();
}

// Dropping the variable that names the grant must not be a way to the whole GPU.
TEST(Limits, WithoutASocketTheFirstAllocationFailsWithOneLine) {
  const TestBed bed(SmallPool());
  const cli::JobProcess job = bed.Run({.label = "job",
                                       .command = Workload({"--one-shot"}),
                                       .environment = {{"LD_PRELOAD", Program("LIBRARY")}},
                                       .under_sluice = false});
  EXPECT_EQ(job.status().code, 4) << Describe(job);
  const std::vector<std::string> said = SluiceLines(job);
  ASSERT_EQ(said.size(), 1u) << Describe(job);
  EXPECT_NE(said.front().find("SLUICE_SOCKET"), std::string::npos) << said.front();
}

}  // namespace
}  // namespace sluice::testing
