// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/place.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/work_dir.h"
#include "scheduler/place/offline/instance.h"

namespace sluice::cli {
namespace {

constexpr char kTable[] = "id,lower,upper,size\na,0,4,5\nb,2,6,6\nc,4,9,5\n";
constexpr char kTrace[] =
    "# sluice-trace 1\n"
    "block 0 persistent 100 0\n"
    "block 1 transient 5 10\n"
    "block 2 transient 20 0\n"
    "alloc 1\n"
    "alloc 2\n"
    "free 1\n"
    "free 2\n";

class PlaceTest : public testing::Test {
 protected:
  PlaceTest() {
    Result<WorkDir> work = WorkDir::Create("");
    if (!work.ok()) throw std::runtime_error(work.status().message());
    work_.emplace(*std::move(work));
    options_.effort = scheduler::kUsualEffort;
  }

  /// Of a file with this text.
  Output Place(const std::string& text) {
    options_.file = work_->File("in");
    EXPECT_TRUE(WriteWholeFile(options_.file, text).ok());
    return RunPlace(options_);
  }

  std::optional<WorkDir> work_;
  PlaceOptions options_;
};

TEST_F(PlaceTest, SaysHowGoodItIs) {
  const Output output = Place(kTable);
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.err, "");
  EXPECT_EQ(output.out,
            options_.file +
                ": 3 buffers\n"
                "  footprint    11 B (11 bytes), 1.0000 of the lower bound\n"
                "  lower bound  11 B (11 bytes)\n"
                "  method       time, first fit\n"
                "  leased       8.0 MiB in the mean, in units of 8.0 MiB; 1.0000 of the "
                "least\n");
}

TEST_F(PlaceTest, TheTableThatIsWrittenIsAPlacement) {
  options_.output = work_->File("out");
  ASSERT_EQ(Place(kTable).code, 0);
  const Result<std::string> written = ReadWholeFile(options_.output);
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_EQ(*written, "id,lower,upper,size,offset\na,0,4,5,0\nb,2,6,6,5\nc,4,9,5,0\n");
}

TEST_F(PlaceTest, ACapacityIsAnsweredWithTheExitCode) {
  options_.capacity_bytes = 11;
  EXPECT_EQ(Place(kTable).code, 0);
  EXPECT_NE(Place(kTable).out.find("11 B (11 bytes): it fits\n"), std::string::npos);
  options_.capacity_bytes = 10;
  options_.output = work_->File("out");
  const Output output = Place(kTable);
  EXPECT_EQ(output.code, 1);
  EXPECT_NE(output.out.find("10 B (10 bytes): no placement fits\n"), std::string::npos)
      << output.out;
  EXPECT_FALSE(ReadWholeFile(options_.output).ok()) << "what is there looks like an answer";
}

TEST_F(PlaceTest, JsonHasTheSame) {
  options_.json = true;
  options_.capacity_bytes = 10;
  options_.unit_bytes = 4;
  const Output output = Place(kTable);
  EXPECT_EQ(output.code, 1);
  const auto json = nlohmann::json::parse(output.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << output.out;
  EXPECT_EQ(json["buffers"], 3);
  EXPECT_EQ(json["objective"], "footprint");
  EXPECT_EQ(json["footprint_bytes"], 11);
  EXPECT_EQ(json["lower_bound_bytes"], 11);
  EXPECT_EQ(json["method"], "time, first fit");
  EXPECT_EQ(json["capacity_bytes"], 10);
  EXPECT_EQ(json["fits"], false);
  EXPECT_EQ(json["unit_bytes"], 4);
  // In units of 4: 2 for a alone, 3 with b, 3 for b and c, 2 for c.
  EXPECT_DOUBLE_EQ(json["mean_leased_bytes"].get<double>(),
                   4 * (2 * 2 + 2 * 3 + 2 * 3 + 3 * 2) / 9.0);
  options_.capacity_bytes.reset();
  const auto free = nlohmann::json::parse(Place(kTable).out, nullptr, false);
  EXPECT_TRUE(free["capacity_bytes"].is_null());
  EXPECT_EQ(free["fits"], true);
}

TEST_F(PlaceTest, TheObjectiveDecides) {
  // What lies across units is held longer; the lower placement has that.
  options_.objective = scheduler::PlaceObjective::kLeased;
  options_.unit_bytes = 10;
  options_.json = true;
  std::string table = "id,lower,upper,size\n";
  uint64_t state = 1;
  for (int i = 0; i < 40; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const uint64_t lower = (state >> 33) % 30;
    table += std::to_string(i) + "," + std::to_string(lower) + "," +
             std::to_string(lower + 1 + (state >> 45) % 20) + "," +
             std::to_string(1 + (state >> 55) % 30) + "\n";
  }
  const auto leased = nlohmann::json::parse(Place(table).out, nullptr, false);
  options_.objective = scheduler::PlaceObjective::kFootprint;
  const auto low = nlohmann::json::parse(Place(table).out, nullptr, false);
  EXPECT_EQ(leased["objective"], "leased");
  EXPECT_LT(leased["mean_leased_bytes"], low["mean_leased_bytes"]);
  EXPECT_GT(leased["footprint_bytes"], low["footprint_bytes"]);
}

TEST_F(PlaceTest, ATraceIsPlacedAtABatch) {
  options_.batch = 2;
  options_.output = work_->File("out");
  ASSERT_EQ(Place(kTrace).code, 0);
  EXPECT_EQ(*ReadWholeFile(options_.output),
            "id,lower,upper,size,offset\n1,0,2,25,0\n2,1,3,20,25\n");
  options_.granule_bytes = 16;
  ASSERT_EQ(Place(kTrace).code, 0);
  EXPECT_EQ(*ReadWholeFile(options_.output),
            "id,lower,upper,size,offset\n1,0,2,32,0\n2,1,3,32,32\n");
}

TEST_F(PlaceTest, WhatIsWrongIsOneLineThatNamesIt) {
  const auto why = [&](const std::string& text) {
    const Output output = Place(text);
    EXPECT_EQ(output.code, 2);
    EXPECT_EQ(output.out, "");
    return output.err;
  };
  EXPECT_EQ(
      why("id,lower,upper,size\na,0,0,1\n"),
      "sluice: " + work_->File("in") + ": line 2: upper: is 0, but must be above lower (0)\n");
  EXPECT_EQ(why(kTrace), "sluice: --batch: needed for " + work_->File("in") +
                             ", a memory trace; allowed: from 1 to 1048576 samples\n");
  EXPECT_NE(why("# sluice-trace 2\n").find(": line 1: "), std::string::npos);
  options_.granule_bytes = 2;
  EXPECT_NE(why(kTable).find("--granule: "), std::string::npos);
  options_.batch = 1;
  EXPECT_NE(why(kTable).find("--batch: "), std::string::npos);
  options_ = {};
  options_.output = "/no/such/folder/out";
  EXPECT_EQ(why(kTable), "sluice: /no/such/folder/out: No such file or directory\n");
  options_.file = "/no/such/file";
  EXPECT_EQ(RunPlace(options_).err, "sluice: /no/such/file: No such file or directory\n");
}

}  // namespace
}  // namespace sluice::cli
