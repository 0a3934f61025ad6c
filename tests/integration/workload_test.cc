// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// The tool that the other tests measure with, without Sluice: what it says must be worth
/// something.
class WorkloadTest : public ::testing::Test {
 protected:
  WorkloadTest() : bed_(Options()) {}
  static BedOptions Options() {
    BedOptions options;
    options.start_noded = false;
    return options;
  }
  cli::JobProcess Run(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), Program("WORKLOAD"));
    return bed_.Run({.label = "workload", .command = flags, .under_sluice = false});
  }
  std::string Digest(const std::vector<std::string>& flags) const {
    const cli::JobProcess job = Run(flags);
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    EXPECT_EQ(Value(job.out(), "mismatches"), "0");
    return Value(job.out(), "digest");
  }

  TestBed bed_;
};

TEST_F(WorkloadTest, DigestDependsOnTheSeedOnly) {
  const std::string digest = Digest({"--iterations", "8", "--launches-per-block", "2"});
  EXPECT_EQ(Digest({"--iterations", "8", "--launches-per-block", "2", "--sync", "iteration"}),
            digest);
  EXPECT_EQ(Digest({"--iterations", "8", "--launches-per-block", "2", "--sync-alloc"}), digest);
  EXPECT_EQ(Digest({"--iterations", "8", "--launches-per-block", "2", "--stream-count", "3"}),
            digest);
  EXPECT_NE(Digest({"--iterations", "8", "--launches-per-block", "2", "--seed", "2"}), digest);
}

TEST_F(WorkloadTest, EveryWordOfEveryBlockIsChecked) {
  const cli::JobProcess job = Run({"--iterations", "3", "--blocks", "5", "--block-bytes", "64KiB",
                                   "--base-bytes", "32KiB", "--launches-per-block", "2"});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  // A block is compared once on its way up and twice on its way down; the base once in each
  // iteration, and at the end.
  EXPECT_EQ(Number(job.out(), "words"), 3u * (5 * 3 * 8192 + 4096) + 4096);
  EXPECT_EQ(Number(job.out(), "launches_per_iteration"), 21u);
  EXPECT_EQ(Number(job.out(), "peak_bytes"), 5u * 65536 + 32768);
}

TEST_F(WorkloadTest, EndsAtTheOperationAskedFor) {
  const cli::JobProcess job = Run({"--kill-self-at-op", "100"});
  EXPECT_EQ(job.status().signal, SIGKILL);
  EXPECT_EQ(Value(job.out(), "digest"), "");
}

TEST_F(WorkloadTest, SaysOutOfMemory) {
  const cli::JobProcess job = Run({"--one-shot", "--block-bytes", "100MiB"});
  EXPECT_EQ(job.status().code, 4) << Describe(job);
  EXPECT_EQ(Run({"--over-limit", "1MiB"}).status().code, 6);
}

TEST_F(WorkloadTest, RefusesBadArgumentsInOneLine) {
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--bogus", "1"}, {"--blocks", "many"}, {"--grow-at", "3"}, {"--sync", "always"}}) {
    const cli::JobProcess job = Run(flags);
    EXPECT_EQ(job.status().code, 2);
    ASSERT_EQ(job.err().size(), 1u) << Describe(job);
    EXPECT_NE(job.err().front().find(flags.front()), std::string::npos) << job.err().front();
  }
}

}  // namespace
}  // namespace sluice::testing
