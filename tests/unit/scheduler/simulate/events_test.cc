// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What happens during a run: jobs come, leave, deviate and stand still; budgets change.
#include <algorithm>
#include <utility>

#include "scheduler/audit/audit.h"
#include "tests/unit/scheduler/simulate/models.h"

namespace sluice::scheduler::simulate {
namespace {

Options InPool(Units pool) {
  Options options;
  options.gate_ns = 0;
  options.unit_bytes = 8;
  options.pool_units = pool;
  options.setting.claims = Claims::kCurve;
  options.record = true;
  return options;
}

/// A base of one unit and a peak of 41; 20 launches of 100 ns.
Workload Ten() {
  return WorkloadOf("ten", {std::vector<uint64_t>(10, 32), std::vector<uint64_t>(10, 100), 8});
}

size_t Count(const std::vector<Record>& records, EventKind event, JobId job) {
  return static_cast<size_t>(std::count_if(records.begin(), records.end(), [&](const Record& r) {
    return r.event == event && r.job == job;
  }));
}

TEST(Events, ANewcomerIsMeasuredAlone) {
  const Workload job = Ten();
  std::vector<JobRun> runs = {{&job}, {&job, 5000}};
  runs[1].newcomer = true;
  const Result<Outcome> outcome = Simulate(runs, PlainMachine(), InPool(100));
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_TRUE(Audit(outcome->records).ok());
  double began = 0;
  double known = 0;
  for (const Record& record : outcome->records) {
    const auto ns = static_cast<double>(record.t_ns);
    if (record.job == 2 && record.event == EventKind::kGate && began == 0) began = ns;
    if (record.job == 2 && record.event == EventKind::kTrough && known == 0) known = ns;
    if (record.job == 1 && record.event == EventKind::kGate && began > 0) {
      EXPECT_GT(known, 0) << "nobody begins an iteration while it is measured";
    }
  }
  EXPECT_GE(began, 5000);
  EXPECT_GE(known - began, 2 * 2000);
}

TEST(Events, WhoLeavesMakesRoom) {
  const Workload job = Ten();
  std::vector<JobRun> runs = {{&job}, {&job}};
  runs[1].leaves_after = 4;
  Options options = InPool(42);
  options.iterations = 12;
  const Result<Outcome> outcome = Simulate(runs, PlainMachine(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_TRUE(Audit(outcome->records).ok());
  EXPECT_EQ(outcome->jobs[1].iterations, 4u);
  EXPECT_EQ(Count(outcome->records, EventKind::kFree, 2), 1u);
  const std::vector<double>& ends = outcome->jobs[0].ends_ns;
  EXPECT_NEAR(ends.back() - ends[ends.size() - 2], 2000, 50) << "alone it waits for nobody";
}

TEST(Events, WhoNeedsMoreIsServedWhereThereIsMore) {
  const Workload job = Ten();
  std::vector<JobRun> runs = {{&job}, {&job}};
  runs[0].deviations = {{3, 5, 20}};
  Result<Outcome> outcome = Simulate(runs, PlainMachine(), InPool(150));
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_TRUE(outcome->jobs[0].refused.empty());
  EXPECT_TRUE(Audit(outcome->records).ok());

  runs[0].deviations = {{3, 5, 200}};
  outcome = Simulate(runs, PlainMachine(), InPool(150));
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_NE(outcome->jobs[0].refused.find("its limit is"), std::string::npos)
      << outcome->jobs[0].refused;
  EXPECT_EQ(outcome->jobs[0].iterations, 2u);
  EXPECT_GE(outcome->jobs[1].iterations, 6u) << "the other one goes on";
  EXPECT_TRUE(Audit(outcome->records).ok());
}

TEST(Events, AStallHoldsUpItsOwnJob) {
  const Workload job = Ten();
  std::vector<JobRun> runs = {{&job}};
  runs[0].stalls = {{2, 7, 12345}};
  const Result<Outcome> outcome = Simulate(runs, PlainMachine(), InPool(41));
  ASSERT_TRUE(outcome.ok());
  const std::vector<double>& ends = outcome->jobs[0].ends_ns;
  EXPECT_GT(ends[1] - ends[0], 12345 - 2000) << "its GPU works on what was launched before";
  EXPECT_NEAR(ends[2] - ends[1], 2000, 50);
}

/// Nobody is lent anything of a job's before its trough where jobs take turns (docs/adr/0034).
TEST(Events, WhoTakesTurnsHasItsPeakFromItsFirstGate) {
  const Workload job = Ten();
  for (const auto& [policy, lanes] : {std::pair("temporal", 2u), std::pair("flow", 1u)}) {
    SCOPED_TRACE(policy);
    Options options = InPool(42);
    options.setting.policy.policy = policy;
    options.setting.policy.lanes = lanes;
    const Result<Outcome> outcome = Simulate({{&job}, {&job}}, PlainMachine(), options);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    EXPECT_TRUE(Audit(outcome->records).ok());
    size_t granted = 0;
    for (const Record& record : outcome->records) {
      if (record.event != EventKind::kGate || record.job != 1 || record.extents.empty()) continue;
      ++granted;
      EXPECT_EQ(record.gate, 0u);
      EXPECT_EQ(TotalUnits(record.extents), 40u);
    }
    EXPECT_GE(granted, outcome->jobs[0].iterations);
    const size_t released = Count(outcome->records, EventKind::kRelease, 1);
    EXPECT_EQ(released, Count(outcome->records, EventKind::kTrough, 1));
  }
}

/// Of a job that needs more than its peak what goes beyond it counts.
TEST(Events, WhoTakesTurnsAndNeedsMoreThanItsPeakAsks) {
  const Workload job = Ten();
  std::vector<JobRun> runs = {{&job}, {&job}};
  runs[0].deviations = {{3, 10, 20}};
  Options options = InPool(150);
  options.setting.policy.policy = "temporal";
  const Result<Outcome> outcome = Simulate(runs, PlainMachine(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_TRUE(outcome->jobs[0].refused.empty());
  EXPECT_TRUE(Audit(outcome->records).ok());
  EXPECT_EQ(outcome->jobs[0].most_held, job.plan.gates[10].need_units + 20);
  EXPECT_EQ(outcome->jobs[1].most_held, 41u);
}

/// Zico's figure 10 cuts the budget from 70 % to 50 % of the GPU's memory and raises it again.
TEST(Events, ABudgetFallsAndRises) {
  const Workload job = Ten();
  for (const std::string policy : {"flow", "timeshift", "nodegroup", "temporal"}) {
    SCOPED_TRACE(policy);
    Options options = InPool(120);
    options.setting.policy.policy = policy;
    options.setting.budget = 84;
    options.budget_changes = {{9000, 60}, {21000, 84}};
    options.iterations = 16;
    const Result<Outcome> outcome = Simulate({{&job}, {&job}}, PlainMachine(), options);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    ASSERT_EQ(outcome->budget_since_ns.size(), 2u);
    const double cut = outcome->budget_since_ns[0];
    const double raised = outcome->budget_since_ns[1];
    EXPECT_GE(cut, 9000);
    EXPECT_LE(cut, 9000 + 2 * 4200) << "at the latest when both have done their iterations";
    EXPECT_EQ(raised, 21000) << "more is there at once";
    const AuditReport report = Audit(outcome->records, 100000);
    EXPECT_TRUE(report.ok());
    Units most = 0;
    for (const AuditSample& sample : report.series) {
      const auto ns = static_cast<double>(sample.t_ns);
      Units held = 0;
      for (const auto& [id, units] : sample.held) held += id <= 2 ? units : 0;
      EXPECT_LE(held, ns >= cut && ns < raised ? 60u : 84u) << "at " << ns;
      most = std::max(most, held);
    }
    EXPECT_GT(most, policy == "flow" || policy == "timeshift" ? 60u : 40u);
  }
}

}  // namespace
}  // namespace sluice::scheduler::simulate
