// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// What `sluice run` does to a program's environment, and what it says before it starts it.
class Launch : public ::testing::Test {
 protected:
  static bool Says(const std::vector<std::string>& lines, std::string_view text) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
  cli::JobProcess Run(std::vector<std::string> flags, std::vector<std::string> command,
                      std::vector<std::pair<std::string, std::string>> environment = {}) const {
    cli::JobProcess job = bed_.Run({.label = "job",
                                    .command = std::move(command),
                                    .run_flags = std::move(flags),
                                    .environment = std::move(environment)});
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    return job;
  }
  static std::vector<std::string> Show() {
    return {Program("BASH"), "-c",
            "echo \"$PYTORCH_CUDA_ALLOC_CONF|$TF_GPU_ALLOCATOR|$XLA_PYTHON_CLIENT_PREALLOCATE\""};
  }

  TestBed bed_;
};

TEST_F(Launch, FrameworksAreAskedForStreamOrderedMemory) {
  const cli::JobProcess job = Run({}, Show());
  EXPECT_EQ(job.out().at(0), "backend:cudaMallocAsync|cuda_malloc_async|false");
  EXPECT_TRUE(job.err().empty()) << Describe(job);
}

TEST_F(Launch, OrAsTheUserWants) {
  EXPECT_EQ(Run({"--frameworks", "none"}, Show()).out().at(0), "||");
  EXPECT_EQ(Run({"--frameworks", "expandable"}, Show()).out().at(0),
            "expandable_segments:True|cuda_malloc_async|false");
  const cli::JobProcess job = Run({"--verbose"}, Show(), {{"TF_GPU_ALLOCATOR", "mine"}});
  EXPECT_EQ(job.out().at(0), "backend:cudaMallocAsync|mine|false");
  EXPECT_TRUE(Says(job.err(), "sluice: set PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"));
  EXPECT_TRUE(Says(job.err(), "sluice: kept TF_GPU_ALLOCATOR=mine, which was set already"));
}

// The daemon of this test lends less than a handle.
TEST_F(Launch, ExpandableSegmentsThatTheDaemonDoesNotLendAreTold) {
  const cli::JobProcess job = Run({"--frameworks", "expandable"}, Show());
  ASSERT_EQ(job.err().size(), 1u) << Describe(job);
  EXPECT_TRUE(Says(job.err(), "lease unit of 256.0 KiB and handles of 2.0 MiB")) << Describe(job);
  EXPECT_TRUE(Says(job.err(), "--lease-unit 2MiB --handle 2MiB")) << Describe(job);
}

// One that `sluice run` starts for such a job does.
TEST(LaunchAlone, ADaemonForExpandableSegmentsLendsThem) {
  BedOptions options;
  options.start_noded = false;
  const TestBed bed(options);
  const cli::JobProcess job =
      bed.Run({.label = "job",
               .command = {Program("BIN") + "/sluice", "status", "--json", "--runtime-dir",
                           bed.runtime_dir()},
               .run_flags = {"--frameworks", "expandable", "--pool", "16MiB"}});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_TRUE(job.err().empty()) << Describe(job);
  const auto status = nlohmann::json::parse(job.out().at(0));
  EXPECT_EQ(status.at("unit_bytes"), 2 << 20);
  EXPECT_EQ(status.at("handle_bytes"), 2 << 20);
}

TEST_F(Launch, AProgramThatCannotBeSeenIsNamed) {
  const cli::JobProcess job = Run({}, {Program("STATIC")});
  ASSERT_EQ(job.err().size(), 1u) << Describe(job);
  EXPECT_TRUE(Says(job.err(), "it is linked statically, so the library cannot be loaded into it"));
}

// A program that has lost the library: it reaches the driver, and the driver tells.
TEST_F(Launch, AProgramOnTheGpuWithoutASessionIsShown) {
  InputPipe input = MakeInputPipe();
  cli::JobGroup group;
  group.Add(bed_.Start(
      {.label = "job",
       .command = {Program("BASH"), "-c", "exec env -u LD_PRELOAD \"$0\" --one-shot --hold",
                   Program("WORKLOAD")},
       .input = input.read_end.get()}));
  bool shown = false;
  Finish(group, 60'000, [&](cli::JobGroup& running) {
    if (shown || !Says(running.jobs().front().out(), "holding")) return;
    shown = true;
    EXPECT_EQ(bed_.Status().at("jobs").at(0).at("unseen"), true);
    const cli::CommandOutput table = bed_.Sluice({"status", "--runtime-dir", bed_.runtime_dir()});
    EXPECT_NE(table.out.find("on the GPU without a session"), std::string::npos) << table.out;
    input.write_end.reset();
  });
  EXPECT_TRUE(shown);
  bed_.StopDaemon();
  std::ifstream log(bed_.daemon_log());
  const std::string text((std::istreambuf_iterator<char>(log)), {});
  EXPECT_NE(text.find("job 1: ended without having opened a session"), std::string::npos) << text;
}

TEST_F(Launch, AProgramWithASessionIsNot) {
  InputPipe input = MakeInputPipe();
  cli::JobGroup group;
  group.Add(bed_.Start({.label = "job",
                        .command = {Program("WORKLOAD"), "--one-shot", "--hold"},
                        .input = input.read_end.get()}));
  Finish(group, 60'000, [&](cli::JobGroup& running) {
    if (!Says(running.jobs().front().out(), "holding") || !input.write_end.valid()) return;
    EXPECT_EQ(bed_.Status().at("jobs").at(0).at("unseen"), false);
    input.write_end.reset();
  });
}

}  // namespace
}  // namespace sluice::testing
