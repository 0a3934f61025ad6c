// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/tuner/tuner.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::tuner {
namespace {

using flow::FlowTest;
using flow::JobId;
using flow::Units;
using scheduler::Claims;
using scheduler::EventKind;

/// Answers when it is told to.
class HeldSearcher : public Searcher {
 public:
  void Begin(SearchTask task) override { tasks.push_back(std::move(task)); }
  void Drop() override {
    ++dropped;
    answer.reset();
  }
  std::optional<SearchResult> Take() override { return std::exchange(answer, std::nullopt); }

  std::vector<SearchTask> tasks;
  std::optional<SearchResult> answer;
  int dropped = 0;
};

/// Jobs of kLayers units that go from trough to trough as long as the test lets them.
class TunerTest : public FlowTest {
 protected:
  static constexpr uint32_t kLayers = 12;

  TunerTest() {
    options_.claims = Claims::kSteps;
    Restart();
    sink_.host = true;
  }
  void Join(JobId job, Units limit = 20) {
    Start(job, limit, 2);
    ASSERT_TRUE(Lease(job, 2).ok());
    clients_[job].Push(protocol::OpKind::kAlloc, 2 * kUnit);
    ASSERT_NE(Measure(job, kLayers), 0u);
    ASSERT_TRUE(Gate(job, 0, clients_[job].profile()).ok());
  }
  /// All that came behind gates, as who drains at its trough does.
  void GiveBack(JobId job) {
    const scheduler::Extents leased =
        flow_->ledger().map().Held(job, scheduler::UnitState::kLeased);
    flow::Units surplus = scheduler::TotalUnits(leased);
    surplus -= std::min(surplus, at_first_[job] == 0 ? at_first_[job] = surplus : at_first_[job]);
    std::vector<protocol::Extent> last;
    for (auto it = leased.rbegin(); it != leased.rend() && surplus > 0; ++it) {
      const flow::Units units = std::min(surplus, it->length);
      last.push_back({it->end() - units, units});
      surplus -= units;
    }
    if (!last.empty()) {
      EXPECT_TRUE(Release(job, last).ok());
    }
  }
  /// One iteration of each job, which takes so long.
  std::vector<std::string> Iterate(uint64_t iteration_ns) {
    std::vector<std::string> news;
    now_ += iteration_ns;
    ++iteration_;
    for (const auto& [job, client] : clients_) {
      if (flow_->Find(job) == nullptr) continue;
      GiveBack(job);
      EXPECT_TRUE(Gate(job, 0, client.profile(), iteration_).ok());
    }
    flow_->Tick(now_);
    if (const auto said = tuner_.Look(flow_.get(), now_)) news.push_back(*said);
    return news;
  }
  /// Iterations take as long as `took` says of the way in force.
  template <typename Took>
  std::vector<std::string> Until(State state, Took took) {
    std::vector<std::string> news;
    for (int i = 0; i < 500 && tuner_.state() != state; ++i) {
      for (std::string& said : Iterate(took(flow_->options()))) news.push_back(std::move(said));
    }
    EXPECT_EQ(tuner_.state(), state);
    return news;
  }
  static uint64_t Even(const flow::FlowOptions&) { return 100 * kMs; }
  SearchResult Found(const std::string& policy, Claims claims, Units soft = 0,
                     double credit_parts = 8) const {
    scheduler::simulate::Tuned tuned;
    tuned.temporal = 0.5;
    scheduler::simulate::Setting setting;
    setting.policy.policy = policy;
    setting.claims = claims;
    setting.policy.soft_budget = soft;
    setting.credit_parts = credit_parts;
    tuned.finalists = {{setting, 0.75}};
    return tuned;
  }
  void BeginMeasuring(const std::string& policy, Claims claims) {
    Until(State::kSearching, Even);
    searcher_.answer = Found(policy, claims);
    Until(State::kMeasuring, Even);
  }

  HeldSearcher searcher_;
  Tuner tuner_{TunerOptions(), &searcher_};
  uint64_t iteration_ = 0;
  std::map<scheduler::JobId, flow::Units> at_first_;
};

TEST_F(TunerTest, OneJobAloneNeedsNoChoice) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Iterate(100 * kMs).empty());
  EXPECT_EQ(tuner_.state(), State::kIdle);
  EXPECT_TRUE(searcher_.tasks.empty());
}

