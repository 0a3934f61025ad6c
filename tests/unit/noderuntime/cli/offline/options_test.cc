// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/options.h"

#include <gtest/gtest.h>

#include "noderuntime/cli/options.h"

namespace sluice::cli {
namespace {

Result<Invocation> Parse(const std::vector<std::string>& arguments) {
  return ParseCommandLine(arguments, Environment());
}

PlaceOptions Place(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"place", "in.csv"});
  const auto parsed = Parse(arguments);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.ok() ? std::get<PlaceOptions>(std::get<OfflineOptions>(*parsed)) : PlaceOptions();
}

std::string ErrorOf(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"place", "in.csv"});
  const auto parsed = Parse(arguments);
  return parsed.ok() ? "accepted" : parsed.status().message();
}

TEST(OfflineOptions, PlaceTakesWhatItIsGiven) {
  const PlaceOptions all =
      Place({"--capacity", "28GiB", "--objective", "leased", "--unit", "2MiB", "--batch", "32",
             "--granule", "512", "--effort", "quick", "-o", "out.csv", "--json"});
  EXPECT_EQ(all.file, "in.csv");
  EXPECT_EQ(all.capacity_bytes, uint64_t{28} << 30);
  EXPECT_EQ(all.objective, scheduler::PlaceObjective::kLeased);
  EXPECT_EQ(all.unit_bytes, 2u << 20);
  EXPECT_EQ(all.batch, 32u);
  EXPECT_EQ(all.granule_bytes, 512u);
  EXPECT_EQ(all.effort.nodes, scheduler::kQuickEffort.nodes);
  EXPECT_EQ(all.output, "out.csv");
  EXPECT_TRUE(all.json);
}

TEST(OfflineOptions, PlaceNeedsTheFileAlone) {
  const PlaceOptions none = Place({});
  EXPECT_EQ(none.capacity_bytes, std::nullopt);
  EXPECT_EQ(none.objective, scheduler::PlaceObjective::kFootprint);
  EXPECT_EQ(none.unit_bytes, 8u << 20);
  EXPECT_EQ(none.batch, 0u);
  EXPECT_EQ(none.granule_bytes, 1u);
  EXPECT_EQ(none.effort.nodes, scheduler::kUsualEffort.nodes);
  EXPECT_EQ(none.output, "");
  EXPECT_FALSE(none.json);
}

TEST(OfflineOptions, ACapacityIsWorthMoreEffort) {
  EXPECT_EQ(Place({"--capacity", "1"}).effort.nodes, scheduler::kThoroughEffort.nodes);
  EXPECT_EQ(Place({"--capacity", "1", "--effort", "usual"}).effort.nodes,
            scheduler::kUsualEffort.nodes);
}

TEST(OfflineOptions, FaultsNameTheFlagAndWhatIsAllowed) {
  for (const char* flag : {"--capacity", "--unit", "--granule"}) {
    for (const char* wrong : {"", "0", "-1", "lots", "2000000TiB"}) {
      const std::string why = ErrorOf({flag, wrong});
      EXPECT_NE(why.find(flag), std::string::npos) << why;
    }
  }
  EXPECT_EQ(ErrorOf({"--capacity", "2000000TiB"}),
            "--capacity: 2000000TiB; allowed: at most 1152921504606846976 bytes");
  EXPECT_NE(ErrorOf({"--objective", "speed"}).find("'speed'; allowed: footprint, leased"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"--effort", "much"}).find("'much'; allowed: quick, usual, thorough"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"--batch", "0"}).find("'0'; allowed: a whole number from 1 to 1048576"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"--bogus"}).find("--bogus"), std::string::npos);
  EXPECT_NE(Parse({"place"}).status().message().find("FILE"), std::string::npos);
}

