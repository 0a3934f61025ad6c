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

}  // namespace
}  // namespace sluice::cli