TEST_F(TunerTest, SearchesWithWhatWasMeasured) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  Until(State::kSearching, Even);
  ASSERT_EQ(searcher_.tasks.size(), 1u);
  const SearchTask& task = searcher_.tasks[0];
  EXPECT_EQ(task.options.pool_units, 40u);
  EXPECT_EQ(task.options.unit_bytes, kUnit);
  EXPECT_EQ(task.claims, Claims::kCurve);
  ASSERT_EQ(task.jobs.size(), 2u);
  EXPECT_EQ(task.jobs[1].kernels.size(), 2 * kLayers);
  EXPECT_EQ(task.jobs[1].name, "job2");
  EXPECT_NEAR(task.jobs[1].kernels[0].host_ns, 100. * kMs / (2 * kLayers), 1e3)
      << "100 ms by the clock";
}

/// A job whose gates ask for more than its limit is granted that, and it is what the model knows.
TEST_F(TunerTest, SearchesWithinTheLimits) {
  ASSERT_NO_FATAL_FAILURE(Join(1, 15));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  ASSERT_GT(flow_->Find(1)->published->plan.peak_units, 15u);
  Until(State::kSearching, Even);
  const SearchTask& task = searcher_.tasks.at(0);
  ASSERT_EQ(task.jobs.size(), 2u);
  EXPECT_EQ(task.jobs[0].plan.peak_units, 15u);
  EXPECT_EQ(task.jobs[0].limit, 15u) << "claims end there";
  EXPECT_EQ(task.jobs[1].plan.peak_units, flow_->Find(2)->published->plan.peak_units);
}

TEST_F(TunerTest, LowersNoClaimsOfWhoIsNotInsured) {
  sink_.host = false;
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  Until(State::kSearching, Even);
  EXPECT_EQ(searcher_.tasks.at(0).claims, Claims::kContract);
}

TEST_F(TunerTest, KeepsWhatMeasuresBest) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  BeginMeasuring("nodegroup", Claims::kCurve);
  const auto took = [](const flow::FlowOptions& options) {
    return (options.policy.policy == "nodegroup" ? 60 : 100) * kMs;
  };
  const std::vector<std::string> news = Until(State::kChosen, took);
  EXPECT_EQ(flow_->options().policy.policy, "nodegroup");
  EXPECT_EQ(flow_->options().claims, Claims::kCurve);
  ASSERT_FALSE(news.empty());
  EXPECT_EQ(news.back(), "auto: stays with nodegroup, 2 lanes, claims by curve for these 2 jobs");
  const std::vector<Tuner::Candidate> candidates = tuner_.candidates();
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].way, (Way{"flow", 2, Claims::kSteps}));
  EXPECT_EQ(candidates[1].way, (Way{"temporal", 1, Claims::kContract}));
  EXPECT_NEAR(candidates[2].predicted, 1.5, 1e-9);
  EXPECT_NEAR(candidates[2].measured / candidates[0].measured, 100. / 60, 1e-6);
}

TEST_F(TunerTest, SearchesWithTheHostMemoryThatItWasGiven) {
  for (const Units units : {Units{0}, Units{64}}) {
    TunerOptions options;
    options.host_units = units;
    tuner_ = Tuner(options, &searcher_);
    if (units == 0) {
      ASSERT_NO_FATAL_FAILURE(Join(1));
      ASSERT_NO_FATAL_FAILURE(Join(2));
    }
    Until(State::kSearching, Even);
    EXPECT_EQ(searcher_.tasks.back().options.host.units, units);
  }
}

