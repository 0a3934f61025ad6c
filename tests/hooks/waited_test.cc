// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "tests/hooks/hook_fixture.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// The driver memory of a job (waited.cc) that the library waits for.
TEST(Waited, WhatIsChargedFollows) {
  BedOptions options;
  options.gpu_memory = "96MiB";
  options.unit = options.handle;
  options.noded_flags = {"--context", std::to_string(hooks::kContext)};
  TestBed bed(options);
  const cli::JobProcess job = bed.Run({.label = "waited",
                                       .command = {Program("HOOKS"), "--gtest_filter=Waited.*"},
                                       .run_flags = {"--limit", std::to_string(hooks::kLimit)}});
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);
  const scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  const nlohmann::json status = bed.Status();
  EXPECT_EQ(status.at("outside_bytes"), 0);
  EXPECT_EQ(status.at("free_bytes"), status.at("pool_bytes"));
}

}  // namespace
}  // namespace sluice::testing