TEST(OfflineOptions, SimulateTakesJobsAndAScenario) {
  const auto parsed = Parse({"simulate",  "a:b.trace:64", "c.trace:1", "--gpu",
                             "h200",      "--sharing",    "mps",       "--sharing-variant",
                             "roofline",  "--pool",       "24GiB",     "--unit",
                             "2MiB",      "--policy",     "flow",      "--claims",
                             "steps",     "--lanes",      "3",         "--credit",
                             "2.5ms",     "--gap",        "40us",      "--gates",
                             "20",        "--iterations", "4",         "--json",
                             "--stagger", "3ms",          "--switch",  "160us"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const auto& options = std::get<SimulateOptions>(std::get<OfflineOptions>(*parsed));
  ASSERT_EQ(options.jobs.size(), 2u);
  EXPECT_EQ(options.jobs[0].file, "a:b.trace");
  EXPECT_EQ(options.jobs[0].batch, 64u);
  EXPECT_TRUE(options.json);
  EXPECT_EQ(options.stagger_ns, 3e6);
  const ScenarioOptions& scenario = options.scenario;
  EXPECT_EQ(scenario.gpu, "h200");
  EXPECT_EQ(scenario.sharing, Sharing::kMps);
  EXPECT_EQ(scenario.sharing_variant, SharingVariant::kRoofline);
  EXPECT_EQ(scenario.switch_ns, 160'000u);
  EXPECT_EQ(scenario.pool_bytes, uint64_t{24} << 30);
  EXPECT_EQ(scenario.unit_bytes, 2u << 20);
  EXPECT_EQ(scenario.policy, "flow");
  EXPECT_EQ(scenario.setting.claims, scheduler::Claims::kSteps);
  EXPECT_EQ(scenario.setting.policy.lanes, 3u);
  EXPECT_EQ(scenario.most_credit_ns, 2.5e6);
  EXPECT_EQ(scenario.gap_ns, 40e3);
  EXPECT_EQ(scenario.max_gates, 20u);
  EXPECT_EQ(scenario.iterations, 4u);
  EXPECT_FALSE(scenario.finds_residents);
  EXPECT_EQ(scenario.host_units, std::nullopt);
}

TEST(OfflineOptions, BlocksMayBePlacedAsOnANode) {
  for (const std::string command : {"simulate a.trace:1", "max-batch a.trace"}) {
    const auto placing = [&](std::vector<std::string> flags) -> Result<scheduler::Placing> {
      const size_t space = command.find(' ');
      flags.insert(flags.begin(), {command.substr(0, space), command.substr(space + 1)});
      const auto parsed = Parse(flags);
      if (!parsed.ok()) return parsed.status();
      const auto& options = std::get<OfflineOptions>(*parsed);
      const auto* simulate = std::get_if<SimulateOptions>(&options);
      return simulate != nullptr ? simulate->scenario.placing
                                 : std::get<MaxBatchOptions>(options).scenario.placing;
    };
    using scheduler::Placing;
    EXPECT_EQ(placing({}).value(), Placing::kPacked);
    EXPECT_EQ(placing({"--placing", "packed", "--policy", "spatial"}).value(), Placing::kPacked);
    EXPECT_EQ(placing({"--placing", "runs"}).value(), Placing::kRuns);
    EXPECT_EQ(placing({"--placing", "pieces", "--policy", "flow"}).value(), Placing::kPieces);
    EXPECT_EQ(scheduler::PlacingName(Placing::kPieces), "pieces");
    const std::string wrong = placing({"--placing", "node"}).status().message();
    EXPECT_NE(wrong.find("--placing"), std::string::npos) << wrong;
    EXPECT_NE(wrong.find("packed, runs, pieces"), std::string::npos) << wrong;
    const std::string nobody =
        placing({"--placing", "pieces", "--policy", "spatial"}).status().message();
    EXPECT_NE(nobody.find("--placing: 'pieces' means nothing with --policy spatial"),
              std::string::npos)
        << nobody;
  }
}

TEST(OfflineOptions, BasesMayBeInHostMemory) {
  const auto scenario = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"simulate", "a.trace:1", "--unit", "2MiB"});
    const auto parsed = Parse(flags);
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    return parsed.ok() ? std::get<SimulateOptions>(std::get<OfflineOptions>(*parsed)).scenario
                       : ScenarioOptions();
  };
  const ScenarioOptions found = scenario({"--residents", "auto", "--host-memory", "33MiB"});
  EXPECT_TRUE(found.finds_residents);
  EXPECT_EQ(found.host_units, 16u) << "whole units";
  const ScenarioOptions said = scenario({"--policy", "flow", "--residents", "3"});
  EXPECT_FALSE(said.finds_residents);
  EXPECT_EQ(said.setting.policy.residents, 3u);
  EXPECT_EQ(said.host_units, std::nullopt);
}

