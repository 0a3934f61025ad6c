// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "tests/hooks/hook_fixture.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// Jobs whose own blocks leave no run (scattered.cc), in a pool that their limits fill.
void RunJobs(const BedOptions& options, const std::vector<const char*>& seeds,
             const std::string& filter, bool all_pass) {
  TestBed bed(options);
  cli::JobGroup jobs;
  for (const char* seed : seeds) {
    jobs.Add(bed.Start({.label = std::string("scattered ") + seed,
                        .command = {Program("HOOKS"), "--gtest_filter=" + filter},
                        .run_flags = {"--limit", std::to_string(hooks::kLimit), "--request",
                                      std::to_string(hooks::kLimit)},
                        .environment = {{"SLUICE_TEST_SEED", seed}}}));
  }
  Finish(jobs);
  for (const cli::JobProcess& job : jobs.jobs()) {
    EXPECT_EQ(job.status().ok(), all_pass) << Describe(job);
  }
  ExpectAllGivenBack(bed);
}

BedOptions Options() {
  BedOptions options;
  options.gpu_memory = "96MiB";
  options.pool = "48MiB";
  options.unit = options.handle;
  return options;
}

TEST(Stitched, UnitsThatLieApartAreOneBlock) {
  RunJobs(Options(), {"1", "2"}, "Scattered.*", true);
}

TEST(Stitched, NotWhereAUnitIsPartOfAHandle) {
  BedOptions options = Options();
  options.pool = "24MiB";
  options.handle = "4MiB";
  RunJobs(options, {"1"}, "Scattered.UnitsThatLieApartAreOneBlock", false);
}

}  // namespace
}  // namespace sluice::testing
