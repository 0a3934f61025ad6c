// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/trainer_crowd.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/bytes.h"
#include "noderuntime/cli/trainer_output.h"

namespace sluice::testing {
namespace {

constexpr uint64_t kContext = 4 * kMiB;  // of the simulated GPU's default machine
constexpr uint64_t kHandle = 2 * kMiB;
/// Every iteration has the same peak; the first two already collide.
constexpr uint64_t kCollidingIterations = 20;
constexpr int kShareMs = 240'000;

bool RanOutOfMemory(const cli::JobProcess& job) {
  return !job.status().ok() &&
         std::any_of(job.err().begin(), job.err().end(), [](const std::string& line) {
           return line.find("out of memory") != std::string::npos;
         });
}

std::string DescribeAll(cli::JobGroup& group) {
  std::string text;
  for (const cli::JobProcess& job : group.jobs()) text += Describe(job);
  return text;
}

}  // namespace

TrainerCrowd::TrainerCrowd(std::vector<Arrival> jobs, double pool_fraction)
    : jobs_(std::move(jobs)) {
  uint64_t sum = 0;
  for (const Arrival& job : jobs_) {
    solo_.push_back(RunAlone(job.run));
    sum += solo_.back().peak_bytes;
  }
  pool_ = static_cast<uint64_t>(static_cast<double>(sum) * pool_fraction) / kHandle * kHandle;
  for (const TrainerResult& result : solo_) EXPECT_LE(result.peak_bytes, pool_);
}

void TrainerCrowd::ExpectOutOfMemoryWithoutSluice() const {
  BedOptions options = TrainerBed();
  options.gpu_memory = std::to_string(pool_ + jobs_.size() * kContext);
  options.start_noded = false;
  const TestBed bed(options);
  cli::JobGroup group;
  for (const Arrival& job : Shortened(kCollidingIterations)) {
    group.Add(
        bed.Start({.label = job.run.Label(), .command = job.run.Command(), .under_sluice = false}));
  }
  Finish(group);
  EXPECT_TRUE(std::any_of(group.jobs().begin(), group.jobs().end(), RanOutOfMemory))
      << DescribeAll(group);
}

scheduler::AuditReport TrainerCrowd::Share(const std::string& policy, uint64_t iterations) const {
  const std::vector<Arrival> jobs = Shortened(iterations);
  BedOptions options = TrainerBed();
  options.pool = std::to_string(pool_);
  options.gpu_memory = std::to_string(pool_ + (jobs.size() + 1) * kContext);
  options.noded_flags = {"--policy", policy};
  TestBed bed(options);
  cli::JobGroup group;
  StartDue(bed, jobs, group);
  Finish(group, kShareMs, [&](cli::JobGroup& running) { StartDue(bed, jobs, running); });

  EXPECT_EQ(group.jobs().size(), jobs.size());
  for (size_t i = 0; i < group.jobs().size(); ++i) {
    TrainerResult expected = solo_[i];
    expected.losses.resize(std::min(expected.losses.size(), jobs[i].run.iterations));
    ExpectSameLosses(expected, group.jobs()[i]);
  }
  bed.StopDaemon();
  EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);

  scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  EXPECT_EQ(report.policy, policy);
  EXPECT_EQ(report.jobs.size(), jobs.size());
  const cli::CommandOutput checked = bed.Sluice({"check-log", bed.log().path()});
  EXPECT_TRUE(checked.status.ok()) << checked.out << checked.err;
  return report;
}

// Jobs are listed in the order of their arrival, so the group holds a prefix of the list.
void TrainerCrowd::StartDue(const TestBed& bed, const std::vector<Arrival>& jobs,
                            cli::JobGroup& running) {
  while (running.jobs().size() < jobs.size()) {
    const Arrival& next = jobs[running.jobs().size()];
    const bool due =
        next.after < 0 ||
        cli::CountLosses(running.jobs()[static_cast<size_t>(next.after)].out()) >= next.losses;
    if (!due) return;
    running.Add(bed.Start({.label = next.run.Label(), .command = next.run.Command()}));
  }
}

std::vector<Arrival> TrainerCrowd::Shortened(uint64_t iterations) const {
  std::vector<Arrival> jobs = jobs_;
  for (Arrival& job : jobs) job.run.iterations = std::min(job.run.iterations, iterations);
  return jobs;
}

}  // namespace sluice::testing
