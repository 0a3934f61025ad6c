// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trial/trials.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace sluice::scheduler {
namespace {

/// Two jobs whose iterations take, under each way, so long.
class Node {
 public:
  explicit Node(std::vector<std::vector<double>> iteration_ns)
      : iteration_ns_(std::move(iteration_ns)) {}

  /// Looks every `step_ns` until the trials are done; the way that stays.
  size_t Run(Trials* trials, double step_ns) {
    size_t way = trials->current();
    for (int i = 0; i < 1'000'000 && !trials->done(); ++i) {
      now_ns_ += step_ns;
      for (size_t j = 0; j < jobs_.size(); ++j) Advance(&jobs_[j], iteration_ns_[way][j]);
      if (!trials->Observe(jobs_, now_ns_)) continue;
      way = trials->current();
      order_.push_back(way);
    }
    return trials->current();
  }
  const std::vector<size_t>& order() const { return order_; }

 private:
  void Advance(Progress* job, double iteration_ns) const {
    while (job->last_end_ns + iteration_ns <= now_ns_) {
      job->last_end_ns += iteration_ns;
      ++job->iterations;
    }
  }

  std::vector<std::vector<double>> iteration_ns_;  // [way][job]
  std::vector<Progress> jobs_ = {{.job = 1, .gpu_ns = 100}, {.job = 2, .gpu_ns = 30}};
  std::vector<size_t> order_;
  double now_ns_ = 0;
};

TEST(Trials, MeasuresEachWayInTurnAndKeepsTheBest) {
  Node node({{200, 100}, {150, 90}, {180, 80}});
  Trials trials(3, TrialOptions());
  EXPECT_EQ(node.Run(&trials, 7), 1u);
  EXPECT_EQ(node.order(), (std::vector<size_t>{1, 2, 0, 1, 2, 1}));
  EXPECT_NEAR(trials.Rate(0), 100. / 200 + 30. / 100, 1e-9);
  EXPECT_NEAR(trials.Rate(1), 100. / 150 + 30. / 90, 1e-9);
  EXPECT_NEAR(trials.Rate(2), 100. / 180 + 30. / 80, 1e-9);
}

/// How often somebody looks is not what is measured.
TEST(Trials, CountsFromTheEndOfAnIterationToTheEndOfAnother) {
  for (const double step : {1., 33., 250., 1700.}) {
    Node node({{200, 100}, {150, 90}});
    Trials trials(2, TrialOptions());
    EXPECT_EQ(node.Run(&trials, step), 1u) << step;
    EXPECT_NEAR(trials.Rate(0), 0.8, 1e-9) << step;
  }
}

TEST(Trials, StaysWithWhatIsInForceForALittleMore) {
  Node little({{200, 100}, {198, 99}});
  Trials trials(2, TrialOptions());
  EXPECT_EQ(little.Run(&trials, 7), 0u);
  Node enough({{200, 100}, {190, 95}});
  Trials other(2, TrialOptions());
  EXPECT_EQ(enough.Run(&other, 7), 1u);
}

TEST(Trials, StaysWithTheSteadyOneForALittleMore) {
  Node node({{200, 100}, {150, 90}, {152, 91}});
  Trials trials(3, TrialOptions(), 2);
  EXPECT_EQ(node.Run(&trials, 7), 2u) << "the second gets one percent more done";
  Trials other(3, TrialOptions(), 0);
  EXPECT_EQ(Node({{200, 100}, {150, 90}, {152, 91}}).Run(&other, 7), 1u);
  Trials in_force(3, TrialOptions(), 2);
  EXPECT_EQ(Node({{200, 100}, {198, 99}, {300, 150}}).Run(&in_force, 7), 0u)
      << "the steady one is far off";
  // The one in force is no better than the steady one, another is.
  Trials neither(3, TrialOptions(), 1);
  EXPECT_EQ(Node({{198, 99}, {200, 100}, {194, 97}}).Run(&neither, 7), 2u);
}

/// What was under way belongs to the way before.
TEST(Trials, LeavesOutTheFirstIterationOfALook) {
  TrialOptions options;
  options.rounds = 1;
  Trials trials(2, options);
  std::vector<Progress> job = {{.job = 1, .gpu_ns = 10}};
  double now = 0;
  bool fresh = true;
  trials.Observe(job, now);
  while (!trials.done()) {
    now += fresh ? 500 : 10;
    ++job[0].iterations;
    job[0].last_end_ns = now;
    fresh = trials.Observe(job, now);
    if (fresh) trials.Observe(job, now);
  }
  EXPECT_NEAR(trials.Rate(0), 1, 1e-9);
  EXPECT_NEAR(trials.Rate(1), 1, 1e-9);
}

/// A job that gets nowhere does not keep the others in a bad way for good.
TEST(Trials, EndsALookInWhichSomebodyGetsNowhere) {
  TrialOptions options;
  options.most_ns = 10'000;
  Node node({{200, 100}, {150, 1e12}});
  Trials trials(2, options);
  EXPECT_EQ(node.Run(&trials, 7), 0u);
  EXPECT_NEAR(trials.Rate(1), 100. / 150, 1e-9);
  EXPECT_TRUE(trials.cut_short());
}

TEST(Trials, OneWayNeedsNoChange) {
  Node node({{200, 100}});
  Trials trials(1, TrialOptions());
  EXPECT_EQ(node.Run(&trials, 7), 0u);
  EXPECT_TRUE(node.order().empty());
  EXPECT_FALSE(trials.cut_short());
}

}  // namespace
}  // namespace sluice::scheduler
