// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/simulate.h"

#include <limits>

#include "scheduler/audit/audit.h"
#include "scheduler/ledger/limits.h"
#include "tests/unit/scheduler/simulate/models.h"

namespace sluice::scheduler::simulate {
namespace {

/// Ten layers of four units; an iteration of 20 kernels of 100 ns, each of which fills the GPU.
Layers Ten() { return {std::vector<uint64_t>(10, 32), std::vector<uint64_t>(10, 100), 8}; }

Options InPool(Units pool, const std::string& policy = "flow") {
  Options options;
  options.gate_ns = 0;
  options.unit_bytes = 8;
  options.pool_units = pool;
  options.setting.policy.policy = policy;
  return options;
}

TEST(Simulate, AGpuBoundJobTakesItsGpuTime) {
  const Workload job = WorkloadOf("a", Ten());
  const Result<Outcome> outcome = Simulate({{&job}}, PlainMachine(), InPool(41));
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_NEAR(outcome->jobs[0].iteration_ns, 2000, 1);
  EXPECT_NEAR(outcome->Throughput(), 1, 1e-3);
  EXPECT_EQ(outcome->jobs[0].most_held, 41u);
  EXPECT_EQ(outcome->most_held, 41u);
}

TEST(Simulate, ALaunchBoundJobTakesItsLaunches) {
  Machine machine = PlainMachine();
  machine.launch_ns = 300;
  machine.alloc_ns = 5;
  const Workload job = WorkloadOf("a", Ten(), machine);
  const Result<Outcome> outcome = Simulate({{&job}}, machine, InPool(41));
  ASSERT_TRUE(outcome.ok());
  EXPECT_NEAR(outcome->jobs[0].iteration_ns, 20 * 300 + 20 * 5, 1) << "ten allocations, ten frees";
}

TEST(Simulate, WhoIsAloneHoldsItsPeakHoweverFarItsHostRunsAhead) {
  Machine machine = PlainMachine();
  machine.launch_ns = 1;
  machine.launch_queue = 1000;
  const Workload job = WorkloadOf("a", Ten(), machine);
  const Result<Outcome> outcome = Simulate({{&job}}, machine, InPool(400));
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->most_held, 41u);
}

/// Ten of twenty gates want more than is there. Where launches are what takes the time, so do they.
TEST(Simulate, AGateThatWantsMoreTakesTime) {
  Machine machine = PlainMachine();
  machine.launch_ns = 300;
  const Workload job = WorkloadOf("a", Ten(), machine);
  ASSERT_GE(job.plan.gates.size(), 19u);
  const auto iteration = [&](size_t jobs, double gate_ns) {
    Options options = InPool(100);
    options.gate_ns = gate_ns;
    const Result<Outcome> outcome =
        Simulate(std::vector<JobRun>(jobs, JobRun{&job}), machine, options);
    return outcome.ok() ? outcome->jobs[0].iteration_ns : 0;
  };
  EXPECT_NEAR(iteration(2, 40) - iteration(2, 0), 10 * 40, 45);
  EXPECT_NEAR(iteration(1, 40), iteration(1, 0), 1) << "who is alone has what it needs";
}

TEST(Simulate, TurnsGetAsMuchDoneAsOneJobAlone) {
  const Workload job = WorkloadOf("a", Ten());
  const Result<Outcome> outcome =
      Simulate({{&job}, {&job}}, PlainMachine(), InPool(42, "temporal"));
  ASSERT_TRUE(outcome.ok());
  // The first launch of each turn finds the GPU idle.
  EXPECT_NEAR(outcome->jobs[0].iteration_ns, 2 * 2010, 1);
  EXPECT_EQ(outcome->most_held, 42u) << "one peak and one base";
  EXPECT_NEAR(outcome->jobs[0].longest_wait_ns, 2010, 15);
}

TEST(Simulate, CreditIsAPartOfTheIterationAndWithoutBoundForWhoTakesTurns) {
  const Workload job = WorkloadOf("a", Ten());
  Options options;
  Setting setting;
  const auto credit = [&] { return CreditOf(job, options, setting); };
  EXPECT_EQ(credit(), job.alone_ns / 8);
  setting.policy.lanes = 1;
  EXPECT_EQ(credit(), std::numeric_limits<double>::infinity());
  setting.policy = {};
  setting.policy.policy = "temporal";
  EXPECT_EQ(credit(), std::numeric_limits<double>::infinity());
  options.most_credit_ns = 7;
  EXPECT_EQ(credit(), 7);
  options.most_credit_ns.reset();
  setting.drain = Drain::kNever;
  EXPECT_EQ(credit(), job.alone_ns / 8) << "else it would begin with its last iteration's memory";
}

/// How many of the troughs of the first job are drained.
double DrainedPart(const std::vector<JobRun>& runs, Options options) {
  options.record = true;
  const Result<Outcome> outcome = Simulate(runs, PlainMachine(), options);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  size_t troughs = 0;
  size_t drained = 0;
  for (const Record& record : outcome->records) {
    if (record.event != EventKind::kTrough || record.job != 1) continue;
    ++troughs;
    drained += record.drained ? 1 : 0;
  }
  EXPECT_GT(troughs, 5u);
  return static_cast<double>(drained) / static_cast<double>(troughs);
}

/// Memory for all, so that nobody waits for any: who waits for its GPU at its trough?
TEST(Simulate, DrainsWhileOthersWaitOrAreThereOrNever) {
  const Workload job = WorkloadOf("a", Ten());
  const auto drained = [&](size_t jobs, Drain drain) {
    Options options = InPool(200);
    options.setting.drain = drain;
    return DrainedPart(std::vector<JobRun>(jobs, JobRun{&job}), options);
  };
  EXPECT_EQ(drained(2, Drain::kWhenOthersAreThere), 1);
  EXPECT_EQ(drained(1, Drain::kWhenOthersAreThere), 0);
  EXPECT_EQ(drained(2, Drain::kWhenOthersWait), 0);
  EXPECT_EQ(drained(2, Drain::kNever), 0);
}

TEST(Simulate, NeitherWhoHasLeftNorABudgetIsThere) {
  const Workload job = WorkloadOf("a", Ten());
  Options options = InPool(200);
  options.setting.drain = Drain::kWhenOthersAreThere;
  JobRun leaves{&job};
  leaves.leaves_after = 2;
  EXPECT_LT(DrainedPart({{&job}, leaves}, options), 0.6);
  options.budget_changes = {{1, 150}};
  EXPECT_LT(DrainedPart({{&job}}, options), 0.2);
}

/// In the middle of its iteration it needs little for two gates, which is 300 ns.
TEST(Simulate, WhatIsNeededAgainBeforeTheGpuHasComeThereIsKept) {
  Workload job = WorkloadOf("a", Ten());
  constexpr size_t kDip = 9;
  const Units above = job.plan.gates[kDip - 1].need_units;
  job.plan.gates[kDip].need_units = job.plan.gates[kDip + 1].need_units = above - 20;
  ASSERT_GT(job.plan.gates[kDip + 2].need_units, above - 20);
  const auto released = [&](double credit_ns) {
    Options options = InPool(82);
    options.record = true;
    options.setting.credit_parts = job.alone_ns / credit_ns;
    const Result<Outcome> outcome = Simulate({{&job}, {&job}}, PlainMachine(), options);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    uint64_t units = 0;
    for (const Record& record : outcome->records) {
      if (record.event == EventKind::kRelease) units += TotalUnits(record.extents);
    }
    return static_cast<double>(units) / static_cast<double>(outcome->jobs[0].iterations) / 2;
  };
  EXPECT_NEAR(released(250), 36 + 20, 4) << "what it takes, and the dip";
  EXPECT_NEAR(released(350), 36, 4);
  // Two kernels are queued whatever the credit: a dip of one is over before the GPU has passed it.
  job.plan.gates[kDip + 1].need_units = above;
  EXPECT_NEAR(released(50), 36, 4);
}

/// Kernels that leave half of the GPU: what memory allows is what is gained.
TEST(Simulate, MoreClaimsAndMoreMemoryLendMore) {
  Layers layers = Ten();
  for (uint64_t& flops : layers.flops) flops = 50;
  const Workload job = WorkloadOf("a", layers);
  const auto throughput = [&](Units pool, Claims claims) {
    Options options = InPool(pool);
    options.setting.claims = claims;
    const Result<Outcome> outcome = Simulate({{&job}, {&job}}, PlainMachine(), options);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    return outcome->Throughput();
  };
  const double contract = throughput(42, Claims::kContract);
  const double steps = throughput(42, Claims::kSteps);
  const double curve = throughput(42, Claims::kCurve);
  EXPECT_NEAR(contract, 1, 0.05) << "one peak, one iteration at a time";
  EXPECT_GT(steps, contract + 0.2);
  EXPECT_GT(curve, steps);
  EXPECT_GT(throughput(62, Claims::kContract), contract + 0.2);
  EXPECT_NEAR(throughput(82, Claims::kContract), 2, 0.01) << "room for both: as if alone";
  Options unlimited = InPool(0);
  unlimited.managed = false;
  EXPECT_NEAR(Simulate({{&job}, {&job}}, PlainMachine(), unlimited)->Throughput(), 2, 0.01);
}

TEST(Simulate, ALiveNodesMarginIsClaimedToo) {
  const Workload job = WorkloadOf("a", Ten());
  Options options = InPool(62);
  options.record = true;
  const auto claim = [&] {
    const Result<Outcome> outcome = Simulate({{&job}, {&job}}, PlainMachine(), options);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    Units most = 0;
    for (const Record& record : outcome->records) most = std::max(most, record.claim);
    return most;
  };
  EXPECT_EQ(claim(), 41u);
  options.claim_margin = true;
  EXPECT_EQ(claim(), WithClaimMargin(41, 4));
  // One base less than all that there is: more could never be there, and nobody would begin.
  for (const Units pool : {43u, 45u}) {
    options.pool_units = pool;
    EXPECT_EQ(claim(), pool - 1);
  }
  options.pool_units = 62;
  Workload limited = job;
  limited.limit = 43;
  const Result<Outcome> outcome = Simulate({{&limited}, {&job}}, PlainMachine(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  Units most = 0;
  for (const Record& record : outcome->records) {
    if (record.job == 1) most = std::max(most, record.claim);
  }
  EXPECT_EQ(most, 43u);
}

TEST(Simulate, ABudgetIsASmallerPool) {
  const Workload job = WorkloadOf("a", Ten());
  Options options = InPool(82);
  options.setting.budget = 42;
  const Result<Outcome> outcome = Simulate({{&job}, {&job}}, PlainMachine(), options);
  ASSERT_TRUE(outcome.ok());
  EXPECT_LE(outcome->most_held, 42u);
}

TEST(Simulate, SaysWhatDoesNotFit) {
  const Workload job = WorkloadOf("a", Ten());
  const Status status = Simulate({{&job}, {&job}}, PlainMachine(), InPool(41)).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("'a' needs"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("allowed: from 336 B"), std::string::npos) << status.message();
}

TEST(Simulate, RefusesWhatMakesNoSense) {
  const Workload job = WorkloadOf("a", Ten());
  const auto says = [&](const std::vector<JobRun>& runs, const Options& options) {
    const Status status = Simulate(runs, PlainMachine(), options).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(says({}, InPool(9)), "runs: allowed: at least one job");
  EXPECT_EQ(says({{&job}}, InPool(0)), "pool: allowed: above 0");
  EXPECT_EQ(says({{&job}}, InPool(99, "best")), "policy 'best' is not known");
  Options options = InPool(99);
  options.setting.credit_parts = 0;
  EXPECT_EQ(says({{&job}}, options), "credit_parts: allowed: above 0");
}

/// Every timeline is checked by code that shares nothing with the ledger: order, budget, I0 to I5.
class Timelines : public testing::TestWithParam<std::tuple<const char*, Claims, size_t>> {};

TEST_P(Timelines, KeepEveryPromise) {
  const auto [policy, claims, jobs] = GetParam();
  std::mt19937 random(static_cast<uint32_t>(jobs) * 7 + static_cast<uint32_t>(claims));
  const auto pick = [&random](uint32_t bound) { return static_cast<uint32_t>(random()) % bound; };
  uint64_t lent = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<Workload> workloads;
    Units bases = 0;
    Units peak = 0;
    const bool alike = pick(2) == 0;
    for (size_t i = 0; i < jobs; ++i) {
      workloads.push_back(i > 0 && alike ? workloads.front()
                                         : WorkloadOf("w", RandomLayers(&random)));
      bases += workloads.back().base_units;
      peak = std::max(peak, workloads.back().plan.peak_units - workloads.back().base_units);
    }
    Options options = InPool(bases + peak + pick(peak + 1), policy);
    options.setting.claims = claims;
    options.setting.policy.lanes = 2 + pick(3);
    options.setting.drain = static_cast<Drain>(pick(3));
    options.setting.credit_parts = 1 + pick(16);
    options.iterations = 3;
    options.record = true;
    std::vector<JobRun> runs;
    for (const Workload& workload : workloads)
      runs.push_back({&workload, static_cast<double>(pick(999))});
    const Result<Outcome> outcome = Simulate(runs, PlainMachine(), options);
    ASSERT_TRUE(outcome.ok()) << "round " << round << ": " << outcome.status().message();
    const AuditReport report = Audit(outcome->records);
    ASSERT_TRUE(report.ok()) << "round " << round << ": "
                             << (report.violations.empty()
                                     ? "over budget or limit"
                                     : report.violations[0].rule + " " + report.violations[0].text);
    EXPECT_EQ(report.broken_promises, 0u);
    EXPECT_EQ(report.unchecked_orders, 0u);
    for (const auto& [id, job] : report.jobs) {
      EXPECT_GE(job.iterations, options.iterations) << "job " << id << " does not starve";
    }
    lent += report.lent_bytes_within_iterations;
    const Result<Outcome> again = Simulate(runs, PlainMachine(), options);
    EXPECT_EQ(again->elapsed_ns, outcome->elapsed_ns) << "equal inputs, equal results";
    EXPECT_EQ(again->records.size(), outcome->records.size());
  }
  EXPECT_EQ(lent > 0, std::string(policy) != "temporal" && jobs > 1);
}

INSTANTIATE_TEST_SUITE_P(
    All, Timelines,
    testing::Combine(testing::Values("flow", "nodegroup", "temporal", "timeshift"),
                     testing::Values(Claims::kContract, Claims::kSteps, Claims::kCurve),
                     testing::Values(1, 2, 3, 4)));

}  // namespace
}  // namespace sluice::scheduler::simulate
