// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "tests/hooks/hook_fixture.h"
#include "tests/support/test_bed.h"

// Groups of tests in the program `hooks` that run as one job by itself: no kernel touches what it
// does not hold, the ledger's log is sound, and nothing is left.

namespace sluice::testing {
namespace {

void ExpectAllWell(const std::string& tests, BedOptions options = {}) {
  options.gpu_memory = "96MiB";
  options.noded_flags = {"--context", std::to_string(hooks::kContext)};
  TestBed bed(options);
  const cli::JobProcess job = bed.Run({.label = "alone",
                                       .command = {Program("HOOKS"), "--gtest_filter=" + tests},
                                       .run_flags = {"--limit", std::to_string(hooks::kLimit)}});
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  ExpectAllGivenBack(bed);
}

BedOptions UnitsAreHandles() {
  BedOptions options;
  options.unit = options.handle;
  return options;
}

/// What is claimed of functions that are not hooked (intercept/hooks/passed.def).
TEST(Alone, TheDriversOwnAnswersAreRight) { ExpectAllWell("Passed*", UnitsAreHandles()); }

TEST(Alone, TheSessionGoesOnInAnotherContext) { ExpectAllWell("Moving.*"); }

TEST(Alone, WhatIsChargedFollowsWhenTheLibraryWaits) {
  ExpectAllWell("Waited.*", UnitsAreHandles());
}

}  // namespace
}  // namespace sluice::testing
