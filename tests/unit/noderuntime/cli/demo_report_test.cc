// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/demo_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::cli {
namespace {

/// A run in which everything the demo promises was kept.
DemoResult Good() {
  DemoResult result;
  result.options.iterations = 200;
  result.pool_bytes = 36u << 20;
  result.solo = {{{"job 1", "small-a", 1}, {"0x1p+0"}, 30u << 20, 2.0},
                 {{"job 2", "small-b", 2}, {"0x1p+0"}, 31u << 20, 3.0}};
  result.crowded = CrowdedResult{true, "job 2", "cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY"};
  result.flow = {"flow", true, 200, "", "", 5.25, 400u << 20, 0, 0, 0, {}};
  result.temporal = {"temporal", true, 200, "", "", 5.5, 0, 0, 0, 0, {}};
  result.credit_off = {"flow", false, 50, "", "", 1.5, 10u << 20, 0, 0, 0, {}};
  result.history.labels = {"job 1", "job 2"};
  result.history.pool_bytes = result.pool_bytes;
  result.history.steps = {{0, 0, 20u << 20}, {0, 1, 10u << 20}, {100, 0, 10u << 20}};
  return result;
}

TEST(FailedAssertions, NoneWhenEverythingWasKept) {
  EXPECT_EQ(FailedAssertions(Good()), std::vector<std::string>{});
}

struct Breach {
  void (*make)(DemoResult&);
  std::string line;
};
class Breaches : public testing::TestWithParam<Breach> {};

TEST_P(Breaches, AreNamed) {
  DemoResult result = Good();
  GetParam().make(result);
  EXPECT_EQ(FailedAssertions(result), std::vector<std::string>{GetParam().line});
}

INSTANTIATE_TEST_SUITE_P(
    All, Breaches,
    testing::Values(
        Breach{[](DemoResult& r) { r.pool_bytes = 40u << 20; },
               "the pool is not smaller than 65 % of the sum of the solo peaks"},
        Breach{[](DemoResult& r) { r.crowded->out_of_memory = false; },
               "no job ran out of memory without Sluice"},
        Breach{[](DemoResult& r) { r.flow.failure = "job 1: killed"; },
               "policy flow: a job did not finish: job 1: killed"},
        Breach{[](DemoResult& r) { r.temporal.loss_difference = "job 1: iteration 3"; },
               "policy temporal: losses differ from the solo run: job 1: iteration 3"},
        Breach{[](DemoResult& r) { r.flow.over_budget_moments = 2; },
               "policy flow: 2 moments over the budget"},
        Breach{[](DemoResult& r) { r.flow.over_limit_moments = 2; },
               "policy flow: 2 moments over a claim or limit"},
        Breach{[](DemoResult& r) { r.credit_off.oracle_violations = 1; },
               "policy flow without credit: 1 kernels touched memory that their job did not hold"},
        Breach{[](DemoResult& r) { r.temporal.violations = {"event log line 4: I3: unsafe"}; },
               "policy temporal: event log line 4: I3: unsafe"},
        Breach{[](DemoResult& r) { r.temporal.lent_bytes = 1u << 20; },
               "policy temporal: 1.0 MiB were lent within iterations, must be exactly 0"},
        Breach{[](DemoResult& r) { r.credit_off.lent_bytes = 90u << 20; },
               "lending did not collapse without the credit"}));

TEST(FailedAssertions, ARunThatLendsNothingFails) {
  DemoResult result = Good();
  result.flow.lent_bytes = 0;
  const auto failed = FailedAssertions(result);
  ASSERT_FALSE(failed.empty());
  EXPECT_EQ(failed.front(), "policy flow: nothing was lent within iterations");
}

TEST(RenderJson, HasTheKeysThatScriptsRead) {
  const auto json = nlohmann::json::parse(RenderJson(Good()));
  EXPECT_EQ(json["jobs"], 2);
  EXPECT_EQ(json["solo_peak_bytes"], (nlohmann::json{30u << 20, 31u << 20}));
  EXPECT_EQ(json["pool_bytes"], 36u << 20);
  EXPECT_EQ(json["oom_without_sluice"], true);
  EXPECT_EQ(json["losses_bit_equal"], true);
  EXPECT_EQ(json["lent_bytes_within_iterations"], 400u << 20);
  EXPECT_EQ(json["lent_bytes_within_iterations_temporal"], 0);
  EXPECT_EQ(json["over_budget_moments"], 0);
  EXPECT_EQ(json["oracle_violations"], 0);
  EXPECT_EQ(json["simulated_s"]["solo_sum"], 5.0);
  EXPECT_EQ(json["simulated_s"]["temporal"], 5.5);
  EXPECT_EQ(json["simulated_s"]["shared"], 5.25);
  EXPECT_EQ(json["lent_bytes_per_iteration_credit_on"], 2.0 * (1u << 20));
  EXPECT_EQ(json["lent_bytes_per_iteration_credit_off"], 0.2 * (1u << 20));
}

TEST(RenderReport, MarksEverySimulatedFigure) {
  const std::string text = RenderReport(Good(), false);
  size_t marks = 0;
  for (size_t at = 0; (at = text.find("simulated", at)) != std::string::npos; ++at) ++marks;
  // The picture, two peaks, their sum, three times.
  EXPECT_EQ(marks, 7u) << text;
  EXPECT_NE(text.find("36.0 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("5.250 s  1.05 of one after another, simulated"), std::string::npos) << text;

  DemoResult real = Good();
  real.options.real_gpu = true;
  EXPECT_EQ(RenderReport(real, false).find("simulated"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
