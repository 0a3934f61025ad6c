// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/max_batch.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::cli {
namespace {

using nlohmann::json;

class MaxBatchTest : public testing::Test {
 protected:
  MaxBatchTest() {
    options_.scenario.policy = "temporal";
    options_.json = true;
  }
  void Add(const std::string& model) {
    options_.files.push_back(std::string(SLUICE_TRACES) + "/" + model + ".trace");
  }
  Output Find() const { return RunMaxBatch(options_, SLUICE_MACHINES); }
  json Answer() const {
    const Output output = Find();
    EXPECT_EQ(output.code, 0) << output.err;
    return json::parse(output.out, nullptr, false);
  }

  MaxBatchOptions options_;
};

/// By hand: both bases and one peak in 31 GiB, one job in 31.5.
TEST_F(MaxBatchTest, OnePeakFitsBesideTheBases) {
  Add("bert-base");
  Add("bert-base");
  const json fits = Answer()["fits"];
  EXPECT_EQ(fits["jobs"][0]["batch"], 187);
  EXPECT_EQ(fits["jobs"][0]["batch_alone"], 198);
  EXPECT_NEAR(fits["throughput"].get<double>(), 1, 0.01);
}

TEST_F(MaxBatchTest, WithPlacingLessFits) {
  Add("bert-base");
  Add("bert-base");
  options_.scenario.placing = scheduler::Placing::kPieces;
  const json answer = Answer();
  EXPECT_EQ(answer["placing"], "pieces");
  const json job = answer["fits"]["jobs"][0];
  EXPECT_EQ(job["batch"], 180) << "a thirty-second and six units less than 187";
  EXPECT_EQ(job["batch_alone"], 191);
  options_.json = false;
  EXPECT_NE(Find().out.find("  placing          pieces"), std::string::npos);
}

/// Where a node would begin, and its job might run out of memory, is no batch to go by.
TEST_F(MaxBatchTest, WithPlacingWhatIsAskedForHasToFit) {
  Add("bert-base");
  options_.scenario.pool_bytes = uint64_t{2170} << 20;
  EXPECT_EQ(Find().code, 0);
  options_.scenario.placing = scheduler::Placing::kPieces;
  const Output alone = Find();
  EXPECT_EQ(alone.code, 1);
  EXPECT_NE(alone.err.find("with a batch of one sample and --placing pieces, the pool has"),
            std::string::npos)
      << alone.err;
  options_.files.clear();
  Add("resnet50");
  Add("resnet50");
  options_.scenario.pool_bytes = uint64_t{580} << 20;
  const Output two = Find();
  EXPECT_EQ(two.code, 1);
  EXPECT_NE(two.err.find("one sample each and --placing pieces"), std::string::npos) << two.err;
}

TEST_F(MaxBatchTest, SideBySideEveryPeakHasToFit) {
  options_.scenario.policy = "spatial";
  Add("resnet50");
  Add("resnet50");
  const json job = Answer()["fits"]["jobs"][0];
  EXPECT_NEAR(job["ratio"].get<double>(), 0.49, 0.01);
}

TEST_F(MaxBatchTest, DifferentJobsGrowTogether) {
  Add("resnet50");
  Add("bert-base");
  const json jobs = Answer()["fits"]["jobs"];
  EXPECT_NEAR(jobs[0]["ratio"].get<double>(), jobs[1]["ratio"].get<double>(), 0.01);
  EXPECT_GT(jobs[0]["ratio"].get<double>(), 0.9);
}

TEST_F(MaxBatchTest, WhatKeepsTheThroughputIsSmaller) {
  Add("resnet50");
  Add("resnet50");
  options_.scenario.policy = "flow";
  options_.scenario.setting.claims = scheduler::Claims::kCurve;
  options_.scenario.sharing = Sharing::kMps;
  options_.scenario.sharing_variant = SharingVariant::kRoofline;
  options_.keep_percent = 95;
  const json answer = Answer();
  EXPECT_EQ(answer["fits"]["jobs"][0]["batch"], 376);
  EXPECT_LT(answer["keeps"]["jobs"][0]["batch"], 330);
  EXPECT_GE(answer["keeps"]["throughput"].get<double>(),
            0.95 * answer["keeps"]["throughput_unlimited_memory"].get<double>());
  options_.json = false;
  const std::string text = Find().out;
  EXPECT_NE(text.find("376 samples, 0.97 of the 387 it could have alone"), std::string::npos)
      << text;
  EXPECT_NE(text.find("largest that keeps 95 %"), std::string::npos);
}

TEST_F(MaxBatchTest, SaysWhenNoBatchFits) {
  Add("bert-base");
  options_.scenario.pool_bytes = uint64_t{1} << 30;
  const Output output = Find();
  EXPECT_EQ(output.code, 1);
  EXPECT_NE(output.err.find("bert-base needs 2.1 GiB"), std::string::npos) << output.err;
  const json answer = json::parse(output.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << output.out;
  EXPECT_EQ("sluice: " + answer["error"].get<std::string>() + "\n", output.err);
  options_.json = false;
  EXPECT_EQ(Find().out, "");
}

TEST_F(MaxBatchTest, AUnitLargerThanThePoolIsRefusedByItsFlag) {
  Add("bert-base");
  options_.scenario.unit_bytes = uint64_t{64} << 30;
  const Output output = Find();
  EXPECT_EQ(output.code, 2);
  EXPECT_NE(output.err.find("--unit: 64.0 GiB is more than the pool"), std::string::npos)
      << output.err;
}

TEST_F(MaxBatchTest, WhatFitsMayKeepTheThroughputAsItIs) {
  Add("resnet50");
  Add("resnet50");
  options_.keep_percent = 50;
  const json answer = Answer();
  EXPECT_EQ(answer["keeps"], answer["fits"]);
  EXPECT_EQ(answer["fits"]["flags"], "--policy temporal");
}

/// What is found within a budget is what a pool of that size would give.
TEST_F(MaxBatchTest, ABudgetIsAllThatThereIs) {
  Add("resnet50");
  Add("resnet50");
  options_.scenario.policy = "flow";
  options_.scenario.setting.claims = scheduler::Claims::kCurve;
  options_.scenario.setting.budget = 1280;  // 10 GiB
  const json budget = Answer();
  ASSERT_TRUE(budget.is_object());
  options_.scenario.setting.budget = 0;
  options_.scenario.pool_bytes = uint64_t{10} << 30;
  const json pool = Answer();
  EXPECT_GT(budget["fits"]["jobs"][0]["batch"], 50);
  EXPECT_EQ(budget["fits"]["jobs"], pool["fits"]["jobs"]);
}

TEST_F(MaxBatchTest, SaysWhenNothingFitsIntoTheBudget) {
  Add("bert-base");
  options_.scenario.policy = "flow";
  options_.scenario.setting.budget = 128;
  const Output output = Find();
  EXPECT_EQ(output.code, 1);
  const json answer = json::parse(output.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << output.out;
  EXPECT_EQ(answer["error"],
            "they do not fit: bert-base needs 2.1 GiB with a batch of one sample, the budget has "
            "1.0 GiB");
}

TEST_F(MaxBatchTest, BasesMayBeInHostMemory) {
  for (int i = 0; i < 3; ++i) Add("resnet50");
  options_.scenario.policy = "flow";
  options_.scenario.sharing = Sharing::kMps;
  options_.scenario.pool_bytes = uint64_t{824} << 20;
  options_.scenario.setting.claims = scheduler::Claims::kCurve;
  const json stay = Answer()["fits"];
  options_.scenario.setting.policy.residents = 2;
  options_.scenario.host_units = 40;
  const json turns = Answer()["fits"];
  EXPECT_EQ(turns["jobs"], stay["jobs"]) << "all have to be measured before one leaves";
  EXPECT_GT(turns["throughput"].get<double>(), 1.2 * stay["throughput"].get<double>());
  EXPECT_NE(turns["flags"].get<std::string>().find(
                "--residents 2 --slice 1000000000ns --host-memory 335544320"),
            std::string::npos)
      << turns["flags"];
}

/// A soft budget holds back who begins, and nobody who is there alone.
TEST_F(MaxBatchTest, ASoftBudgetLimitsNoBatch) {
  Add("resnet50");
  options_.scenario.policy = "flow";
  options_.scenario.setting.policy.soft_budget = 128;
  const json job = Answer()["fits"]["jobs"][0];
  EXPECT_EQ(job["ratio"], 1.0);
}

TEST_F(MaxBatchTest, ARunThatIsTooLongNamesTheBatchAndWhatToDo) {
  Add("resnet50");
  options_.scenario.pool_bytes = uint64_t{100} << 40;
  for (const char* policy : {"temporal", "flow", "auto", "spatial"}) {
    options_.scenario.policy = policy;
    const Output output = Find();
    EXPECT_EQ(output.code, 2) << policy;
    EXPECT_NE(output.err.find("sluice: resnet50 at a batch of 1048576 samples: the run is longer "
                              "than the 10000 s that are simulated: an iteration of resnet50 "
                              "takes 22"),
              std::string::npos)
        << output.err;
    EXPECT_NE(output.err.find("and of each job there are 8; allowed: smaller batches (a smaller "
                              "--pool), fewer --iterations, less --gap or --stagger\n"),
              std::string::npos)
        << output.err;
  }
}

}  // namespace
}  // namespace sluice::cli
