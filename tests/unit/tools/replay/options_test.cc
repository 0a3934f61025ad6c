// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/options.h"

#include <gtest/gtest.h>

namespace sluice::replay {
namespace {

std::string ErrorOf(const std::vector<std::string>& arguments) {
  const Result<Options> options = ParseOptions(arguments);
  return options.ok() ? "" : options.status().message();
}

TEST(ReplayOptionsTest, ReadsATraceAndItsOptions) {
  const Result<Options> options =
      ParseOptions({"a.trace", "--batch=32", "--iterations", "7", "--pattern", "sparse", "--gap-ms",
                    "4", "--time-scale", "0.5", "--corrupt", "12", "--sync-every", "2", "--json"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->trace, "a.trace");
  EXPECT_EQ(options->batch, 32u);
  EXPECT_EQ(options->run.iterations, 7u);
  EXPECT_EQ(options->run.pattern, Pattern::kSparse);
  EXPECT_EQ(options->run.gap_ns, 2'000'000u);
  EXPECT_EQ(options->run.corrupt, BlockId{12});
  EXPECT_EQ(options->run.sync_every, 2u);
  EXPECT_TRUE(options->json);
}

TEST(ReplayOptionsTest, NamesTheOptionAndWhatItAllows) {
  EXPECT_EQ(ErrorOf({}), "TRACE must be one file, not 0");
  EXPECT_EQ(ErrorOf({"a", "b", "--batch", "1"}), "TRACE must be one file, not 2");
  EXPECT_EQ(ErrorOf({"a"}), "--batch is missing: samples per iteration");
  EXPECT_EQ(ErrorOf({"a", "--batch", "many"}),
            "--batch must be a whole number from 1 to 1048576, not 'many'");
  EXPECT_EQ(ErrorOf({"a", "--batch", "1", "--size-scale", "-1"}),
            "--size-scale must be a number from 0 to 16, not '-1'");
  EXPECT_EQ(ErrorOf({"a", "--batch", "1", "--pattern", "half"}),
            "--pattern must be full, sparse or off, not 'half'");
  EXPECT_EQ(ErrorOf({"a", "--batch", "1", "--json=yes"}), "--json must be no value, not 'yes'");
  EXPECT_EQ(ErrorOf({"a", "--batch", "1", "--pattern", "off", "--corrupt", "1"}),
            "--corrupt needs --pattern full or sparse");
  const std::string unknown = ErrorOf({"a", "--bogus"});
  EXPECT_NE(unknown.find("'--bogus'"), std::string::npos);
  EXPECT_NE(unknown.find("--size-scale"), std::string::npos);
}

TEST(ReplayOptionsTest, TheMachineSaysWhatTheOptionsLeaveOpen) {
  Options options;
  options.machine = "m";
  options.flops_per_s = 5;
  Machine machine;
  machine.flops_per_s = 7;
  machine.memory_bytes_per_s = 9;
  machine.default_cost.base_ns = 4000;
  const Result<Scaling> both = ScalingOf(options, &machine);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->flops_per_s, 5);
  EXPECT_EQ(both->bytes_per_s, 9);
  EXPECT_EQ(both->floor_ns, 4000);
  options.floor_us = 1;
  EXPECT_EQ(ScalingOf(options, &machine)->floor_ns, 1000);

  machine.memory_bytes_per_s = 0;
  EXPECT_EQ(ScalingOf(options, &machine).status().message(),
            "--bandwidth is missing: bytes/s of the GPU's memory; m does not say it");
  EXPECT_EQ(ScalingOf(Options{}, nullptr).status().message(),
            "--flops is missing: FLOP/s of the GPU, which its driver does not tell; or name a "
            "--machine");
}

TEST(ReplayOptionsTest, WithoutAMachineTheDriverIsAsked) {
  Options options;
  EXPECT_TRUE(AsksDriver(options));
  const DevicePeaks peaks{.flops_per_s = 7, .bytes_per_s = 9};
  const Result<Scaling> both = ScalingOf(options, nullptr, peaks);
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(both->flops_per_s, 7);
  EXPECT_EQ(both->bytes_per_s, 9);
  EXPECT_EQ(both->floor_ns, 0);
  options.bytes_per_s = 5;
  EXPECT_TRUE(AsksDriver(options));
  EXPECT_EQ(ScalingOf(options, nullptr, peaks)->bytes_per_s, 5);
  options.flops_per_s = 5;
  EXPECT_FALSE(AsksDriver(options)) << "nothing is left open";
  options = {};
  options.machine = "m";
  EXPECT_FALSE(AsksDriver(options));
  EXPECT_EQ(ScalingOf(Options{}, nullptr, {.flops_per_s = 7}).status().message(),
            "--bandwidth is missing: bytes/s of the GPU's memory, which its driver does not tell; "
            "or name a --machine");
}

TEST(ReplayOptionsTest, HelpNamesEveryOption) {
  const std::string help = HelpText();
  for (const char* name : {"--batch", "--machine", "--corrupt", "--json", "--ahead"}) {
    EXPECT_NE(help.find(name), std::string::npos) << name;
  }
  EXPECT_TRUE(ParseOptions({"--help"})->help);
}

}  // namespace
}  // namespace sluice::replay
