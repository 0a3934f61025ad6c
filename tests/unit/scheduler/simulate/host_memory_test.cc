// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Bases in host memory by turns, in the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/audit/audit.h"
#include "scheduler/simulate/tune.h"
#include "tests/unit/scheduler/simulate/models.h"

namespace sluice::scheduler::simulate {
namespace {

constexpr Units kBase = 60;
constexpr Units kTransient = 40;

/// An iteration of 20 kernels of 50 ns, each of which leaves half of the GPU: two jobs beside each
/// other get twice as much done as one.
Workload Job(Units base = kBase) {
  return WorkloadOf("a", {std::vector<uint64_t>(10, 32), std::vector<uint64_t>(10, 50), 8 * base});
}

/// Room for all bases and what one iteration needs beside them.
Options InLeastPool(size_t jobs, Units base = kBase) {
  Options options;
  options.gate_ns = 0;
  options.unit_bytes = 8;
  options.pool_units = static_cast<Units>(jobs) * base + kTransient;
  options.iterations = 20;
  return options;
}

/// A base is moved in 24 ns, and away for forty iterations.
Options BySlices(size_t jobs, uint32_t residents) {
  Options options = InLeastPool(jobs);
  options.host.units = static_cast<Units>(jobs) * kBase;
  options.setting.policy.residents = residents;
  options.setting.policy.slice_ns = 40'000;
  options.setting.policy.lanes = static_cast<uint32_t>(jobs);
  return options;
}

Result<Outcome> Share(const Workload& job, size_t jobs, const Options& options) {
  return Simulate(std::vector<JobRun>(jobs, JobRun{&job}), PlainMachine(), options);
}

double ThroughputOf(const Workload& job, size_t jobs, const Options& options) {
  const Result<Outcome> outcome = Share(job, jobs, options);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return outcome.ok() ? outcome->Throughput() : 0;
}

class SlicesOf : public testing::TestWithParam<size_t> {};

TEST_P(SlicesOf, MakeRoomForOneMore) {
  const size_t jobs = GetParam();
  const Workload job = Job();
  const double all_stay = ThroughputOf(job, jobs, BySlices(jobs, 0));
  EXPECT_NEAR(all_stay, 1, 0.05) << "one iteration at a time";
  EXPECT_GT(ThroughputOf(job, jobs, BySlices(jobs, 2)), 1.7 * all_stay);
  EXPECT_NEAR(ThroughputOf(job, jobs, BySlices(jobs, static_cast<uint32_t>(jobs))), all_stay, 0.02)
      << "nobody has to go";
}

TEST_P(SlicesOf, EveryBaseIsAwayAndComesBackAndTheLogIsSound) {
  const size_t jobs = GetParam();
  const Workload job = Job();
  Options options = BySlices(jobs, 2);
  options.record = true;
  const Result<Outcome> outcome = Share(job, jobs, options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_LE(outcome->most_held, options.pool_units);
  uint32_t most = 0;
  uint32_t least = UINT32_MAX;
  for (const JobOutcome& one : outcome->jobs) {
    EXPECT_GT(one.iterations, options.iterations);
    EXPECT_EQ(one.refused, "");
    most = std::max(most, one.evictions);
    least = std::min(least, one.evictions);
  }
  EXPECT_GE(least, 1u) << "away and back";
  EXPECT_LE(most, least + 1) << "by turns";
  const AuditReport report = Audit(outcome->records);
  for (const auto& violation : report.violations) {
    ADD_FAILURE() << violation.rule << " " << violation.text;
  }
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.broken_promises, 0u);
  // All of a base goes, and comes back to the same place; who is back has no claim yet.
  std::map<JobId, Extents> away;
  for (const Record& record : outcome->records) {
    if (record.event == EventKind::kEvict) {
      EXPECT_EQ(TotalUnits(record.extents), kBase);
      away[record.job] = record.extents;
      EXPECT_LE(away.size(), jobs - 1);
    }
    if (record.event != EventKind::kBringBack) continue;
    EXPECT_EQ(record.extents, away[record.job]);
    EXPECT_EQ(record.claim, 0u);
    away.erase(record.job);
  }
}

INSTANTIATE_TEST_SUITE_P(ThreeAndFour, SlicesOf, testing::Values(3, 4));

/// Between two moves of one base lies a slice, and nobody is away much longer than that.
TEST(Slices, ABaseIsAwayForItsSlice) {
  const Workload job = Job();
  Options options = BySlices(3, 2);
  options.record = true;
  const Result<Outcome> outcome = Share(job, 3, options);
  ASSERT_TRUE(outcome.ok());
  const auto slice = static_cast<double>(options.setting.policy.slice_ns);
  std::map<JobId, uint64_t> left_ns;
  size_t back = 0;
  for (const Record& record : outcome->records) {
    if (record.event == EventKind::kEvict) left_ns[record.job] = record.t_ns;
    if (record.event != EventKind::kBringBack) continue;
    ++back;
    const auto away = static_cast<double>(record.t_ns - left_ns[record.job]);
    EXPECT_GE(away, slice - 1);
    EXPECT_LE(away, slice + 3 * job.alone_ns) << "until the others have ended their iterations";
  }
  EXPECT_GE(back, 3u);
}

TEST(Slices, TheWindowLastsOneForEachJob) {
  const Workload job = Job();
  Options options = BySlices(3, 2);
  options.iterations = 3;  // of one job in far less than a slice
  const auto window = [&] {
    const Result<Outcome> outcome = Share(job, 3, options);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    double warm = 0;
    for (const JobOutcome& one : outcome->jobs) warm = std::max(warm, one.ends_ns[options.warm_up]);
    return outcome->elapsed_ns - warm;
  };
  const auto slice = static_cast<double>(options.setting.policy.slice_ns);
  EXPECT_GE(window(), 3 * slice);
  EXPECT_LE(window(), 3.5 * slice);
  options.setting.policy.residents = 3;
  EXPECT_LT(window(), slice) << "nobody has to go";
  options.setting.policy.residents = 0;
  EXPECT_LT(window(), slice);
}

TEST(Slices, ASlowerLinkMakesThemWorthLess) {
  const Workload job = Job();
  Options options = BySlices(3, 2);
  double before = 2.1;
  for (const double bytes_per_ns : {20., 0.04, 0.015}) {  // 24 ns, 12 us, 32 us
    options.host.bytes_per_ns = bytes_per_ns;
    const double throughput = ThroughputOf(job, 3, options);
    EXPECT_LT(throughput, before - 0.1) << bytes_per_ns;
    before = throughput;
  }
}

TEST(Slices, NobodyGoesWhereHostMemoryHasNoRoom) {
  const Workload job = Job();
  for (const Units units : {Units{0}, kBase - 1}) {
    Options options = BySlices(3, 2);
    options.host.units = units;
    options.iterations = 6;
    const Result<Outcome> outcome = Share(job, 3, options);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    EXPECT_NEAR(outcome->Throughput(), 1, 0.05);
    for (const JobOutcome& one : outcome->jobs) EXPECT_EQ(one.evictions, 0u);
  }
}

/// It brings everybody back before it begins, and is one of them when it is known.
TEST(Slices, ANewcomerHasItsTurnToo) {
  const Workload job = Job();
  std::vector<JobRun> runs(4, JobRun{&job});
  runs[3].newcomer = true;
  runs[3].start_ns = 100'000;
  Options options = BySlices(4, 2);
  options.record = true;
  const Result<Outcome> outcome = Simulate(runs, PlainMachine(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  const AuditReport report = Audit(outcome->records);
  for (const auto& violation : report.violations) {
    ADD_FAILURE() << violation.rule << " " << violation.text;
  }
  std::set<JobId> away;
  bool known = true;
  uint64_t came_ns = 0;
  for (const Record& record : outcome->records) {
    if (record.event == EventKind::kEvict) {
      away.insert(record.job);
      EXPECT_TRUE(known) << "nobody goes while it is measured";
    }
    if (record.event == EventKind::kBringBack) away.erase(record.job);
    if (record.event == EventKind::kAdmit) came_ns = record.t_ns;
    if (record.event == EventKind::kGate && !record.profiled) {
      EXPECT_TRUE(away.empty());
      EXPECT_LT(record.t_ns - came_ns, options.setting.policy.slice_ns / 4) << "nobody's slice";
      known = false;
    }
    if (record.event == EventKind::kTrough && record.job == 4) known = true;
  }
  for (const JobOutcome& one : outcome->jobs) EXPECT_GE(one.evictions, 1u);
}

/// Jobs of all kinds, some of which leave their claim now and then, under each policy.
class SlicedTimelines : public testing::TestWithParam<std::tuple<const char*, Claims>> {};

TEST_P(SlicedTimelines, KeepEveryPromise) {
  const auto [policy, claims] = GetParam();
  std::mt19937 random(static_cast<uint32_t>(claims) + 1);
  const auto pick = [&random](uint32_t bound) { return static_cast<uint32_t>(random()) % bound; };
  uint64_t moves = 0;
  for (int round = 0; round < 20; ++round) {
    const size_t jobs = 2 + pick(3);
    std::vector<Workload> workloads;
    Units bases = 0;
    Units peak = 0;
    for (size_t i = 0; i < jobs; ++i) {
      Layers layers = RandomLayers(&random);
      layers.parameters = 8 * (1 + pick(60));
      workloads.push_back(WorkloadOf("w", layers));
      bases += workloads.back().base_units;
      peak = std::max(peak, workloads.back().plan.peak_units - workloads.back().base_units);
    }
    Options options;
    options.gate_ns = 0;
    options.unit_bytes = 8;
    options.pool_units = bases + peak + pick(peak + 1);
    options.host.units = pick(4) == 0 ? bases / 2 : bases + 100;
    options.host.bytes_per_ns = pick(2) == 0 ? 20 : 0.5;
    options.setting.policy.policy = policy;
    options.setting.policy.residents = 1 + pick(static_cast<uint32_t>(jobs));
    options.setting.policy.slice_ns = 1'000 + pick(20'000);
    options.setting.policy.lanes = 2 + pick(3);
    options.setting.policy.turns = pick(2) == 0 ? Turns::kByTicket : Turns::kByService;
    options.setting.claims = claims;
    options.setting.drain = static_cast<Drain>(pick(3));
    options.iterations = 3;
    options.record = true;
    std::vector<JobRun> runs;
    for (const Workload& workload : workloads) {
      runs.push_back({&workload, static_cast<double>(pick(999)), static_cast<int32_t>(pick(2))});
      if (pick(4) == 0) runs.back().deviations = {{2 + pick(5), pick(3), 1 + pick(10)}};
    }
    const Result<Outcome> outcome = Simulate(runs, PlainMachine(), options);
    ASSERT_TRUE(outcome.ok()) << "round " << round << ": " << outcome.status().message();
    EXPECT_LE(outcome->most_held, options.pool_units);
    const AuditReport report = Audit(outcome->records);
    ASSERT_TRUE(report.ok()) << "round " << round << ": "
                             << (report.violations.empty()
                                     ? "over budget or limit"
                                     : report.violations[0].rule + " " + report.violations[0].text);
    for (const JobOutcome& one : outcome->jobs) {
      if (one.refused.empty()) {
        EXPECT_GT(one.iterations, options.iterations) << "nobody starves";
      }
      moves += one.evictions;
    }
    const Result<Outcome> again = Simulate(runs, PlainMachine(), options);
    EXPECT_EQ(again->elapsed_ns, outcome->elapsed_ns) << "equal inputs, equal results";
  }
  EXPECT_GT(moves, 20u);
}

INSTANTIATE_TEST_SUITE_P(
    All, SlicedTimelines,
    testing::Combine(testing::Values("flow", "nodegroup", "temporal", "timeshift"),
                     testing::Values(Claims::kContract, Claims::kSteps, Claims::kCurve)));

/// Little enough for a test: no switch but policies, lanes, claims and who is resident.
TuneOptions FewWays() {
  TuneOptions options;
  options.claims = Claims::kContract;
  options.budgets = 0;
  options.drains = false;
  options.groups.clear();
  options.phases.clear();
  options.credits.clear();
  return options;
}

bool TriesResidents(const Tuned& tuned) {
  return std::any_of(tuned.tried.begin(), tuned.tried.end(),
                     [](const Tried& tried) { return tried.setting.policy.residents != 0; });
}

TEST(Tune, FindsWhoIsResident) {
  const Workload job = Job();
  for (const size_t jobs : {size_t{3}, size_t{4}}) {
    Options options = InLeastPool(jobs);
    options.host.units = static_cast<Units>(jobs) * kBase;
    const std::vector<JobRun> runs(jobs, JobRun{&job});
    const Result<Tuned> tuned = Tune(runs, PlainMachine(), options, FewWays());
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    EXPECT_GE(tuned->setting.policy.residents, 2u);
    EXPECT_LT(tuned->setting.policy.residents, jobs);
    EXPECT_GT(tuned->outcome.Throughput(), 1.5 * tuned->temporal);
    // A slice is longer than a few iterations and than its moves.
    EXPECT_GE(static_cast<double>(tuned->setting.policy.slice_ns), 4 * job.alone_ns);
    Options chosen = options;
    chosen.setting = tuned->setting;
    EXPECT_EQ(Simulate(runs, PlainMachine(), chosen)->Throughput(), tuned->outcome.Throughput());
  }
}

/// What it looks at without the moves is about what it is with them.
TEST(Tune, ACoarseLookAtResidentsIsNoDream) {
  const Workload job = Job();
  Options options = InLeastPool(3);
  options.host.units = kBase;
  const Result<Tuned> tuned =
      Tune(std::vector<JobRun>(3, JobRun{&job}), PlainMachine(), options, FewWays());
  ASSERT_TRUE(tuned.ok());
  ASSERT_TRUE(TriesResidents(*tuned));
  size_t looked = 0;
  for (const Tried& close : tuned->finalists) {
    if (close.setting.policy.residents == 0) continue;
    for (const Tried& coarse : tuned->tried) {
      if (coarse.setting.policy.residents != close.setting.policy.residents ||
          coarse.setting.policy.policy != close.setting.policy.policy ||
          coarse.setting.policy.lanes != close.setting.policy.lanes)
        continue;
      EXPECT_NEAR(coarse.throughput, close.throughput, 0.15 * close.throughput);
      ++looked;
    }
  }
  EXPECT_GT(looked, 0u);
}

/// Most settings are looked at only so: a look with the moves takes a slice for each job.
TEST(Tune, ACoarseLookAtResidentsLeavesOutTheMoves) {
  const Workload job = Job();
  Options options = InLeastPool(3);
  options.host.units = kBase;
  const auto looks = [&](double bytes_per_ns) {
    options.host.bytes_per_ns = bytes_per_ns;
    const Result<Tuned> tuned =
        Tune(std::vector<JobRun>(3, JobRun{&job}), PlainMachine(), options, FewWays());
    EXPECT_TRUE(tuned.ok());
    std::vector<double> throughputs;
    for (const Tried& tried : tuned->tried) {
      if (tried.setting.policy.residents != 0) throughputs.push_back(tried.throughput);
    }
    return throughputs;
  };
  const std::vector<double> fast = looks(20);
  EXPECT_FALSE(fast.empty());
  EXPECT_EQ(looks(0.5), fast);
}

TEST(Tune, SlowMovesMakeLongSlices) {
  const Workload job = Job();
  Options options = InLeastPool(3);
  options.host.units = kBase;
  const auto slice = [&] {
    const Result<Tuned> tuned =
        Tune(std::vector<JobRun>(3, JobRun{&job}), PlainMachine(), options, FewWays());
    EXPECT_TRUE(tuned.ok());
    EXPECT_EQ(tuned->setting.policy.residents, 2u);
    return static_cast<double>(tuned->setting.policy.slice_ns);
  };
  EXPECT_NEAR(slice(), std::max(128 * 8 * kBase / 20., 4 * job.alone_ns), 1);
  options.host.bytes_per_ns = 4;
  EXPECT_NEAR(slice(), 128 * 8 * kBase / 4., 1);
}

TEST(Tune, AllStayWhereHostMemoryHasNoRoomOrBasesAreSmall) {
  const Workload job = Job();
  const Workload small = Job(1);
  const auto tries = [](const Workload& workload, size_t jobs, Options options) {
    const Result<Tuned> tuned =
        Tune(std::vector<JobRun>(jobs, JobRun{&workload}), PlainMachine(), options, FewWays());
    EXPECT_TRUE(tuned.ok()) << tuned.status().message();
    return tuned.ok() && TriesResidents(*tuned);
  };
  Options options = InLeastPool(3);
  EXPECT_FALSE(tries(job, 3, options));
  options.host.units = kBase - 1;
  EXPECT_FALSE(tries(job, 3, options)) << "each of them is away at times";
  options.host.units = kBase;
  EXPECT_TRUE(tries(job, 3, options));
  EXPECT_FALSE(tries(job, 2, options)) << "one alone has nobody to share with";
  options = InLeastPool(3, 1);
  options.host.units = 100;
  EXPECT_FALSE(tries(small, 3, options)) << "one unit of 43 is not worth it";
}

}  // namespace
}  // namespace sluice::scheduler::simulate
