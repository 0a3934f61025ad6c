// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/hooks/hook_fixture.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// What a job (second_gpu.cc) meets that uses a GPU which Sluice does not manage.
class SecondGpu : public ::testing::Test {
 protected:
  /// Runs a test of the job, which has to pass and to say each of these once.
  static void Run(const std::string& name, const std::vector<std::string>& lines) {
    BedOptions options;
    options.gpus = 2;
    options.unit = options.handle;
    options.noded_flags = {"--context", std::to_string(hooks::kContext)};
    TestBed bed(options);
    const cli::JobProcess job =
        bed.Run({.label = name,
                 .command = {Program("HOOKS"), "--gtest_filter=SecondGpu." + name},
                 .run_flags = {"--limit", std::to_string(hooks::kLimit)}});
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    for (const std::string& line : lines) {
      EXPECT_EQ(std::count_if(
                    job.err().begin(), job.err().end(),
                    [&](const std::string& said) { return said.find(line) != std::string::npos; }),
                1)
          << line << "\n"
          << Describe(job);
    }
    EXPECT_EQ(bed.GpuStats(0).oracle_violations, 0u);
    EXPECT_EQ(bed.GpuStats(1).memory_used, 0u);
    const scheduler::AuditReport report = bed.log().Audit();
    EXPECT_TRUE(report.ok()) << Violations(report);
    const nlohmann::json status = bed.Status();
    EXPECT_EQ(status.at("outside_bytes"), 0);
    EXPECT_EQ(status.at("free_bytes"), status.at("pool_bytes"));
  }
};

TEST_F(SecondGpu, IsForKernelsAloneBesideTheFirst) {
  Run("BesideTheFirst",
      {"the job's memory is on device 0; allocations on device 1 are not supported"});
}

TEST_F(SecondGpu, WorksOnWhileSessionsEnd) { Run("WorksOnWhileSessionsEnd", {}); }

TEST_F(SecondGpu, MayBeLookedAtFirst) {
  Run("LooksThereFirst", {"the program uses another GPU (its device 1) than the one this job was "
                          "registered for"});
}

TEST_F(SecondGpu, GivesNothingFromItsPools) {
  Run("HasPoolsToo",
      {"the job's memory is on device 0; allocations on device 1 are not supported"});
}

TEST_F(SecondGpu, IsRefusedAlone) {
  Run("Alone", {"the program uses another GPU (its device 1) than the one this job was registered "
                "for"});
}

}  // namespace
}  // namespace sluice::testing