/// What jobs do where bases are in host memory by turns is not alike from slice to slice: a look
/// has one of each.
TEST_F(TunerTest, LooksAtTurnsForASliceOfEachJob) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  Until(State::kSearching, Even);
  SearchResult found = Found("flow", Claims::kCurve);
  scheduler::simulate::Setting& setting = found->finalists.front().setting;
  setting.policy.residents = 2;
  setting.policy.slice_ns = 5 * kS;
  searcher_.answer = found;
  Until(State::kMeasuring, Even);
  uint64_t by_turns = 0;
  const auto took = [&](const flow::FlowOptions& options) {
    by_turns += options.policy.residents != 0 ? 1u : 0u;
    return (options.policy.residents != 0 ? 50 : 100) * kMs;
  };
  const std::vector<std::string> news = Until(State::kChosen, took);
  constexpr uint64_t kLooks = 2;
  EXPECT_GE(by_turns, kLooks * 2 * 5 * kS / (50 * kMs)) << "two jobs, 5 s of each";
  EXPECT_EQ(flow_->options().policy.residents, 2u);
  EXPECT_EQ(flow_->options().policy.slice_ns, 5 * kS);
  EXPECT_EQ(news.back(),
            "auto: stays with flow, 2 lanes, claims by curve, 2 bases in the pool, the others by "
            "turns for these 2 jobs");
}

/// A soft budget below the pool, and another credit.
class SoftTunerTest : public TunerTest {
 protected:
  void ChooseSoft() {
    ASSERT_NO_FATAL_FAILURE(Join(1));
    ASSERT_NO_FATAL_FAILURE(Join(2));
    Until(State::kSearching, Even);
    searcher_.answer = Found("flow", Claims::kSteps, 28, 16);
    news_ = Until(State::kChosen, [](const flow::FlowOptions& options) {
      return (options.policy.soft_budget != 0 ? 60 : 100) * kMs;
    });
  }
  Units Soft() const { return flow_->options().policy.soft_budget; }
  std::vector<std::string> news_;
};

TEST_F(SoftTunerTest, KeepsASoftBudgetThatMeasuresBest) {
  ASSERT_NO_FATAL_FAILURE(ChooseSoft());
  EXPECT_EQ(Soft(), 28u);
  EXPECT_EQ(flow_->options().credit_parts, 16u);
  ASSERT_FALSE(news_.empty());
  EXPECT_EQ(news_.back(),
            "auto: stays with flow, 2 lanes, claims by steps, in 28.0 MiB, credit 1/16 of an "
            "iteration for these 2 jobs");
  const std::vector<Tuner::Candidate> candidates = tuner_.candidates();
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].way, (Way{"flow", 2, Claims::kSteps})) << "the same without";
  EXPECT_EQ(candidates[2].way, (Way{"flow", 2, Claims::kSteps, 28, 16}));
  EXPECT_GT(candidates[2].measured, candidates[0].measured);
}

TEST_F(SoftTunerTest, GoesBackWhereItMeasuresWorse) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  Until(State::kSearching, Even);
  searcher_.answer = Found("flow", Claims::kSteps, 28, 16);
  Until(State::kChosen, [](const flow::FlowOptions& options) {
    return (options.policy.soft_budget != 0 || options.policy.lanes == 1 ? 130 : 100) * kMs;
  });
  EXPECT_EQ(flow_->way(), (Way{"flow", 2, Claims::kSteps}));
}

/// Given up with the profile, and in force again with it: the jobs are the same.
TEST_F(SoftTunerTest, PutsItInForceAgainAfterAnInterruption) {
  ASSERT_NO_FATAL_FAILURE(ChooseSoft());
  protocol::Mismatch mismatch = {};
  mismatch.profile = clients_[2].profile();
  ASSERT_TRUE(flow_->OnMismatch(2, mismatch, now_).ok());
  EXPECT_EQ(Soft(), 0u);
  EXPECT_FALSE(tuner_.Look(flow_.get(), now_).has_value());
  ASSERT_NE(Measure(2, kLayers), 0u);
  ASSERT_TRUE(Gate(2, 0, clients_[2].profile()).ok());
  EXPECT_FALSE(Iterate(100 * kMs).empty());
  EXPECT_EQ(Soft(), 28u);
  EXPECT_EQ(searcher_.tasks.size(), 1u);
}

