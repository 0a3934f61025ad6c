// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trial/trials.h"

#include <gtest/gtest.h>

#include <map>
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

/// Two jobs whose iterations take 100 ns. Under the second way one of them stands still for a
/// while.
class Standing {
 public:
  /// From `from_ns` after that way came into force.
  Standing(double from_ns, double for_ns) : from_ns_(from_ns), for_ns_(for_ns) {}

  void Run(Trials* trials) {
    double since_ns = 0;
    for (int i = 0; i < 100'000 && !trials->done(); ++i) {
      now_ns_ += 10;
      for (Progress& job : jobs_) {
        const double at = now_ns_ - since_ns;
        const bool second = trials->current() == 1 && job.job == 2;
        if (second && at > from_ns_ && at <= from_ns_ + for_ns_) continue;
        if ((done_ns_[job.job] += 10) < 100) continue;
        done_ns_[job.job] = 0;
        ++job.iterations;
        job.last_end_ns = now_ns_;
      }
      const size_t before = trials->current();
      if (!trials->Observe(jobs_, now_ns_)) continue;
      took_ns_[before].push_back(now_ns_ - since_ns);
      since_ns = now_ns_;
    }
  }
  /// How long the looks at a way took.
  const std::vector<double>& took_ns(size_t way) { return took_ns_[way]; }

 private:
  double from_ns_;
  double for_ns_;
  double now_ns_ = 0;
  std::vector<Progress> jobs_ = {{.job = 1, .gpu_ns = 100}, {.job = 2, .gpu_ns = 100}};
  std::map<JobId, double> done_ns_;
  std::map<size_t, std::vector<double>> took_ns_;
};

/// What its jobs do is not alike from one iteration to the next.
TEST(Trials, MeasuresAWayThatLastsAtLeastSoLongOverAllOfThatTime) {
  Standing node(1'000, 1'000);
  Trials trials(2, TrialOptions());
  trials.LastsAtLeast(1, 2'000);
  node.Run(&trials);
  ASSERT_TRUE(trials.done());
  EXPECT_NEAR(trials.Rate(0), 2, 1e-9);
  EXPECT_NEAR(trials.Rate(1), 1.5, 0.05) << "who stands still for half of it counts half";
  for (const double ns : node.took_ns(1)) EXPECT_NEAR(ns, 2'000, 20);
  for (const double ns : node.took_ns(0))
    EXPECT_LT(ns, 800) << "five iterations and what was under way";
  EXPECT_FALSE(trials.cut_short());
  EXPECT_EQ(trials.current(), 0u);

  // As long as it takes is as long as nobody stands still.
  Standing shorter(1'000, 1'000);
  Trials others(2, TrialOptions());
  shorter.Run(&others);
  EXPECT_NEAR(others.Rate(1), 2, 1e-9);
}

/// A job at its gate 0 goes to host memory as soon as the way is in force.
TEST(Trials, CountsTheTimeInWhichAJobStandsStillFromTheBeginning) {
  Standing node(0, 1'000);
  Trials trials(2, TrialOptions());
  trials.LastsAtLeast(1, 2'000);
  node.Run(&trials);
  ASSERT_TRUE(trials.done());
  EXPECT_NEAR(trials.Rate(0), 2, 1e-9);
  EXPECT_NEAR(trials.Rate(1), 1.5, 0.1);
}

/// Large bases take long to be away once each.
TEST(Trials, AWayThatLastsLongerThanALookMayIsNotCut) {
  Standing node(1'000, 1'000);
  TrialOptions options;
  options.most_ns = 1'500;
  Trials trials(2, options);
  trials.LastsAtLeast(1, 2'000);
  node.Run(&trials);
  ASSERT_TRUE(trials.done());
  for (const double ns : node.took_ns(1)) EXPECT_NEAR(ns, 2'000, 20);
  EXPECT_FALSE(trials.cut_short());
}

/// Whatever it lasts, everybody has ended a few iterations.
TEST(Trials, AWayThatLastsAtLeastSoLongLastsUntilEverybodyHasIteratedToo) {
  Standing node(100, 5'000);
  Trials trials(2, TrialOptions());
  trials.LastsAtLeast(1, 2'000);
  node.Run(&trials);
  ASSERT_TRUE(trials.done());
  for (const double ns : node.took_ns(1)) EXPECT_NEAR(ns, 5'000 + 500, 50);
  EXPECT_NEAR(trials.Rate(1), 1 + 4 * 100 / 5'400., 0.02);
  EXPECT_FALSE(trials.cut_short());
  // But for a look's longest time.
  TrialOptions options;
  options.most_ns = 3'000;
  Standing other(100, 5'000);
  Trials cut(2, options);
  cut.LastsAtLeast(1, 2'000);
  other.Run(&cut);
  EXPECT_TRUE(cut.cut_short());
  EXPECT_NEAR(cut.Rate(1), 1, 0.05);
}

}  // namespace
}  // namespace sluice::scheduler