TEST(OfflineOptions, MaxBatchTakesFilesAndAScenario) {
  const auto parsed =
      Parse({"max-batch", "a.trace", "b.trace", "--keep", "95", "--policy", "spatial"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const auto& options = std::get<MaxBatchOptions>(std::get<OfflineOptions>(*parsed));
  EXPECT_EQ(options.files, (std::vector<std::string>{"a.trace", "b.trace"}));
  EXPECT_EQ(options.keep_percent, 95u);
  EXPECT_EQ(options.scenario.policy, "spatial");
  EXPECT_EQ(options.scenario.sharing, std::nullopt);
  EXPECT_EQ(options.scenario.switch_ns, std::nullopt);
  EXPECT_EQ(options.scenario.setting.claims, scheduler::Claims::kContract) << "nobody lends";
}

TEST(OfflineOptions, ProfileNeedsTheFileAlone) {
  const auto parsed = Parse({"profile", "a.trace", "--batch", "32", "--gpu", "h200", "--unit",
                             "2MiB", "--gates", "20", "--svg", "a.svg", "--json"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const auto& options = std::get<ProfileOptions>(std::get<OfflineOptions>(*parsed));
  EXPECT_EQ(options.file, "a.trace");
  EXPECT_EQ(options.batch, 32u);
  EXPECT_EQ(options.gpu, "h200");
  EXPECT_EQ(options.unit_bytes, 2u << 20);
  EXPECT_EQ(options.max_gates, 20u);
  EXPECT_EQ(options.svg, "a.svg");
  EXPECT_TRUE(options.json);
  const auto bare = Parse({"profile", "a.trace"});
  ASSERT_TRUE(bare.ok()) << bare.status().message();
  EXPECT_EQ(std::get<ProfileOptions>(std::get<OfflineOptions>(*bare)).batch, 0u) << "the trace's";
  EXPECT_NE(Parse({"profile", "a.trace", "--batch", "1", "--unit", "0"})
                .status()
                .message()
                .find("--unit"),
            std::string::npos);
}

TEST(OfflineOptions, FaultsOfScenariosNameTheFlagAndWhatIsAllowed) {
  const auto error = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"simulate", "a.trace:1"});
    const auto parsed = Parse(arguments);
    return parsed.ok() ? "accepted" : parsed.status().message();
  };
  EXPECT_NE(error({"--policy", "best"})
                .find("allowed: flow, nodegroup, temporal, timeshift, spatial, auto"),
            std::string::npos)
      << error({"--policy", "best"});
  EXPECT_NE(error({"--claims", "all"}).find("allowed: contract, steps, curve"), std::string::npos);
  EXPECT_EQ(error({"--credit", "5"}),
            "--credit: '5'; allowed: a number and ns, us, ms or s, as 5ms, at most 1000s");
  EXPECT_NE(error({"--gap", "-1ms"}).find("--gap: "), std::string::npos);
  EXPECT_NE(error({"--switch", "2"}).find("--switch: '2'; allowed: a number"), std::string::npos);
  EXPECT_NE(error({"--stagger", "2"}).find("--stagger: '2'; allowed: a number and ns"),
            std::string::npos);
  EXPECT_NE(error({"--unit", "0"}).find("--unit"), std::string::npos);
  EXPECT_EQ(error({"--claims", "steps", "--policy", "temporal"}),
            "--claims: means nothing with --policy temporal; allowed: with --policy flow, "
            "nodegroup, timeshift, auto");
  EXPECT_EQ(error({"--claims", "steps", "--lanes", "3", "--policy", "timeshift"}), "accepted");
  EXPECT_NE(error({"--lanes", "0"}).find("from 1 to 64"), std::string::npos);
  for (const char* job : {"a.trace", ":4", "a.trace:0", "a.trace:x", "a.trace:4x"}) {
    const auto parsed = Parse({"simulate", job});
    ASSERT_FALSE(parsed.ok()) << job;
    EXPECT_NE(parsed.status().message().find("JOB: '"), std::string::npos);
  }
}

TEST(OfflineOptions, FilesThatAreWrittenHaveAName) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"place", "in.csv", "-o"},
                                             {"import", "in.pickle", "-o"},
                                             {"profile", "a.trace", "--svg"},
                                             {"report", "a.log", "--html"},
                                             {"run", "--observe", "--trace"}}) {
    for (const std::string name : {"-", ""}) {
      std::vector<std::string> words = command;
      words.push_back(name);
      if (command.front() == "run") words.insert(words.end(), {"--", "true"});
      const auto parsed = Parse(words);
      ASSERT_FALSE(parsed.ok()) << command.front() << " " << name;
      const std::string why = parsed.status().message();
      EXPECT_NE(why.find(command.back()), std::string::npos) << why;
      EXPECT_NE(why.find("'" + name + "'; allowed: the name of a file"), std::string::npos) << why;
    }
  }
  EXPECT_EQ(Place({"-o", "./-"}).output, "./-");
}

}  // namespace
}  // namespace sluice::cli
