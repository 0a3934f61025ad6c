// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// Bit-equal results prove something only if a wrong hand-over would show. These tests break the
/// hand-over on purpose.
struct Outcome {
  uint64_t oracle_violations = 0;
  uint64_t mismatches = 0;
  uint64_t lent_bytes = 0;
};

Outcome Share(const std::string& noded, const std::vector<std::string>& faults) {
  BedOptions options;
  options.gpu_memory = "64MiB";
  options.pool = "16MiB";
  options.noded = noded;
  options.noded_flags = faults;
  // Kernels much slower than launches: the CPU frees long before the GPU is done.
  options.machine = "cost.default = 300000\nlaunch_ns = 2000\n";
  TestBed bed(options);
  cli::JobGroup group;
  for (const char* seed : {"1", "2"}) {
    // Few units go back before the GPU has passed them; here all do.
    group.Add(bed.Start({.label = seed,
                         .command = {Program("WORKLOAD"), "--blocks", "20", "--block-bytes",
                                     "512KiB", "--iterations", "120", "--seed", seed},
                         .environment = {{"SLUICE_DEBUG_EARLY_RELEASE", "1"}}}));
  }
  Finish(group);
  Outcome outcome;
  for (const cli::JobProcess& job : group.jobs()) {
    // 5: wrong bytes, which is what a broken hand-over may lead to.
    EXPECT_TRUE(job.status().code == 0 || job.status().code == 5) << Describe(job);
    outcome.mismatches += Number(job.out(), "mismatches");
  }
  bed.StopDaemon();
  outcome.lent_bytes = bed.log().Audit().lent_bytes_within_iterations;
  outcome.oracle_violations = bed.GpuStats().oracle_violations;
  return outcome;
}

TEST(SeededBugs, IgnoredFencesAreSeen) {
  const Outcome outcome = Share(Program("NODED_WITH_FAULTS"), {"--fault", "ignore_fences"});
  EXPECT_GT(outcome.lent_bytes, 0u);
  EXPECT_GT(outcome.oracle_violations, 0u);
  EXPECT_GT(outcome.mismatches, 0u) << "poisoned and foreign bytes were not read";
}

TEST(SeededBugs, TheSameWithoutTheFaultIsClean) {
  for (const std::string& noded : {std::string(), Program("NODED_WITH_FAULTS")}) {
    const Outcome outcome = Share(noded, {});
    EXPECT_GT(outcome.lent_bytes, 0u);
    EXPECT_EQ(outcome.oracle_violations, 0u);
    EXPECT_EQ(outcome.mismatches, 0u);
  }
}

std::string DigestOfUseAfterFree(bool poison, bool wrong) {
  const TestBed bed;
  std::vector<std::string> command = {Program("WORKLOAD"), "--iterations", "5"};
  if (wrong) command.push_back("--use-after-free");
  JobSpec spec = {.label = "job", .command = command};
  if (poison) spec.environment = {{"SLUICE_DEBUG_POISON", "1"}};
  const cli::JobProcess job = bed.Run(spec);
  EXPECT_EQ(job.status().code, poison && wrong ? 5 : 0) << Describe(job);
  return Value(job.out(), "digest");
}

// A block that is read after it was freed happens to hold its old bytes, on a GPU as well as here.
TEST(SeededBugs, TheLibrarysPoisonChangesWhatAUseAfterFreeReads) {
  const std::string clean = DigestOfUseAfterFree(false, false);
  EXPECT_EQ(DigestOfUseAfterFree(true, false), clean);
  EXPECT_EQ(DigestOfUseAfterFree(false, true), clean);
  EXPECT_NE(DigestOfUseAfterFree(true, true), clean);
}

}  // namespace
}  // namespace sluice::testing
