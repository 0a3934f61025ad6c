// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <tuple>

#include "scheduler/audit/audit.h"
#include "scheduler/policy/policies.h"
#include "tests/model/loans_check.h"
#include "tests/unit/scheduler/simulate/models.h"

/// Random jobs under every policy, every kind of claims and the settings that `auto` finds (soft
/// budgets, budgets and phases), with all that goes differently than planned: jobs come, leave,
/// need more than their profile says and stand still, and the operator changes the budget. The
/// audit, which shares no code with ledger and policies, replays each run.
namespace sluice::scheduler::simulate {
namespace {

uint32_t RunsPerCell() {
  const char* runs = std::getenv("SLUICE_RUNS");
  return runs == nullptr ? 50 : static_cast<uint32_t>(std::strtoul(runs, nullptr, 10));
}

constexpr uint32_t kMostOvertakes = 4;  // docs/operations/failures.md, "Who waits"

enum class Kind { kIdentical, kMixed };

class RandomSharing {
 public:
  RandomSharing(uint32_t seed, const std::string& policy, Claims claims, size_t jobs, Kind kind)
      : random_(seed) {
    for (size_t i = 0; i < jobs; ++i) {
      const bool copy = kind == Kind::kIdentical && i > 0;
      workloads_.push_back(copy ? workloads_[0] : WorkloadOf("w", RandomLayers(&random_)));
    }
    for (const Workload& workload : workloads_) runs_.push_back(RunOf(workload));
    runs_[0].newcomer = false;
    runs_[0].leaves_after = 0;  // somebody stays
    const auto least = static_cast<Units>(LeastPool(runs_));
    options_.unit_bytes = 8;
    options_.pool_units = least + Pick(least + 1);
    options_.setting.policy.policy = policy;
    options_.setting.policy.lanes = 2 + Pick(3);
    options_.setting.policy.turns = Pick(2) == 0 ? Turns::kByTicket : Turns::kByService;
    options_.setting.policy.groups_per_peak = 1 + Pick(30);
    options_.setting.claims = claims;
    options_.setting.drain = static_cast<Drain>(Pick(3));
    options_.setting.credit_parts = 1 + Pick(16);
    options_.iterations = 3;
    options_.gate_ns = 0;  // an iteration of these takes less
    options_.record = true;
    options_.most_ns = 2e6;
    if (Pick(2) == 0) options_.host = {1 + Pick(2 * options_.pool_units), 1.0 + Pick(50)};
    if (options_.host.units > 0) {
      if (Pick(2) == 0) options_.setting.policy.residents = 1 + Pick(static_cast<Units>(jobs));
      options_.setting.policy.slice_ns = 1 + Pick(5000);
    }
    if (Pick(2) == 0) {  // as Zico's figure 10: less for a while
      const Units less = least + Pick(options_.pool_units - least + 1);
      const double at = 500 + Pick(5000);
      options_.budget_changes = {{at, less}, {at + Pick(9000), options_.pool_units}};
    }
    if (Pick(2) == 0) TakeWhatAutoFinds(least);
  }

  Options& options() { return options_; }
  const Options& options() const { return options_; }
  const std::vector<JobRun>& runs() const { return runs_; }
  /// For people: what is special about the run.
  std::string Describe() const {
    std::string text = "; pool " + std::to_string(options_.pool_units) + ", host memory " +
                       std::to_string(options_.host.units) + ", " +
                       std::to_string(options_.setting.policy.lanes) + " lanes, soft budget " +
                       std::to_string(options_.setting.policy.soft_budget) + ", budget " +
                       std::to_string(options_.setting.budget) + ", phase " +
                       std::to_string(options_.setting.policy.phase);
    for (const BudgetChange& change : options_.budget_changes) {
      text += ", budget " + std::to_string(change.budget) + " at " + std::to_string(change.at_ns);
    }
    for (const JobRun& run : runs_) {
      text += "\n  from " + std::to_string(run.start_ns) + ", base " +
              std::to_string(run.workload->base_units) + ", peak " +
              std::to_string(run.workload->plan.peak_units) + (run.newcomer ? ", new" : "") +
              ", leaves after " + std::to_string(run.leaves_after);
      for (const Deviation& deviation : run.deviations) {
        text += ", " + std::to_string(deviation.units) + " more in iteration " +
                std::to_string(deviation.iteration) + " at gate " + std::to_string(deviation.gate);
      }
    }
    return text;
  }
  Result<Outcome> Play() const { return Simulate(runs_, PlainMachine(), options_); }

 private:
  /// tune.h: budgets, hard and soft, and phases.
  void TakeWhatAutoFinds(Units least) {
    if (Pick(3) == 0) options_.setting.budget = least + Pick(options_.pool_units - least + 1);
    if (Pick(2) == 0) options_.setting.policy.soft_budget = 1 + Pick(options_.pool_units);
    if (Pick(2) == 0) options_.setting.policy.phase = 0.1 * (1 + Pick(9));
  }

  Units Pick(Units bound) { return static_cast<Units>(random_() % bound); }

  JobRun RunOf(const Workload& workload) {
    JobRun run{&workload, static_cast<double>(Pick(3000))};
    run.priority = static_cast<int32_t>(Pick(3));
    run.newcomer = Pick(3) == 0;
    if (Pick(3) == 0) run.leaves_after = 3 + Pick(5);
    for (Units i = Pick(3); i > 0; --i) {
      run.stalls.push_back({1 + Pick(6), Pick(static_cast<Units>(workload.kernels.size())),
                            static_cast<double>(Pick(20000))});
    }
    if (Pick(3) == 0) {
      for (Units i = 1 + Pick(2); i > 0; --i) {
        run.deviations.push_back({3 + Pick(5), Pick(static_cast<Units>(workload.plan.gates.size())),
                                  1 + Pick(workload.plan.peak_units)});
      }
    }
    return run;
  }