/// Who outgrew it is not put into one again.
TEST_F(SoftTunerTest, MeasuresAnewWithoutOneThatWasOutgrown) {
  ASSERT_NO_FATAL_FAILURE(ChooseSoft());
  ASSERT_EQ(Known(1).phase, scheduler::Phase::kRunning);
  ASSERT_TRUE(Lease(1, Known(1).terms.claim - Known(1).leased + 1).ok());
  EXPECT_EQ(Soft(), 0u);
  tuner_.Look(flow_.get(), now_);
  EXPECT_EQ(tuner_.state(), State::kWaiting);
  Until(State::kSearching, Even);
  ASSERT_EQ(searcher_.tasks.size(), 2u);
  EXPECT_TRUE(searcher_.tasks[0].soft_budgets);
  EXPECT_FALSE(searcher_.tasks[1].soft_budgets);
}

/// An operator's budget is all that there is.
TEST_F(SoftTunerTest, StaysBelowTheOperatorsBudget) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  ASSERT_TRUE(flow_->SetBudget(30, now_).ok());
  Until(State::kSearching, Even);
  EXPECT_EQ(searcher_.tasks.back().options.pool_units, 30u);
  searcher_.answer = Found("nodegroup", Claims::kSteps, 30);
  Until(State::kMeasuring, Even);
  EXPECT_EQ(tuner_.candidates().back().way.soft_budget, 0u) << "that is all of it";
}

/// The model rounds, and knows no margins: never below what the jobs claim.
TEST_F(SoftTunerTest, IsNeverBelowWhatTheJobsClaim) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  Until(State::kSearching, Even);
  searcher_.answer = Found("flow", Claims::kSteps, 3);
  Until(State::kMeasuring, Even);
  EXPECT_GE(tuner_.candidates().back().way.soft_budget, flow_->LeastSoftBudget());
  Until(State::kChosen, Even);
  EXPECT_EQ(flow_->soft_budgets_outgrown(), 0u);
}

/// The model is wrong about these jobs, and the GPU says so.
TEST_F(TunerTest, TakesTurnsWhereThatMeasuresBest) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  BeginMeasuring("timeshift", Claims::kCurve);
  Until(State::kChosen, [](const flow::FlowOptions& options) {
    return (options.policy.policy == "temporal" ? 90 : 100) * kMs;
  });
  EXPECT_EQ(flow_->options().policy.policy, "temporal");
  EXPECT_EQ(flow_->options().policy.lanes, 1u);
}

TEST_F(TunerTest, TakesTurnsWhereNothingGains) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  BeginMeasuring("nodegroup", Claims::kContract);
  Until(State::kChosen, Even);
  EXPECT_EQ(flow_->options().policy.policy, "temporal");
}

TEST_F(TunerTest, StaysWithWhatIsInForceForALittleMore) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  BeginMeasuring("nodegroup", Claims::kContract);
  Until(State::kChosen, [](const flow::FlowOptions& options) {
    const std::string& policy = options.policy.policy;
    return (policy == "temporal" ? 120 : policy == "nodegroup" ? 99 : 100) * kMs;
  });
  EXPECT_EQ(flow_->options().policy.policy, "flow");
  EXPECT_EQ(flow_->options().claims, Claims::kSteps);
}

/// What four iterations told was chance, or memory scatters as time goes on.
TEST_F(TunerTest, MeasuresAgainWhereWhatWasChosenGetsLessDone) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  BeginMeasuring("nodegroup", Claims::kCurve);
  const auto quick = [](const flow::FlowOptions& options) {
    return (options.policy.policy == "nodegroup" ? 60 : 100) * kMs;
  };
  Until(State::kChosen, quick);
  for (int i = 0; i < 200; ++i) Iterate(quick(flow_->options()));
  ASSERT_EQ(tuner_.state(), State::kChosen) << "it is as good as it was";
  EXPECT_EQ(flow_->options().policy.policy, "nodegroup");

  const auto slow = [](const flow::FlowOptions& options) {
    return (options.policy.policy == "nodegroup" ? 130 : 100) * kMs;
  };
  const std::vector<std::string> news = Until(State::kMeasuring, slow);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0],
            "auto: measures again, as nodegroup, 2 lanes, claims by curve gets less done than "
            "another way did");
  EXPECT_EQ(tuner_.candidates()[0].way.policy, "nodegroup") << "it is in force";
  Until(State::kChosen, slow);
  EXPECT_EQ(flow_->options().policy.policy, "temporal");
  EXPECT_EQ(searcher_.tasks.size(), 1u) << "what could be tried is known";
  for (int i = 0; i < 200; ++i) Iterate(slow(flow_->options()));
  EXPECT_EQ(tuner_.state(), State::kChosen);
}

