// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

std::vector<std::string> Workload(std::vector<std::string> flags) {
  flags.insert(flags.begin(), Program("WORKLOAD"));
  return flags;
}

// CUDA promises nothing to a forked child. What counts is that it speaks to nobody in the parent's
// name.
TEST(Fork, AChildThatCallsTheDriverDoesNotDisturbItsParent) {
  const std::vector<std::string> cycle = {"--iterations", "30", "--seed", "5"};
  std::vector<std::string> forking = cycle;
  forking.insert(forking.end(), {"--use-in-child", "70"});
  TestBed bed;
  const cli::JobProcess alone =
      bed.Run({.label = "alone", .command = Workload(cycle), .under_sluice = false});
  ASSERT_TRUE(alone.status().ok()) << Describe(alone);
  InputPipe input = MakeInputPipe();
  const cli::JobProcess job =
      bed.Run({.label = "job", .command = Workload(forking), .input = input.read_end.get()});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_NE(Value(job.out(), "forked"), "");
  EXPECT_EQ(Value(job.out(), "digest"), Value(alone.out(), "digest"));
  EXPECT_EQ(Value(job.out(), "mismatches"), "0");
  EXPECT_NE(Value(job.out(), "child_alloc"), "CUDA_SUCCESS") << Describe(job);
  input = {};
  bed.StopDaemon();
  const scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);
}

// One session per job: a program that is started by a job's process while that one uses the GPU is
// told so, and the first goes on.
TEST(Fork, AnExecutedChildWhileTheParentHasASessionIsRefusedInOneLine) {
  TestBed bed;
  const std::string script =
      "coproc first { \"$0\" --one-shot --hold; }; "
      "while read -r line <&\"${first[0]}\"; do [ \"$line\" = holding ] && break; done; "
      "\"$0\" --one-shot; echo \"second=$?\"; pid=$first_PID; "
      "exec {first[1]}>&-; wait \"$pid\"; echo \"first=$?\"";
  const cli::JobProcess job =
      bed.Run({.label = "job", .command = {Program("BASH"), "-c", script, Program("WORKLOAD")}});
  EXPECT_EQ(Value(job.out(), "first"), "0") << Describe(job);
  EXPECT_EQ(Value(job.out(), "second"), "4") << Describe(job);
  const auto lines = std::count_if(job.err().begin(), job.err().end(), [](const std::string& line) {
    return line.starts_with("sluice") && line.find("process") != std::string::npos;
  });
  EXPECT_EQ(lines, 1) << Describe(job);
}

TEST(Fork, ProgramsOfOneJobThatFollowEachOtherEachGetASession) {
  TestBed bed;
  const std::string script = "\"$0\" --one-shot && \"$0\" --one-shot; echo \"both=$?\"";
  const cli::JobProcess job =
      bed.Run({.label = "job", .command = {Program("BASH"), "-c", script, Program("WORKLOAD")}});
  EXPECT_EQ(Value(job.out(), "both"), "0") << Describe(job);
}

// What it held was given back with its context, so its next session need not wait for its end.
TEST(Fork, AProcessThatReleasesItsContextBeginsAnewInTheNext) {
  TestBed bed;
  const std::vector<std::string> lives = {"--lives", "3", "--iterations", "12", "--seed", "9"};
  const cli::JobProcess alone =
      bed.Run({.label = "alone", .command = Workload(lives), .under_sluice = false});
  const cli::JobProcess job = bed.Run({.label = "job", .command = Workload(lives)});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_EQ(std::count_if(job.out().begin(), job.out().end(),
                          [](const std::string& line) { return line.starts_with("digest="); }),
            3);
  EXPECT_EQ(Value(job.out(), "digest"), Value(alone.out(), "digest"));
  bed.StopDaemon();
  const std::vector<scheduler::Record>& records = bed.log().Read();
  const auto count = [&](scheduler::EventKind kind) {
    return std::count_if(records.begin(), records.end(),
                         [&](const scheduler::Record& record) { return record.event == kind; });
  };
  EXPECT_EQ(count(scheduler::EventKind::kAdmit), 3);
  EXPECT_EQ(count(scheduler::EventKind::kLeave), 3);
  EXPECT_EQ(count(scheduler::EventKind::kDeath), 0) << "nothing had to be quarantined";
  const scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);
}

// Nothing proves that the driver is done with the old program's context: no memory, and said at
// once.
TEST(Fork, AProgramExecutedInPlaceWhileMemoryIsHeldIsRefusedInOneLine) {
  TestBed bed;
  const cli::JobProcess job =
      bed.Run({.label = "job", .command = Workload({"--one-shot", "--exec-holding"})});
  EXPECT_EQ(job.status().code, 4) << Describe(job);
  const auto lines = std::count_if(job.err().begin(), job.err().end(), [](const std::string& line) {
    return line.starts_with("sluice") && line.find("left GPU memory behind") != std::string::npos;
  });
  EXPECT_EQ(lines, 1) << Describe(job);
}

}  // namespace
}  // namespace sluice::testing
