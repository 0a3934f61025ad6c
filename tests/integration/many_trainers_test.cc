// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "common/bytes.h"
#include "noderuntime/cli/trainer_output.h"
#include "tests/support/trainer.h"

namespace sluice::testing {
namespace {

constexpr uint64_t kContext = 4 * kMiB;

/// When a job starts: once `after` has printed `losses` losses. Never by time.
struct Arrival {
  TrainerRun run;
  int after = -1;  // index of an earlier job; -1: at once
  size_t losses = 0;
};

struct Crowd {
  const char* name;
  double pool_fraction;
  std::vector<Arrival> jobs;
};

void PrintTo(const Crowd& crowd, std::ostream* out) { *out << crowd.name; }

class ManyTrainers : public ::testing::TestWithParam<Crowd> {};

TEST_P(ManyTrainers, ComputeWhatTheyComputeAlone) {
  const Crowd& crowd = GetParam();
  std::vector<TrainerResult> solo;
  for (const Arrival& arrival : crowd.jobs) solo.push_back(RunAlone(arrival.run));
  const uint64_t pool = PoolFor(solo, crowd.pool_fraction);
  for (const TrainerResult& result : solo) ASSERT_LE(result.peak_bytes, pool);

  BedOptions options = TrainerBed();
  options.pool = std::to_string(pool);
  options.gpu_memory = std::to_string(pool + (crowd.jobs.size() + 1) * kContext);
  TestBed bed(options);
  cli::JobGroup group;
  const auto start = [&](const Arrival& arrival) {
    group.Add(bed.Start({.label = arrival.run.Label(), .command = arrival.run.Command()}));
  };
  // Jobs are listed in the order of their arrival, so the group holds a prefix of the list.
  const auto start_due = [&](cli::JobGroup& running) {
    while (running.jobs().size() < crowd.jobs.size()) {
      const Arrival& next = crowd.jobs[running.jobs().size()];
      const bool due =
          next.after < 0 ||
          cli::CountLosses(running.jobs()[static_cast<size_t>(next.after)].out()) >= next.losses;
      if (!due) return;
      start(next);
    }
  };
  start_due(group);
  Finish(group, 240'000, start_due);

  ASSERT_EQ(group.jobs().size(), crowd.jobs.size());
  for (size_t i = 0; i < solo.size(); ++i) ExpectSameLosses(solo[i], group.jobs()[i]);
  bed.StopDaemon();
  EXPECT_EQ(bed.gpu().Stats().at("oracle_violations"), 0);
  const scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  EXPECT_GT(report.lent_bytes_within_iterations, 0u);
  EXPECT_EQ(report.jobs.size(), crowd.jobs.size());
}

INSTANTIATE_TEST_SUITE_P(
    Crowds, ManyTrainers,
    ::testing::Values(Crowd{"Three",
                            0.5,
                            {{{"small-a", 1, 60, {}}, -1, 0},
                             {{"small-b", 2, 60, {}}, -1, 0},
                             {{"small-a", 3, 60, {"--optimizer", "adam"}}, -1, 0}}},
                      Crowd{"Four",
                            0.45,
                            {{{"small-a", 1, 60, {}}, -1, 0},
                             {{"small-b", 2, 60, {}}, -1, 0},
                             {{"small-a", 3, 60, {"--optimizer", "adam"}}, -1, 0},
                             {{"small-b", 4, 60, {}}, -1, 0}}},
                      // The first ends while the others run; the last comes when two are under way.
                      Crowd{"StartAndStopAtDifferentTimes",
                            0.5,
                            {{{"small-a", 1, 30, {}}, -1, 0},
                             {{"small-b", 2, 80, {}}, 0, 5},
                             {{"small-a", 3, 60, {}}, 1, 8}}}),
    [](const ::testing::TestParamInfo<Crowd>& crowd) { return std::string(crowd.param.name); });

}  // namespace
}  // namespace sluice::testing
