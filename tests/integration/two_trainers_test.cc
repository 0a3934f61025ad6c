// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>

#include "common/bytes.h"
#include "tests/support/trainer.h"

namespace sluice::testing {
namespace {

// Learning the cycle of both takes some 20 iterations; the rest is for lending.
const TrainerRun kRuns[] = {{"small-a", 1, 100, {}}, {"small-b", 2, 100, {}}};
constexpr uint64_t kContext = 4 * kMiB;  // of the simulated GPU's default machine

/// Two unchanged training programs whose peaks do not fit together.
class TwoTrainers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    solo_ = new std::vector<TrainerResult>();
    for (const TrainerRun& run : kRuns) solo_->push_back(RunAlone(run));
    pool_ = PoolFor(*solo_, 0.645);
  }
  static void TearDownTestSuite() { delete solo_; }

  /// Both under Sluice; what they computed and what the GPU saw are checked here for every policy.
  static scheduler::AuditReport Share(const std::string& policy) {
    BedOptions options = TrainerBed();
    options.pool = std::to_string(pool_);
    options.gpu_memory = std::to_string(pool_ + 3 * kContext);
    options.noded_flags = {"--policy", policy};
    TestBed bed(options);
    cli::JobGroup group;
    for (const TrainerRun& run : kRuns) {
      group.Add(bed.Start({.label = run.Label(), .command = run.Command()}));
    }
    Finish(group);
    for (size_t i = 0; i < solo_->size(); ++i) ExpectSameLosses((*solo_)[i], group.jobs()[i]);
    bed.StopDaemon();
    EXPECT_EQ(bed.gpu().Stats().at("oracle_violations"), 0);

    scheduler::AuditReport report = bed.log().Audit();
    EXPECT_EQ(report.over_budget_moments, 0u);
    EXPECT_EQ(report.over_limit_moments, 0u);
    EXPECT_TRUE(report.violations.empty()) << Violations(report);
    EXPECT_EQ(report.policy, policy);
    EXPECT_EQ(report.jobs.size(), solo_->size());
    const cli::CommandOutput checked = bed.Sluice({"check-log", bed.log().path()});
    EXPECT_TRUE(checked.status.ok()) << checked.out << checked.err;
    return report;
  }

  static std::vector<TrainerResult>* solo_;
  static uint64_t pool_;
};
std::vector<TrainerResult>* TwoTrainers::solo_ = nullptr;
uint64_t TwoTrainers::pool_ = 0;

TEST_F(TwoTrainers, PeaksAreLargeAndDoNotFit) {
  uint64_t sum = 0;
  for (const TrainerResult& solo : *solo_) {
    EXPECT_GE(solo.peak_bytes, 64 * 256 * kKiB);
    EXPECT_LE(solo.peak_bytes, pool_);
    sum += solo.peak_bytes;
  }
  EXPECT_LT(static_cast<double>(pool_), 0.65 * static_cast<double>(sum));
}

TEST_F(TwoTrainers, WithoutSluiceOneRunsOutOfMemory) {
  BedOptions options = TrainerBed();
  options.gpu_memory = std::to_string(pool_ + 2 * kContext);
  options.start_noded = false;
  const TestBed bed(options);
  cli::JobGroup group;
  for (const TrainerRun& run : kRuns) {
    group.Add(bed.Start({.label = run.Label(), .command = run.Command(), .under_sluice = false}));
  }
  Finish(group);
  const auto out_of_memory = [](const cli::JobProcess& job) {
    return !job.status().ok() &&
           std::any_of(job.err().begin(), job.err().end(), [](const std::string& line) {
             return line.find("out of memory") != std::string::npos;
           });
  };
  EXPECT_TRUE(std::any_of(group.jobs().begin(), group.jobs().end(), out_of_memory))
      << Describe(group.jobs()[0]) << Describe(group.jobs()[1]);
}

TEST_F(TwoTrainers, FlowLendsWithinIterations) {
  const scheduler::AuditReport report = Share("flow");
  EXPECT_GT(report.lent_bytes_within_iterations, 0u);
}

TEST_F(TwoTrainers, TemporalLendsNothingWithinIterations) {
  const scheduler::AuditReport report = Share("temporal");
  EXPECT_EQ(report.lent_bytes_within_iterations, 0u);
}

}  // namespace
}  // namespace sluice::testing
