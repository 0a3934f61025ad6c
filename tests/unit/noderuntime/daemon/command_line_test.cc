// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "noderuntime/daemon/noded.h"

namespace sluice::noded {
namespace {

config::Options Parse(std::vector<std::string> arguments, const std::string& oracle = "") {
  arguments.insert(arguments.begin(), {"--runtime-dir", "/run/x"});
  const auto parsed = ParseCommandLine(arguments, oracle);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return std::get<config::Options>(*parsed);
}

std::string Error(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--runtime-dir", "/run/x"});
  const auto parsed = ParseCommandLine(arguments, "");
  EXPECT_FALSE(parsed.ok());
  return parsed.status().message();
}

TEST(CommandLine, ReadsEveryOption) {
  const config::Options options = Parse({"--gpu",
                                         "2",
                                         "--pool",
                                         "3GiB",
                                         "--reserve",
                                         "1GiB",
                                         "--lease-unit",
                                         "256KiB",
                                         "--handle",
                                         "2MiB",
                                         "--policy",
                                         "temporal",
                                         "--lanes",
                                         "3",
                                         "--lend",
                                         "eager",
                                         "--credit",
                                         "off",
                                         "--credit-us",
                                         "750",
                                         "--event-log",
                                         "/e",
                                         "--oracle",
                                         "/o",
                                         "--poison",
                                         "--idle-exit",
                                         "5",
                                         "--lease-wait",
                                         "0.5",
                                         "--ready-fd",
                                         "7",
                                         "--patience",
                                         "9",
                                         "--host-memory",
                                         "5GiB"});
  EXPECT_EQ(options.runtime_dir, "/run/x");
  EXPECT_EQ(options.gpu, 2u);
  EXPECT_EQ(options.pool_bytes, 3 * kGiB);
  EXPECT_EQ(options.reserve_bytes, kGiB);
  EXPECT_EQ(options.host_memory_bytes, 5 * kGiB);
  EXPECT_EQ(options.unit_bytes, 256 * kKiB);
  EXPECT_EQ(options.handle_bytes, 2 * kMiB);
  EXPECT_EQ(options.policy, "temporal");
  EXPECT_EQ(options.lanes, 3u);
  EXPECT_EQ(options.lend, "eager");
  EXPECT_EQ(options.credit, "off");
  EXPECT_EQ(options.credit_us, 750u);
  EXPECT_EQ(options.event_log, "/e");
  EXPECT_EQ(options.oracle, "/o");
  EXPECT_TRUE(options.poison);
  EXPECT_EQ(options.idle_exit_s, 5.0);
  EXPECT_EQ(options.lease_wait_s, 0.5);
  EXPECT_EQ(options.patience_s, 9.0);
  EXPECT_EQ(options.ready_fd, 7);
}

TEST(CommandLine, OracleWithoutAValueIsTheEnvironments) {
  EXPECT_EQ(Parse({"--oracle", "--poison"}, "/from/environment").oracle, "/from/environment");
  EXPECT_EQ(Parse({"--oracle", "/own", "--poison"}, "/from/environment").oracle, "/own");
  EXPECT_EQ(Parse({"--poison"}, "/from/environment").oracle, "");
  EXPECT_NE(Error({"--oracle"}).find("SLUICE_ORACLE"), std::string::npos);
}

TEST(CommandLine, HostMemoryOfNothingIsNotTheDefault) {
  EXPECT_EQ(Parse({"--poison"}).host_memory_bytes, std::nullopt);
  EXPECT_EQ(Parse({"--host-memory", "0"}).host_memory_bytes, uint64_t{0});
  EXPECT_NE(Error({"--host-memory", "much"}).find("--host-memory"), std::string::npos);
}

TEST(CommandLine, ARelativeFolderIsMadeAbsolute) {
  const auto parsed = ParseCommandLine({"--runtime-dir", "x/../y"}, "");
  const std::string dir = std::get<config::Options>(*parsed).runtime_dir;
  EXPECT_TRUE(dir.starts_with("/") && dir.ends_with("/y")) << dir;
}

TEST(CommandLine, ErrorsNameTheOption) {
  EXPECT_NE(Error({"--pool", "lots"}).find("--pool"), std::string::npos);
  EXPECT_EQ(Error({"--gpu", "-1"}), "--gpu '-1': allowed: a whole number from 0 to 999999");
  EXPECT_EQ(Error({"--idle-exit", "soon"}),
            "--idle-exit 'soon': allowed: a number of seconds, for example 5 or 0.5");
  EXPECT_NE(Error({"--bogus"}).find("--bogus"), std::string::npos);
  EXPECT_NE(ParseCommandLine({}, "").status().message().find("--runtime-dir"), std::string::npos);
}

TEST(CommandLine, HelpAndVersionAreText) {
  for (const char* option : {"--help", "--version"}) {
    const auto parsed = ParseCommandLine({option}, "");
    ASSERT_TRUE(parsed.ok());
    EXPECT_NE(std::get<PrintText>(*parsed).text.find("sluice-noded"), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::noded
