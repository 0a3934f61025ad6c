// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

nlohmann::json Check(const nlohmann::json& report, const std::string& name) {
  for (const nlohmann::json& check : report.at("checks")) {
    if (check.at("check") == name) return check;
  }
  ADD_FAILURE() << "no check " << name << " in " << report.dump(1);
  return {};
}

TEST(Doctor, FindsTheSimulatedGpuFit) {
  TestBed bed;
  const cli::CommandOutput text = bed.Sluice({"doctor"});
  EXPECT_TRUE(text.status.ok()) << text.out << text.err;
  EXPECT_EQ(text.out.find("fail "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("simulated GPU"), std::string::npos) << text.out;
  const cli::CommandOutput json = bed.Sluice({"doctor", "--json"});
  EXPECT_TRUE(json.status.ok());
  const nlohmann::json report = nlohmann::json::parse(json.out);
  EXPECT_EQ(report.at("healthy"), true);
  for (const char* name : {"driver", "nvml", "virtual_memory", "posix_handles", "stream_values",
                           "capture_mode", "library", "runtime_dir", "daemon"}) {
    EXPECT_EQ(Check(report, name).at("verdict"), "ok") << name;
  }
  EXPECT_EQ(Check(report, "daemon").at("text"), "sluice-noded runs");
}

TEST(Doctor, SeesAProcessThatIsNoJob) {
  BedOptions options;
  options.oracle = false;  // its daemon has a context of its own otherwise
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobGroup group;
  group.Add(bed.Start({.label = "stranger",
                       .command = {Program("WORKLOAD"), "--one-shot", "--hold"},
                       .under_sluice = false,
                       .input = input.read_end.get()}));
  std::string verdict;
  Finish(group, 60'000, [&](cli::JobGroup& running) {
    const auto& out = running.jobs().front().out();
    if (!verdict.empty() || std::find(out.begin(), out.end(), "holding") == out.end()) return;
    const cli::CommandOutput json = bed.Sluice({"doctor", "--json"});
    EXPECT_TRUE(json.status.ok()) << "a warning only";
    verdict = Check(nlohmann::json::parse(json.out), "sold_twice").at("verdict");
    input = {};
  });
  EXPECT_EQ(verdict, "warn");
}

TEST(Doctor, WithoutADriverItFailsAndSaysWhy) {
  TestBed bed;
  cli::SpawnOptions options;
  options.argv = {cli::Layout::At(Program("BIN")).Program("sluice"), "doctor", "--runtime-dir",
                  bed.runtime_dir()};
  cli::Environment environment = bed.environment();
  environment.Unset("LD_LIBRARY_PATH");
  environment.Unset("SLUICE_SIMGPU");
  options.environment = environment;
  const Result<cli::CommandOutput> out = cli::RunCommand(std::move(options));
  ASSERT_TRUE(out.ok());
  if (out->status.ok()) GTEST_SKIP() << "this machine has a driver of its own";
  EXPECT_EQ(out->status.code, 1);
  EXPECT_NE(out->out.find("fail  no CUDA driver"), std::string::npos) << out->out;
}

}  // namespace
}  // namespace sluice::testing