/// A pool too small even for turns, by the model: the jobs run in it, so they are measured.
TEST_F(TunerTest, MeasuresWhereTheModelHasNoAnswer) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  Until(State::kSearching, Even);
  searcher_.answer = SearchResult(Status(StatusCode::kResourceExhausted, "does not fit"));
  Until(State::kChosen, Even);
  EXPECT_EQ(tuner_.candidates().size(), 2u);
  EXPECT_EQ(tuner_.candidates()[1].predicted, 0);
}

TEST_F(TunerTest, LooksAgainWhenTheJobsChange) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  BeginMeasuring("nodegroup", Claims::kCurve);
  flow_->Die(2, now_);
  flow_->HolderGone(2, now_);
  clients_.erase(2);
  Iterate(100 * kMs);
  ASSERT_NO_FATAL_FAILURE(Join(3));
  const int dropped = searcher_.dropped;
  Iterate(100 * kMs);
  EXPECT_EQ(tuner_.state(), State::kWaiting);
  EXPECT_GT(searcher_.dropped, dropped);
  EXPECT_TRUE(tuner_.candidates().empty());
  Until(State::kSearching, Even);
  EXPECT_EQ(searcher_.tasks.size(), 2u);
}

/// The third job leaves again, and the two are as they were.
TEST_F(TunerTest, RemembersWhatItChoseForTheSameJobs) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  BeginMeasuring("nodegroup", Claims::kCurve);
  Until(State::kChosen, [](const flow::FlowOptions& options) {
    return (options.policy.policy == "nodegroup" ? 60 : 100) * kMs;
  });
  Start(3, 20, 2);
  ASSERT_TRUE(Lease(3, 2).ok());
  Iterate(100 * kMs);  // to their troughs, so that job 3 can be measured
  clients_[3].Push(protocol::OpKind::kAlloc, 2 * kUnit);
  ASSERT_NE(Measure(3, kLayers), 0u);
  Iterate(100 * kMs);
  ASSERT_EQ(tuner_.state(), State::kWaiting);
  ASSERT_TRUE(flow_->SetWay({"flow", 2, Claims::kSteps}, now_).ok());
  flow_->Die(3, now_);
  flow_->HolderGone(3, now_);
  clients_.erase(3);
  const std::vector<std::string> news = Iterate(100 * kMs);
  EXPECT_EQ(tuner_.state(), State::kChosen);
  EXPECT_EQ(flow_->options().policy.policy, "nodegroup");
  EXPECT_EQ(news.size(), 1u);
  EXPECT_EQ(searcher_.tasks.size(), 1u);
}

/// A job that surprises loses its profile for a moment. The others know what they know.
TEST_F(TunerTest, GoesOnWithTheSameJobsAfterAnInterruption) {
  ASSERT_NO_FATAL_FAILURE(Join(1));
  ASSERT_NO_FATAL_FAILURE(Join(2));
  BeginMeasuring("flow", Claims::kCurve);
  Until(State::kChosen, [](const flow::FlowOptions& options) {
    return (options.claims == Claims::kCurve ? 60 : 100) * kMs;
  });
  protocol::Mismatch mismatch = {};
  mismatch.profile = clients_[2].profile();
  ASSERT_TRUE(flow_->OnMismatch(2, mismatch, now_).ok());
  tuner_.Look(flow_.get(), now_);
  ASSERT_NE(Measure(2, kLayers), 0u);
  ASSERT_TRUE(Gate(2, 0, clients_[2].profile()).ok());
  Iterate(100 * kMs);
  EXPECT_EQ(tuner_.state(), State::kChosen);
  EXPECT_EQ(searcher_.tasks.size(), 1u);
}

}  // namespace
}  // namespace sluice::tuner
