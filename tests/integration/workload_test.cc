// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

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

TEST_F(WorkloadTest, GrowsWhenItIsTold) {
  InputPipe input = MakeInputPipe();
  const auto tell = [&] { ASSERT_EQ(::write(input.write_end.get(), "\n", 1), 1); };
  cli::JobGroup group;
  group.Add(
      bed_.Start({.label = "workload",
                  .command = {Program("WORKLOAD"), "--blocks", "4", "--block-bytes", "64KiB",
                              "--base-bytes", "32KiB", "--until-eof", "--grow-when-told", "128KiB"},
                  .under_sluice = false,
                  .input = input.read_end.get()}));
  tell();
  Finish(group, 60'000, [&](cli::JobGroup& running) {
    const std::vector<std::string>& said = running.jobs().front().out();
    const bool stopped = std::find(said.begin(), said.end(), "grows when told") != said.end();
    if (!stopped || !input.write_end.valid()) return;
    tell();
    input.write_end.reset();
  });
  const cli::JobProcess& job = group.jobs().front();
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_EQ(Number(job.out(), "peak_bytes"), 4u * 65536 + 32768 + 131072);
  EXPECT_EQ(Number(job.out(), "mismatches"), 0u);
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
