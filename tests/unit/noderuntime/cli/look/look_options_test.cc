// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "noderuntime/cli/look/options.h"
#include "noderuntime/cli/options.h"

namespace sluice::cli {
namespace {

Result<Invocation> Parse(const std::vector<std::string>& arguments) {
  return ParseCommandLine(arguments, Environment());
}

template <typename Options>
Options Look(const std::vector<std::string>& arguments) {
  const Result<Invocation> parsed = Parse(arguments);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return std::get<Options>(std::get<LookOptions>(*parsed));
}

TEST(LookOptions, EachCommandTakesItsOwn) {
  const auto top = Look<TopOptions>({"top", "--interval", "200", "--runtime-dir", "/run/x"});
  EXPECT_EQ(top.runtime_dir, "/run/x");
  EXPECT_EQ(top.interval_ms, 200u);
  EXPECT_FALSE(top.once);
  EXPECT_TRUE(Look<TopOptions>({"top", "--once"}).once);
  const auto explain = Look<ExplainOptions>({"explain", "team/train", "--json"});
  EXPECT_EQ(explain.job, "team/train");
  EXPECT_TRUE(explain.json);
  EXPECT_FALSE(explain.gpu.has_value());
  EXPECT_EQ(Look<ExplainOptions>({"explain", "3", "--gpu", "1"}).gpu, 1u);
  const auto report = Look<ReportOptions>({"report", "run.log", "--html", "run.html"});
  EXPECT_EQ(report.file, "run.log");
  EXPECT_EQ(report.html, "run.html");
}

TEST(LookOptions, WhatIsWrongIsNamed) {
  EXPECT_NE(Parse({"explain"}).status().message().find("JOB"), std::string::npos);
  EXPECT_NE(Parse({"report"}).status().message().find("FILE"), std::string::npos);
  EXPECT_NE(Parse({"top", "--interval", "5"}).status().message().find("100"), std::string::npos);
  EXPECT_NE(Parse({"nonsense"}).status().message().find("explain"), std::string::npos);
}

TEST(LookOptions, RunPassesAnEventLogToTheDaemonThatItStarts) {
  const Result<Invocation> parsed = Parse({"run", "--event-log", "/tmp/a.log", "--", "true"});
  ASSERT_TRUE(parsed.ok());
  const auto& flags = std::get<RunOptions>(*parsed).daemon_flags;
  EXPECT_EQ(flags, (std::vector<std::string>{"--event-log", "/tmp/a.log"}));
}

}  // namespace
}  // namespace sluice::cli
