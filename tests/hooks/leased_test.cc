// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/hooks/hook_fixture.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// Two jobs that take physical memory of their own (segments.cc) from one pool.
TEST(Leased, PhysicalMemoryComesFromThePool) {
  BedOptions options;
  options.gpu_memory = "96MiB";
  options.pool = "48MiB";
  options.unit = options.handle;
  TestBed bed(options);
  cli::JobGroup jobs;
  for (const char* seed : {"1", "2"}) {
    jobs.Add(
        bed.Start({.label = std::string("segments ") + seed,
                   .command = {Program("HOOKS"), "--gtest_filter=Segments.*"},
                   .run_flags = {"--limit", std::to_string(hooks::kLimit), "--request",
                                 std::to_string(hooks::kLimit)},
                   .environment = {{"SLUICE_TEST_SEED", seed}, {"SLUICE_PHYSICAL", "lease"}}}));
  }
  Finish(jobs);
  for (const cli::JobProcess& job : jobs.jobs()) {
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    EXPECT_GT(Number(job.out(), "refused"), 0u) << "the limit was never reached";
    EXPECT_GT(Number(job.out(), "grown"), 100u);
  }
  ExpectAllGivenBack(bed);
}

/// A job whose physical memory outlives its context (outliving.cc), beside a pool that leases it.
void ExpectCharged(bool restarts) {
  BedOptions options;
  options.gpu_memory = "96MiB";
  options.pool = "48MiB";
  options.unit = options.handle;
  options.keeper = restarts;
  options.noded_flags = {"--context", std::to_string(hooks::kContext)};
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs;
  jobs.Add(bed.Start({.label = "outliving",
                      .command = {Program("HOOKS"), "--gtest_filter=Outliving.*"},
                      .run_flags = {"--limit", std::to_string(hooks::kLimit)},
                      .input = input.read_end.get()}));
  Finish(jobs, 60'000, [&](cli::JobGroup& running) {
    const auto& out = running.jobs().front().out();
    if (!input.write_end.valid() || std::find(out.begin(), out.end(), "between") == out.end()) {
      return;
    }
    if (restarts) bed.RestartDaemon();
    // Others ask for what the job has: the reserve is not theirs.
    EXPECT_EQ(bed.Status().at("outside_bytes"), 2 * hooks::kUnit);
    input.write_end.reset();
  });
  EXPECT_TRUE(jobs.jobs().front().status().ok()) << Describe(jobs.jobs().front());
  EXPECT_FALSE(input.write_end.valid());
  EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);
  for (const auto& log : bed.logs()) {
    const scheduler::AuditReport report = log->Audit();
    EXPECT_TRUE(report.ok()) << Violations(report);
  }
  EXPECT_EQ(bed.Status().at("outside_bytes"), 0);
}

TEST(Leased, WhatOutlivesItsContextStaysCharged) { ExpectCharged(false); }
TEST(Leased, WhatOutlivesItsContextStaysChargedBehindARestart) { ExpectCharged(true); }

}  // namespace
}  // namespace sluice::testing
