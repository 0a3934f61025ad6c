// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/options.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

Result<Invocation> Parse(std::vector<std::string> arguments) {
  Environment environment;
  environment.Set("SLUICE_RUNTIME_DIR", "/run/mine");
  return ParseCommandLine(arguments, environment);
}

std::string ErrorOf(std::vector<std::string> arguments) {
  const auto parsed = Parse(std::move(arguments));
  return parsed.ok() ? "accepted" : parsed.status().message();
}

TEST(Options, RunTakesEverythingBehindTheDashes) {
  const auto parsed = Parse({"run", "--limit", "3GiB", "--request=1GiB", "--gpu", "1", "--",
                             "python", "--limit", "--", "x y"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const auto& run = std::get<RunOptions>(*parsed);
  EXPECT_EQ(run.limit_bytes, 3u << 30);
  EXPECT_EQ(run.request_bytes, 1u << 30);
  EXPECT_EQ(run.gpu, 1u);
  EXPECT_EQ(run.runtime_dir, "/run/mine");
  EXPECT_EQ(run.command, (std::vector<std::string>{"python", "--limit", "--", "x y"}));
  EXPECT_TRUE(run.daemon_flags.empty());
}

TEST(Options, RunPassesTheDaemonsOptionsOn) {
  const auto parsed = Parse({"run", "--policy", "temporal", "--pool", "1MiB", "--", "true"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(std::get<RunOptions>(*parsed).daemon_flags,
            (std::vector<std::string>{"--policy", "temporal", "--pool", "1048576"}));
}

TEST(ParseCommandLine, ALimitIsAJobAndASizeOrAsked) {
  const auto size = Parse({"limit", "ns/pod/main", "12GiB"});
  ASSERT_TRUE(size.ok()) << size.status().message();
  EXPECT_EQ(std::get<LimitOptions>(*size).job, "ns/pod/main");
  EXPECT_EQ(std::get<LimitOptions>(*size).bytes, uint64_t{12} << 30);
  const auto asked = Parse({"limit", "3", "asked"});
  ASSERT_TRUE(asked.ok()) << asked.status().message();
  EXPECT_EQ(std::get<LimitOptions>(*asked).bytes, 0u);
}

TEST(ParseCommandLine, DrainIsOnOrOff) {
  for (const bool on : {true, false}) {
    const auto drain = Parse({"drain", on ? "on" : "off"});
    ASSERT_TRUE(drain.ok()) << drain.status().message();
    EXPECT_EQ(std::get<DrainOptions>(*drain).on, on);
  }
  EXPECT_NE(Parse({"drain", "maybe"}).status().message().find("on, off"), std::string::npos);
}

TEST(ParseCommandLine, PageMayNameAGpu) {
  const auto any = Parse({"page", "--runtime-dir", "/x"});
  ASSERT_TRUE(any.ok()) << any.status().message();
  EXPECT_EQ(std::get<PageOptions>(*any).gpu, -1);
  EXPECT_EQ(std::get<PageOptions>(*any).runtime_dir, "/x");
  EXPECT_EQ(std::get<PageOptions>(*Parse({"page", "--gpu", "3"})).gpu, 3);
  EXPECT_FALSE(Parse({"page", "--gpu", "64"}).ok());
}

TEST(ParseCommandLine, BudgetIsASizeOrAll) {
  const auto size = Parse({"budget", "12GiB"});
  ASSERT_TRUE(size.ok()) << size.status().message();
  EXPECT_EQ(std::get<BudgetOptions>(*size).bytes, uint64_t{12} << 30);
  const auto all = Parse({"budget", "all"});
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(std::get<BudgetOptions>(*all).bytes, 0u);
}

TEST(Options, RunSteersFrameworksUnlessToldOtherwise) {
  EXPECT_EQ(std::get<RunOptions>(*Parse({"run", "--", "true"})).frameworks, Frameworks::kAsync);
  const auto none = Parse({"run", "--frameworks", "none", "--verbose", "--", "true"});
  EXPECT_EQ(std::get<RunOptions>(*none).frameworks, Frameworks::kNone);
  EXPECT_TRUE(std::get<RunOptions>(*none).verbose);
  const std::string error = ErrorOf({"run", "--frameworks", "native", "--", "true"});
  EXPECT_NE(error.find("--frameworks"), std::string::npos) << error;
  EXPECT_NE(error.find("async, expandable, none"), std::string::npos) << error;
}

TEST(Options, RunObservesWhenAsked) {
  EXPECT_FALSE(std::get<RunOptions>(*Parse({"run", "--", "true"})).observe);
  const auto named = Parse({"run", "--observe", "--trace", "a.trace", "--", "true"});
  ASSERT_TRUE(named.ok()) << named.status().message();
  EXPECT_TRUE(std::get<RunOptions>(*named).observe);
  EXPECT_EQ(std::get<RunOptions>(*named).trace, "a.trace");
}

TEST(Options, DemoHasDefaults) {
  const auto parsed = Parse({"demo"});
  ASSERT_TRUE(parsed.ok());
  const auto& demo = std::get<DemoOptions>(*parsed);
  EXPECT_EQ(demo.jobs, 2u);
  EXPECT_EQ(demo.iterations, 200u);
  EXPECT_DOUBLE_EQ(demo.pool_fraction, 0.64);
  EXPECT_FALSE(demo.json);
}

TEST(Options, DemoTakesItsOptions) {
  const auto parsed = Parse({"demo", "--json", "--jobs", "4", "--iterations", "50",
                             "--pool-fraction", "0.5", "--seed", "9"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const auto& demo = std::get<DemoOptions>(*parsed);
  EXPECT_TRUE(demo.json);
  EXPECT_EQ(demo.jobs, 4u);
  EXPECT_EQ(demo.iterations, 50u);
  EXPECT_DOUBLE_EQ(demo.pool_fraction, 0.5);
  EXPECT_EQ(demo.seed, 9u);
}

struct BadLine {
  std::vector<std::string> arguments;
  std::string error;
};

class BadOptions : public testing::TestWithParam<BadLine> {};

TEST_P(BadOptions, OneLineNamesTheOptionAndWhatIsAllowed) {
  EXPECT_EQ(ErrorOf(GetParam().arguments), GetParam().error);
}

const char kSizeRule[] =
    "' is not an amount of memory; allowed: a positive number and k, M, G, T, Ki, Mi, Gi or Ti "
    "with an "
    "optional B, for example 3GiB";

INSTANTIATE_TEST_SUITE_P(
    Lines, BadOptions,
    testing::Values(
        BadLine{{},
                "a command is needed; allowed: run, status, policy, budget, limit, drain, "
                "check-log, demo, "
                "doctor, page, top, explain, report, place, "
                "simulate, max-batch, profile, import"},
        BadLine{{"walk"},
                "'walk' is not a command; allowed: run, status, policy, budget, limit, drain, "
                "check-log, "
                "demo, "
                "doctor, page, top, explain, report, "
                "place, "
                "simulate, max-batch, profile, import"},
        BadLine{{"run", "--limit", "", "--", "true"}, std::string("--limit: '") + kSizeRule},
        BadLine{{"run", "--limit", "3XB", "--", "true"}, std::string("--limit: '3XB") + kSizeRule},
        BadLine{{"run", "--request", "-1", "--", "true"},
                std::string("--request: '-1") + kSizeRule},
        BadLine{{"run", "--limit", "1GiB", "--request", "2GiB", "--", "true"},
                "--request: 2GiB is more than --limit 1GiB; allowed: at most the limit"},
        BadLine{{"run", "--gpu", "x", "--", "true"},
                "run: --gpu: 'x'; allowed: a whole number from 0 to 63"},
        BadLine{
            {"run", "--policy", "fair", "--", "true"},
            "run: --policy: 'fair'; allowed: flow, nodegroup, temporal, timeshift, spatial, auto"},
        BadLine{{"run", "true"},
                "run: 'true' is not understood; allowed: --help, --limit, --request, "
                "--frameworks, --verbose, --gpu, --runtime-dir, --policy, --pool, "
                "--event-log, --observe, "
                "--trace"},
        BadLine{{"run", "--trace", "a.trace", "--", "true"},
                "--trace: means nothing without --observe"},
        BadLine{{"run", "--limit", "1GiB"},
                "run: no program given; allowed: sluice run [OPTIONS] -- PROGRAM ARGS"},
        BadLine{{"run", "--"},
                "run: no program given; allowed: sluice run [OPTIONS] -- PROGRAM ARGS"},
        BadLine{{"budget"}, "budget: SIZE is required"},
        BadLine{{"limit", "3"}, "limit: SIZE is required"},
        BadLine{{"drain"}, "drain: STATE is required"},
        BadLine{{"limit", "3", "much"}, std::string("limit: 'much") + kSizeRule},
        BadLine{{"budget", "0"}, std::string("budget: '0") + kSizeRule},
        BadLine{{"status", "--yaml"},
                "status: '--yaml' is not understood; allowed: --help, --json, --runtime-dir"},
        BadLine{{"status", "--", "x"}, "'--' is understood only by sluice run"},
        BadLine{{"check-log"}, "check-log: FILE is required"},
        BadLine{{"demo", "--jobs", "1"}, "demo: --jobs: '1'; allowed: a whole number from 2 to 6"},
        BadLine{{"demo", "--jobs", "2x"},
                "demo: --jobs: '2x'; allowed: a whole number from 2 to 6"},
        BadLine{{"demo", "--iterations", "5"},
                "demo: --iterations: '5'; allowed: a whole number from 10 to 100000"},
        BadLine{{"demo", "--pool-fraction", "0.65"},
                "demo: --pool-fraction: '0.65'; allowed: a number from 0.3 to less than 0.65"},
        BadLine{{"demo", "--pool-fraction", "nan"},
                "demo: --pool-fraction: 'nan'; allowed: a number from 0.3 to less than 0.65"},
        BadLine{{"demo", "--seed", "-1"},
                "demo: --seed: '-1'; allowed: a whole number from 0 to 4294967295"},
        BadLine{{"demo", "--real-gpu"}, "--real-gpu: needs the size of the pool with --pool"}));

TEST(Options, HelpOfACommandNamesItsOptions) {
  const auto parsed = Parse({"demo", "--help"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_NE(std::get<PrintText>(*parsed).text.find("--pool-fraction"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
