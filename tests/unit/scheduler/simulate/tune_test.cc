// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/tune.h"

#include <set>
#include <string>
#include <tuple>

#include "tests/unit/scheduler/simulate/models.h"

namespace sluice::scheduler::simulate {
namespace {

Options InPool(Units pool) {
  Options options;
  options.gate_ns = 0;
  options.unit_bytes = 8;
  options.pool_units = pool;
  return options;
}

Layers Ten(uint64_t flops) {
  return {std::vector<uint64_t>(10, 32), std::vector<uint64_t>(10, flops), 8};
}

TEST(Tune, FindsWhatSharingGains) {
  const Workload job = WorkloadOf("a", Ten(50));
  const std::vector<JobRun> runs{{&job}, {&job}};
  const Result<Tuned> tuned = Tune(runs, PlainMachine(), InPool(50));
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_EQ(tuned->setting.policy.policy, "flow");
  EXPECT_NE(tuned->setting.claims, Claims::kContract);
  EXPECT_GT(tuned->outcome.Throughput(), 1.4 * tuned->temporal);
  EXPECT_GT(tuned->tried.size(), 20u);
  for (const Tried& tried : tuned->tried) {
    EXPECT_LE(tried.throughput, tuned->outcome.Throughput());
  }
  Options chosen = InPool(50);
  chosen.setting = tuned->setting;
  EXPECT_EQ(Simulate(runs, PlainMachine(), chosen)->Throughput(), tuned->outcome.Throughput());
}

TEST(Tune, NamesItsFinalistsBestFirst) {
  const Workload job = WorkloadOf("a", Ten(50));
  const Result<Tuned> tuned = Tune({{&job}, {&job}}, PlainMachine(), InPool(50));
  ASSERT_TRUE(tuned.ok());
  ASSERT_FALSE(tuned->finalists.empty());
  EXPECT_EQ(tuned->finalists.front().throughput, tuned->outcome.Throughput());
  for (size_t i = 1; i < tuned->finalists.size(); ++i) {
    EXPECT_LE(tuned->finalists[i].throughput, tuned->finalists[i - 1].throughput);
    EXPECT_GT(tuned->finalists[i].throughput, tuned->temporal);
  }
}

TEST(Tune, FindsTheSameHoweverLongIsMeasured) {
  const Workload job = WorkloadOf("a", Ten(50));
  const std::vector<JobRun> runs{{&job}, {&job}};
  const Result<Tuned> few = Tune(runs, PlainMachine(), InPool(50));
  Options longer = InPool(50);
  longer.iterations = 40;
  const Result<Tuned> many = Tune(runs, PlainMachine(), longer);
  ASSERT_TRUE(few.ok() && many.ok());
  ASSERT_EQ(few->tried.size(), many->tried.size());
  for (size_t i = 0; i < few->tried.size(); ++i) {
    EXPECT_EQ(few->tried[i].throughput, many->tried[i].throughput) << i;
  }
  EXPECT_GE(many->outcome.jobs[0].iterations, 40u) << "what is answered is measured as asked";
}

TEST(Tune, LooksAtTwiceAsManyWaysOfThreeJobs) {
  const Workload job = WorkloadOf("a", Ten(50));
  TuneOptions one;
  one.candidates = one.refined = 1;
  one.least_gain = 0;
  const std::vector<JobRun> three = {{&job}, {&job}, {&job}};
  const Result<Tuned> of_two = Tune({{&job}, {&job}}, PlainMachine(), InPool(70), one);
  const Result<Tuned> of_three = Tune(three, PlainMachine(), InPool(70), one);
  one.one_of_each = true;
  const Result<Tuned> measured = Tune(three, PlainMachine(), InPool(70), one);
  ASSERT_TRUE(of_two.ok() && of_three.ok() && measured.ok());
  EXPECT_EQ(of_two->finalists.size(), 1u);
  EXPECT_EQ(of_three->finalists.size(), 2u);
  EXPECT_EQ(measured->finalists.size(), 1u);
}

/// A node that cannot change how far a host runs ahead, nor what it gives back.
TEST(Tune, LeavesAloneWhatCannotBeChanged) {
  const Workload job = WorkloadOf("a", Ten(50));
  TuneOptions live;
  live.budgets = 0;
  live.drains = false;
  live.credits.clear();
  live.phases.clear();
  live.groups.clear();
  const Result<Tuned> tuned = Tune({{&job}, {&job}}, PlainMachine(), InPool(50), live);
  ASSERT_TRUE(tuned.ok());
  EXPECT_GT(tuned->tried.size(), 4u);
  for (const Tried& tried : tuned->tried) {
    EXPECT_EQ(tried.setting.budget, 0u);
    EXPECT_EQ(tried.setting.credit_parts, Setting().credit_parts);
    EXPECT_EQ(tried.setting.policy.phase, 0);
    EXPECT_EQ(tried.setting.policy.groups_per_peak, Config().groups_per_peak);
    EXPECT_EQ(tried.setting.drain, Drain::kWhenOthersWait);
  }
}

/// What a running node can put in force beside a policy.
TEST(Tune, TriesSoftBudgetsInsteadOfHardOnes) {
  const Workload job = WorkloadOf("a", Ten(50));
  TuneOptions live;
  live.soft = live.one_of_each = true;
  live.candidates = 40;
  const Result<Tuned> tuned = Tune({{&job}, {&job}}, PlainMachine(), InPool(50), live);
  ASSERT_TRUE(tuned.ok());
  size_t soft = 0;
  for (const Tried& tried : tuned->tried) {
    EXPECT_EQ(tried.setting.budget, 0u);
    soft += tried.setting.policy.soft_budget != 0;
  }
  EXPECT_GT(soft, 5u);
  for (size_t i = 1; i < tuned->finalists.size(); ++i) {
    const Setting& one = tuned->finalists[i].setting;
    const Setting& other = tuned->finalists[i - 1].setting;
    EXPECT_FALSE(one.policy.policy == other.policy.policy && one.claims == other.claims &&
                 one.policy.lanes == other.policy.lanes)
        << "one of each kind is enough to be measured";
  }
}

/// For jobs that do as they were seen to do, less memory and doing as if there were less are one.
TEST(Tune, ASoftBudgetIsWorthAsMuchAsAHardOne) {
  const Workload job = WorkloadOf("a", Ten(50));
  const std::vector<JobRun> runs{{&job}, {&job, 700}};
  for (const char* policy : {"flow", "nodegroup", "timeshift"}) {
    for (const Units less : {Units{45}, Units{55}, Units{65}}) {
      Options hard = InPool(80);
      hard.setting.policy.policy = policy;
      hard.setting.claims = Claims::kCurve;
      Options soft = hard;
      hard.setting.budget = less;
      soft.setting.policy.soft_budget = less;
      const Result<Outcome> a = Simulate(runs, PlainMachine(), hard);
      const Result<Outcome> b = Simulate(runs, PlainMachine(), soft);
      ASSERT_TRUE(a.ok() && b.ok());
      EXPECT_NEAR(a->Throughput(), b->Throughput(), 0.02 * a->Throughput())
          << policy << " in " << less;
      EXPECT_LE(b->most_held, less) << policy;
    }
  }
}

/// Two names for one way of sharing would leave no place for another one.
TEST(Tune, ItsFinalistsDiffer) {
  const Workload job = WorkloadOf("a", Ten(50));
  const Result<Tuned> tuned = Tune({{&job}, {&job}}, PlainMachine(), InPool(50));
  ASSERT_TRUE(tuned.ok());
  ASSERT_GT(tuned->finalists.size(), 1u);
  std::set<std::tuple<double, std::string, Claims>> seen;
  for (const Tried& tried : tuned->finalists) {
    const Setting& setting = tried.setting;
    EXPECT_TRUE(seen.emplace(tried.throughput, setting.policy.policy, setting.claims).second);
  }
}

/// The coarse look knows each policy by its best, also with its switches elsewhere.
TEST(Tune, LooksCloserAtEachPolicy) {
  const Workload job = WorkloadOf("a", Ten(50));
  const Result<Tuned> tuned = Tune({{&job}, {&job}}, PlainMachine(), InPool(60));
  ASSERT_TRUE(tuned.ok());
  std::set<std::string> apart;
  for (const Tried& tried : tuned->tried) {
    if (tried.setting.policy.phase > 0) apart.insert(tried.setting.policy.policy);
  }
  EXPECT_EQ(apart, (std::set<std::string>{"flow", "nodegroup", "timeshift"}));
}

/// Jobs that fit beside each other all the time stay in step, short kernels beside short ones and
/// those that fill the GPU beside their like: apart they gain.
TEST(Tune, KeepsJobsApartWhereMemoryDoesNot) {
  Layers layers{std::vector<uint64_t>(40, 32), std::vector<uint64_t>(40, 20), 8};
  layers.flops.back() = 1600;
  const Workload job = WorkloadOf("a", layers);
  const std::vector<JobRun> runs{{&job}, {&job}};
  TuneOptions options;
  options.budgets = 0;
  const Result<Tuned> apart = Tune(runs, PlainMachine(), InPool(400), options);
  options.phases.clear();
  const Result<Tuned> in_step = Tune(runs, PlainMachine(), InPool(400), options);
  ASSERT_TRUE(apart.ok() && in_step.ok());
  EXPECT_GT(apart->setting.policy.phase, 0);
  EXPECT_GT(apart->outcome.Throughput(), 1.02 * in_step->outcome.Throughput());
}

TEST(Tune, StopsWhenAsked) {
  const Workload job = WorkloadOf("a", Ten(50));
  TuneOptions options;
  int asked = 0;
  options.stopped = [&asked] { return ++asked > 3; };
  const Result<Tuned> tuned = Tune({{&job}, {&job}}, PlainMachine(), InPool(50), options);
  EXPECT_EQ(tuned.status().code(), StatusCode::kUnavailable);
  EXPECT_LT(asked, 200);
}

TEST(Tune, TriesNoClaimThatNobodyIsInsuredFor) {
  const Workload job = WorkloadOf("a", Ten(50));
  TuneOptions uninsured;
  uninsured.claims = Claims::kContract;
  const Result<Tuned> tuned = Tune({{&job}, {&job}}, PlainMachine(), InPool(50), uninsured);
  ASSERT_TRUE(tuned.ok());
  for (const Tried& tried : tuned->tried) EXPECT_EQ(tried.setting.claims, Claims::kContract);
}

/// Kernels that fill the GPU, one context at a time, and switches that cost.
TEST(Tune, TakesTurnsWhereSharingLoses) {
  Machine machine = PlainMachine();
  machine.sharing = Sharing::kTimeSlice;
  machine.quantum_ns = 100;
  machine.switch_ns = 30;
  const Workload job = WorkloadOf("a", Ten(400), machine);
  const Result<Tuned> tuned = Tune({{&job}, {&job}}, machine, InPool(82));
  ASSERT_TRUE(tuned.ok());
  EXPECT_EQ(tuned->setting.policy.policy, "temporal");
  EXPECT_EQ(tuned->outcome.Throughput(), tuned->temporal);
}

TEST(Tune, OneJobAloneNeedsNoSearch) {
  const Workload job = WorkloadOf("a", Ten(100));
  const Result<Tuned> tuned = Tune({{&job}}, PlainMachine(), InPool(41));
  ASSERT_TRUE(tuned.ok());
  EXPECT_TRUE(tuned->tried.empty());
  EXPECT_FALSE(Tune({{&job}, {&job}}, PlainMachine(), InPool(41)).ok()) << "does not fit";
}

}  // namespace
}  // namespace sluice::scheduler::simulate
