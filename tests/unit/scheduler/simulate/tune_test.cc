// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/tune.h"

#include "tests/unit/scheduler/simulate/models.h"

namespace sluice::scheduler::simulate {
namespace {

Options InPool(Units pool) {
  Options options;
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

/// A node that cannot change how far a host runs ahead, nor what it gives back.
TEST(Tune, LeavesAloneWhatCannotBeChanged) {
  const Workload job = WorkloadOf("a", Ten(50));
  TuneOptions live;
  live.budgets = 0;
  live.drains = false;
  live.credits.clear();
  const Result<Tuned> tuned = Tune({{&job}, {&job}}, PlainMachine(), InPool(50), live);
  ASSERT_TRUE(tuned.ok());
  EXPECT_GT(tuned->tried.size(), 4u);
  for (const Tried& tried : tuned->tried) {
    EXPECT_EQ(tried.setting.budget, 0u);
    EXPECT_EQ(tried.setting.credit_parts, Setting().credit_parts);
    EXPECT_EQ(tried.setting.drain, Drain::kWhenOthersWait);
  }
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
