// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/hooks/hook_fixture.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// Two jobs that call everything at random (churn.cc), each checking itself at its quiet points;
/// here that limits hold at every moment, and that nothing is left.
TEST(Accounting, LedgerProgramAndDeviceAgree) {
  const char* calls = ::getenv("SLUICE_CALLS");
  BedOptions options;
  options.gpu_memory = "128MiB";
  options.pool = "48MiB";
  options.noded_flags = {"--context", std::to_string(hooks::kContext)};
  TestBed bed(options);
  cli::JobGroup jobs;
  for (const char* seed : {"1", "2"}) {
    jobs.Add(
        bed.Start({.label = std::string("churn ") + seed,
                   .command = {Program("HOOKS"), "--gtest_filter=Churn.Accounting"},
                   .run_flags = {"--limit", "24MiB", "--request", "24MiB"},
                   .environment = {{"SLUICE_TEST_SEED", seed},
                                   {"SLUICE_TEST_CALLS", calls == nullptr ? "10000" : calls}}}));
  }
  Finish(jobs, calls == nullptr ? 300'000 : 3'000'000);
  for (const cli::JobProcess& job : jobs.jobs()) {
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    EXPECT_GT(Number(job.out(), "refused"), 0u) << "no limit was ever reached";
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
