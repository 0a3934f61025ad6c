// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

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
  EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);
  const scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  const nlohmann::json status = bed.Status();
  EXPECT_EQ(status.at("outside_bytes"), 0);
  EXPECT_EQ(status.at("free_bytes"), status.at("pool_bytes"));
}

}  // namespace
}  // namespace sluice::testing