  std::mt19937 random_;
  std::vector<Workload> workloads_;
  std::vector<JobRun> runs_;
  Options options_;
};

std::string Why(const AuditReport& report) {
  if (report.violations.empty()) return "over its budget, claim or limit";
  const AuditViolation& first = report.violations[0];
  return first.rule + " at record " + std::to_string(first.record) + ": " + first.text;
}

class Sharing : public testing::TestWithParam<std::tuple<std::string, Claims, size_t, Kind>> {
 protected:
  static void TearDownTestSuite() {
    std::printf("%zu evictions in %zu cells\n", evicted_, cells_);
    // Few of those that deviate do so where nobody could go on.
    if (cells_ > 70 && RunsPerCell() >= 50) {
      EXPECT_GT(evicted_, 20u);
    }
  }
  static size_t evicted_;
  static size_t cells_;
};
size_t Sharing::evicted_ = 0;
size_t Sharing::cells_ = 0;

TEST_P(Sharing, KeepsEveryPromiseWhateverHappens) {
  const auto& [policy, claims, jobs, kind] = GetParam();
  size_t refused = 0;
  size_t deviating = 0;
  size_t evicted = 0;
  for (uint32_t run = 0; run < RunsPerCell(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    const RandomSharing sharing(run * 7919 + static_cast<uint32_t>(jobs), policy, claims, jobs,
                                kind);
    // Every wait ends: nothing stands still, and each job goes on until it has done its iterations.
    const Result<Outcome> outcome = sharing.Play();
    ASSERT_TRUE(outcome.ok()) << outcome.status().message() << sharing.Describe();
    const AuditReport report = Audit(outcome->records);
    ExpectLoansOf(outcome->records, report);
    ASSERT_TRUE(report.ok()) << Why(report);
    EXPECT_EQ(report.unchecked_orders, 0u);
    EXPECT_EQ(report.broken_promises, 0u);
    EXPECT_EQ(report.overbase_troughs, 0u) << "I2";
    EXPECT_EQ(outcome->budget_since_ns.size(), sharing.options().budget_changes.size());
    for (size_t i = 0; i < jobs; ++i) {
      const JobRun& planned = sharing.runs()[i];
      const JobOutcome& job = outcome->jobs[i];
      deviating += planned.deviations.empty() ? 0u : 1u;
      evicted += job.evictions;
      EXPECT_LE(job.most_overtaken, kMostOvertakes) << "job " << i << sharing.Describe();
      if (!job.refused.empty()) {
        ++refused;
        EXPECT_FALSE(planned.deviations.empty()) << "job " << i << ": " << job.refused;
      } else if (planned.leaves_after > 0 && job.iterations >= planned.leaves_after) {
        EXPECT_EQ(job.iterations, planned.leaves_after);
      } else {
        EXPECT_GE(job.iterations, sharing.options().iterations) << "job " << i << " starves";
      }
    }
  }
  EXPECT_GT(deviating, 0u);
  EXPECT_LT(refused, deviating) << "not everybody who deviates is out of memory";
  evicted_ += evicted;
  ++cells_;
}

using Cell = std::tuple<std::string, Claims, size_t, Kind>;

std::string NameOf(const testing::TestParamInfo<Cell>& cell) {
  constexpr const char* kClaims[] = {"_contract_", "_steps_", "_curve_"};
  const auto& [policy, claims, jobs, kind] = cell.param;
  return policy + kClaims[static_cast<size_t>(claims)] + std::to_string(jobs) +
         (kind == Kind::kMixed ? "_mixed" : "_identical");
}

const auto kCells =
    testing::Combine(testing::ValuesIn(PolicyNames()),
                     testing::Values(Claims::kContract, Claims::kSteps, Claims::kCurve),
                     testing::Values(2, 3, 4), testing::Values(Kind::kIdentical, Kind::kMixed));

INSTANTIATE_TEST_SUITE_P(All, Sharing, kCells, NameOf);

/// That the two bounds would show: nobody is held back for who waits, and a job keeps a unit more
/// than it asked for.
TEST(SharingShows, WhoIsOvertakenTooOften) {
  uint32_t most = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    RandomSharing sharing(seed, "flow", Claims::kContract, 4, Kind::kMixed);
    sharing.options().setting.policy.max_overtakes = 1000;
    const Result<Outcome> outcome = sharing.Play();
    if (!outcome.ok()) continue;  // somebody starves
    for (const JobOutcome& job : outcome->jobs) most = std::max(most, job.most_overtaken);
  }
  EXPECT_GT(most, kMostOvertakes);
}

TEST(SharingShows, WhoKeepsMoreThanItAskedFor) {
  const RandomSharing sharing(1, "flow", Claims::kContract, 2, Kind::kMixed);
  Result<Outcome> outcome = sharing.Play();
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(Audit(outcome->records).overbase_troughs, 0u);
  for (Record& record : outcome->records) {
    const bool admits = record.event == EventKind::kRestore || record.event == EventKind::kAdmit;
    if (admits) record.request -= std::min<Units>(record.request, 1);
  }
  EXPECT_GT(Audit(outcome->records).overbase_troughs, 0u);
}

}  // namespace
}  // namespace sluice::scheduler::simulate
