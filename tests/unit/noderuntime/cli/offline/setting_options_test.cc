// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/setting_options.h"

#include <gtest/gtest.h>

#include <sstream>

#include "noderuntime/cli/options.h"

namespace sluice::cli {
namespace {

using scheduler::simulate::Drain;
using scheduler::simulate::Setting;

constexpr uint64_t kUnit = uint64_t{8} << 20;

Result<Invocation> Parse(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"simulate", "a.trace:1"});
  return ParseCommandLine(flags, Environment());
}

std::string ErrorOf(const std::vector<std::string>& flags) {
  const auto parsed = Parse(flags);
  return parsed.ok() ? "accepted" : parsed.status().message();
}

Setting Read(const std::vector<std::string>& flags) {
  const auto parsed = Parse(flags);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  if (!parsed.ok()) return {};
  return std::get<SimulateOptions>(std::get<OfflineOptions>(*parsed)).scenario.setting;
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(SettingOptions, TakeAllThatAutoFinds) {
  const Setting all = Read({"--policy",
                            "nodegroup",
                            "--claims",
                            "steps",
                            "--steps",
                            "6",
                            "--lanes",
                            "3",
                            "--phase",
                            "0.35",
                            "--budget",
                            "20GiB",
                            "--soft-budget",
                            "1GiB",
                            "--drain",
                            "never",
                            "--credit-parts",
                            "16",
                            "--nodegroup-groups",
                            "12",
                            "--residents",
                            "2",
                            "--slice",
                            "250ms"});
  EXPECT_EQ(all.policy.policy, "nodegroup");
  EXPECT_EQ(all.claims, scheduler::Claims::kSteps);
  EXPECT_EQ(all.steps, 6u);
  EXPECT_EQ(all.policy.lanes, 3u);
  EXPECT_EQ(all.policy.phase, 0.35);
  EXPECT_EQ(all.budget, 20u * 128);
  EXPECT_EQ(all.policy.soft_budget, 128u);
  EXPECT_EQ(all.drain, Drain::kNever);
  EXPECT_EQ(all.credit_parts, 16);
  EXPECT_EQ(all.policy.groups_per_peak, 12u);
  EXPECT_EQ(all.policy.residents, 2u);
  EXPECT_EQ(all.policy.slice_ns, 250'000'000u);
}

TEST(SettingOptions, AllBasesStayUnlessItIsSaidHowMany) {
  EXPECT_EQ(Read({}).policy.residents, 0u);
  for (const char* policy : {"auto", "temporal", "spatial", "flow"}) {
    EXPECT_EQ(Read({"--policy", policy, "--residents", "all"}).policy.residents, 0u);
  }
  EXPECT_EQ(Read({"--residents", "auto"}).policy.residents, 0u) << "to be found";
  const Setting number = Read({"--policy", "flow", "--residents", "64"});
  EXPECT_EQ(number.policy.residents, 64u);
  EXPECT_EQ(number.policy.slice_ns, 1'000'000'000u);
}

TEST(SettingOptions, NobodyClaimsAnythingWhereNobodyLends) {
  EXPECT_EQ(Read({"--policy", "temporal"}).claims, Setting().claims) << "as auto has it";
  EXPECT_EQ(Read({"--policy", "flow"}).claims, scheduler::Claims::kCurve);
  EXPECT_EQ(Read({}).claims, scheduler::Claims::kCurve) << "as far as auto may go";
}

TEST(SettingOptions, FlagsSayASettingToTheLastBit) {
  Setting setting;
  setting.policy.policy = "nodegroup";
  setting.policy.lanes = 5;
  setting.policy.phase = 0.3 + 0.03;  // no decimal of two digits
  setting.policy.soft_budget = 77;
  setting.policy.groups_per_peak = 24;
  setting.claims = scheduler::Claims::kSteps;
  setting.steps = 9;
  setting.budget = 3001;
  setting.drain = Drain::kNever;
  setting.credit_parts = 1 / 0.3;
  setting.policy.residents = 3;
  setting.policy.slice_ns = 2'236'962'133;
  const std::string flags = FlagsOf(setting, kUnit);
  const Setting read = Read(Words(flags));
  EXPECT_EQ(FlagsOf(read, kUnit), flags);
  EXPECT_EQ(read.policy.phase, setting.policy.phase);
  EXPECT_EQ(read.credit_parts, setting.credit_parts);
  EXPECT_EQ(read.budget, setting.budget);
  EXPECT_EQ(read.policy.soft_budget, setting.policy.soft_budget);
  EXPECT_EQ(read.steps, setting.steps);
  EXPECT_EQ(read.drain, Drain::kNever);
  EXPECT_EQ(read.policy.residents, setting.policy.residents);
  EXPECT_EQ(read.policy.slice_ns, setting.policy.slice_ns);
  EXPECT_EQ(FlagsOf(setting, kUnit, 40), flags + " --host-memory 335544320");
  setting = {};
  for (const std::optional<scheduler::Units> host : {std::optional<scheduler::Units>(), {40u}}) {
    EXPECT_EQ(FlagsOf(setting, kUnit, host),
              "--policy flow --lanes 2 --claims contract --credit-parts 8")
        << "no base goes to host memory";
  }
  setting.drain = Drain::kWhenOthersAreThere;
  EXPECT_EQ(Read(Words(FlagsOf(setting, kUnit))).drain, Drain::kWhenOthersAreThere);
  setting = {};
  setting.policy.policy = "temporal";
  EXPECT_EQ(FlagsOf(setting, kUnit), "--policy temporal");
}

TEST(SettingOptions, WhatMeansNothingIsRefusedWithWhatIsAllowed) {
  const std::string lending = "; allowed: with --policy flow, nodegroup, timeshift";
  for (const char* policy : {"auto", "temporal", "spatial"}) {
    for (const auto& [flag, value] : {std::pair{"--lanes", "3"},
                                      {"--phase", "0.5"},
                                      {"--budget", "1GiB"},
                                      {"--soft-budget", "1GiB"},
                                      {"--drain", "never"},
                                      {"--credit-parts", "4"},
                                      {"--steps", "5"}}) {
      EXPECT_EQ(ErrorOf({"--policy", policy, flag, value}),
                std::string(flag) + ": means nothing with --policy " + policy + lending);
    }
  }
  EXPECT_EQ(ErrorOf({"--policy", "flow", "--steps", "5"}),
            "--steps: means nothing with --claims curve; allowed: with --claims steps");
  EXPECT_EQ(ErrorOf({"--policy", "flow", "--nodegroup-groups", "5"}),
            "--nodegroup-groups: means nothing with --policy flow; allowed: with --policy "
            "nodegroup");
}

TEST(SettingOptions, ResidentsOfAPolicyAndWhatBelongsToThem) {
  for (const char* policy : {"auto", "temporal", "spatial"}) {
    EXPECT_EQ(ErrorOf({"--policy", policy, "--residents", "2"}),
              std::string("--residents 2: means nothing with --policy ") + policy +
                  "; allowed: with --policy flow, nodegroup, timeshift");
  }
  EXPECT_EQ(ErrorOf({"--policy", "flow", "--residents", "auto"}),
            "--residents auto: means nothing with --policy flow; allowed: with --policy auto");
  for (const char* residents : {"all", "auto"}) {
    EXPECT_EQ(ErrorOf({"--residents", residents, "--slice", "1s"}),
              std::string("--slice: means nothing with --residents ") + residents +
                  "; allowed: with --residents 1 to 64");
  }
  EXPECT_EQ(ErrorOf({"--policy", "flow", "--host-memory", "1GiB"}),
            "--host-memory: means nothing with --residents all; allowed: with --residents auto, or "
            "1 to 64");
  for (const char* wrong : {"0", "65", "-1", "2x", "", "some"}) {
    EXPECT_NE(
        ErrorOf({"--policy", "flow", "--residents", wrong})
            .find("--residents: '" + std::string(wrong) + "'; allowed: all, auto, or 1 to 64"),
        std::string::npos)
        << ErrorOf({"--policy", "flow", "--residents", wrong});
  }
  const auto with = [](const char* flag, const char* value) {
    return ErrorOf({"--policy", "flow", "--residents", "2", flag, value});
  };
  EXPECT_EQ(with("--slice", "2"),
            "--slice: '2'; allowed: a number and ns, us, ms or s, as 5ms, at most 1000s");
  EXPECT_EQ(with("--slice", "0.2ns"), "--slice: 0.2ns; allowed: above 0");
  EXPECT_EQ(with("--host-memory", "1MiB"),
            "--host-memory: 1MiB; allowed: from a unit, 8.0 MiB, upwards");
  EXPECT_NE(with("--host-memory", "some").find("--host-memory: "), std::string::npos);
}

TEST(SettingOptions, FaultsNameTheFlagAndWhatIsAllowed) {
  const auto with = [](const char* flag, const char* value) {
    return ErrorOf({"--policy", "nodegroup", "--claims", "steps", flag, value});
  };
  EXPECT_EQ(with("--budget", "1MiB"), "--budget: 1MiB; allowed: from a unit, 8.0 MiB, to the pool");
  EXPECT_NE(with("--soft-budget", "some").find("--soft-budget: "), std::string::npos);
  EXPECT_NE(with("--phase", "1").find("'1'; allowed: a number from 0 to 0.99"), std::string::npos);
  EXPECT_NE(
      with("--drain", "always").find("allowed: when-others-wait, when-others-are-there, never"),
      std::string::npos);
  for (const char* wrong : {"0", "0.01", "0.99", "-1", "nan", "inf", "x", ""}) {
    EXPECT_NE(with("--credit-parts", wrong).find("allowed: a number from 1 to 1000000"),
              std::string::npos)
        << with("--credit-parts", wrong);
  }
  EXPECT_NE(with("--steps", "0").find("from 1 to 1000"), std::string::npos);
  EXPECT_NE(with("--nodegroup-groups", "0").find("from 1 to 1000"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
