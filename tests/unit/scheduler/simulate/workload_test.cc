// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/workload.h"

#include "tests/unit/scheduler/simulate/models.h"

namespace sluice::scheduler::simulate {
namespace {

TEST(Workload, IsWhatTheProfilerWouldMeasure) {
  const Layers layers{{16, 24}, {100, 50}, 8};
  const Result<Profile> profile = ProfileOf(TraceOf(layers), 1, PlainMachine());
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->period, 4u);
  EXPECT_EQ(profile->base_bytes, 8u);
  EXPECT_EQ(profile->peak_bytes, 48u);
  EXPECT_EQ(profile->live_before, (std::vector<uint64_t>{24, 48, 48, 24}));
  EXPECT_EQ(profile->max_live, (std::vector<uint64_t>{48, 48, 48, 24}));
  EXPECT_EQ(profile->largest_alloc, (std::vector<uint64_t>{24, 0, 0, 0}));
  EXPECT_EQ(profile->launch_ns, (std::vector<uint32_t>{100, 50, 50, 100}));
  EXPECT_EQ(profile->iteration_ns, 300u);

  const Workload workload = WorkloadOf("two", layers);
  EXPECT_EQ(workload.base_units, 1u);
  EXPECT_EQ(workload.plan.peak_units, 6u);
  EXPECT_EQ(workload.alone_ns, 300);
  ASSERT_EQ(workload.kernels.size(), 4u);
  EXPECT_EQ(workload.kernels[1].calls, 1u) << "one allocation";
  EXPECT_EQ(workload.kernels[3].calls, 1u) << "one free";
  EXPECT_EQ(workload.calls_after, 1u);
  EXPECT_EQ(workload.kernels[0].demand.sm, 1) << "as long as it takes to fill the GPU";
  EXPECT_EQ(workload.kernels[1].demand.sm, 0.5);
}

TEST(Workload, AnIterationIsAsLongAsItsLongestLaunch) {
  // 12.7 s, and 32 bits hold 4.29.
  const Layers layers{{16}, {12'700'000'000}, 8};
  const Result<Profile> profile = ProfileOf(TraceOf(layers), 1, PlainMachine());
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->launch_ns, (std::vector<uint32_t>{UINT32_MAX, UINT32_MAX}));
  EXPECT_EQ(profile->iteration_ns, 25'400'000'000u);
  const auto at = trace::AtBatch(TraceOf(layers), 1);
  ASSERT_TRUE(at.ok());
  EXPECT_EQ(LaunchTimes(*at, PlainMachine()), (std::vector<double>{12.7e9, 12.7e9}));
}

TEST(Workload, RoundsBlocksToWholeGranules) {
  const Layers layers{{16, 24}, {100, 50}, 8};
  WorkloadOptions options = FineGates();
  options.granule_bytes = 20;
  const Workload rounded = MakeWorkload("w", TraceOf(layers), 1, PlainMachine(), options).value();
  EXPECT_EQ(rounded.base_bytes, 20u);
  EXPECT_EQ(rounded.peak_bytes, 20u + 20 + 40);
  EXPECT_EQ(rounded.kernels[0].alone_ns, 100) << "a time follows from what is computed";
  options.granule_bytes = 8;
  EXPECT_EQ(MakeWorkload("w", TraceOf(layers), 1, PlainMachine(), options)->peak_bytes,
            WorkloadOf("w", layers).peak_bytes);
}

TEST(Workload, TakesTheLongerOfTheTwoTimesAndAtLeastTheLaunchFloor) {
  trace::TraceBuilder builder;
  for (const auto& [flops, bytes] : {std::pair<uint64_t, uint64_t>{100, 40}, {10, 200}, {0, 0}}) {
    trace::Operator op;
    op.name = "op";
    op.flops = {flops, 0};
    op.bytes = {bytes, 0};
    ASSERT_TRUE(builder.AddOperator(op).ok());
  }
  const trace::Trace trace = builder.Finish().value();
  Machine machine = PlainMachine();
  machine.default_cost.base_ns = 5;
  machine.sharing_variant = SharingVariant::kRoofline;
  const Workload workload = MakeWorkload("w", trace, 1, machine, FineGates()).value();
  EXPECT_EQ(workload.kernels[0].alone_ns, 100);
  EXPECT_EQ(workload.kernels[1].alone_ns, 200);
  EXPECT_EQ(workload.kernels[2].alone_ns, 5);
  EXPECT_EQ(workload.kernels[0].demand.sm, 1);
  EXPECT_DOUBLE_EQ(workload.kernels[0].demand.bandwidth, 0.4);
  EXPECT_DOUBLE_EQ(workload.kernels[1].demand.sm, 0.1)
      << "a twentieth of the FLOPs, at least a tenth";
  EXPECT_EQ(workload.kernels[1].demand.bandwidth, 1);
}

/// What a live node measured, as a job of the model.
TEST(Workload, OfALiveJob) {
  const Result<Profile> profile = ProfileOf(TraceOf({{32, 64}, {50, 70}, 8}), 1, PlainMachine());
  ASSERT_TRUE(profile.ok());
  const CyclePlan plan = PlanGates(*profile, 8);
  const Result<Workload> live = LiveWorkload("live", *profile, plan, 8, 1000);
  ASSERT_TRUE(live.ok()) << live.status().message();
  EXPECT_EQ(live->kernels.size(), profile->period);
  EXPECT_DOUBLE_EQ(live->alone_ns, static_cast<double>(profile->iteration_ns));
  EXPECT_EQ(live->gap_ns, 0);
  EXPECT_EQ(live->plan.peak_units, plan.peak_units);
  EXPECT_EQ(live->base_units, 1u);
  Machine machine = PlainMachine();
  machine.sharing = Sharing::kTimeSlice;
  machine.launch_ns = 0;
  Options options;
  options.gate_ns = 0;
  options.unit_bytes = 8;
  options.pool_units = plan.peak_units;
  for (const size_t kernels : {100u, 2u}) {
    const Workload coarse = Coarse(*live, kernels);
    const Result<Outcome> alone = Simulate({{&coarse}}, machine, options);
    ASSERT_TRUE(alone.ok()) << alone.status().message();
    EXPECT_GT(alone->jobs[0].iteration_ns, 999) << kernels << ": what the clock says";
    EXPECT_LT(alone->jobs[0].iteration_ns, 1001 + coarse.kernels.back().alone_ns);
  }
  // A daemon that took over has no times of single launches.
  Profile restored = *profile;
  restored.launch_ns.clear();
  const Result<Workload> even = LiveWorkload("even", restored, plan, 8, 0);
  ASSERT_TRUE(even.ok());
  EXPECT_NEAR(even->alone_ns, live->alone_ns, 1e-6);
  EXPECT_EQ(even->gap_ns, 0);
  EXPECT_FALSE(LiveWorkload("none", Profile(), plan, 8, 0).ok());
  EXPECT_FALSE(LiveWorkload("none", *profile, CyclePlan(), 8, 0).ok());
}

TEST(Workload, WithinAPoolAsksForNoMoreThanOthersLeave) {
  WorkloadOptions options = FineGates();
  options.gates.placing = Placing::kPieces;
  const trace::Trace trace = TraceOf({{320, 320, 320}, {50, 50, 50}, 80});
  const Workload made = MakeWorkload("a", trace, 1, PlainMachine(), options).value();
  const auto lives = static_cast<Units>(made.peak_bytes / 8);
  const Units asks = made.plan.peak_units;
  ASSERT_EQ(asks, lives + lives / 32 + 6);
  const auto peaks = [&](Units pool) {
    std::vector<Workload> jobs = {made, made};
    jobs[1].base_units += 1;
    const bool tight = WithinPool(&jobs, pool, 8);
    EXPECT_EQ(tight, jobs[0].plan.peak_units < asks || jobs[1].plan.peak_units < asks) << pool;
    return std::pair(jobs[0].plan.peak_units, jobs[1].plan.peak_units);
  };
  const Units base = made.base_units;
  EXPECT_EQ(peaks(asks + base + 1), std::pair(asks, asks));
  EXPECT_EQ(peaks(asks + base), std::pair(asks - 1, asks));
  EXPECT_EQ(peaks(asks + base - 2), std::pair(asks - 3, asks - 2));
  std::vector<Workload> limited = {made};
  limited[0].limit = asks - 1;
  EXPECT_TRUE(WithinPool(&limited, 2 * asks, 8));
  EXPECT_EQ(limited[0].plan.peak_units, asks - 1);
  // With less than what lives they are refused, and told of that.
  EXPECT_EQ(peaks(1), std::pair(lives, lives));
}

TEST(Workload, NamesWhatIsMissing) {
  const trace::Trace trace = TraceOf({{8}, {1}, 8});
  EXPECT_NE(MakeWorkload("w", trace, 0, PlainMachine()).status().message().find("batch"),
            std::string::npos);
  Machine unknown = PlainMachine();
  unknown.flops_per_s = 0;
  EXPECT_NE(MakeWorkload("w", trace, 1, unknown).status().message().find("flops_per_s"),
            std::string::npos);
  WorkloadOptions tiny;
  tiny.unit_bytes = 1;
  EXPECT_EQ(MakeWorkload("w", TraceOf({{uint64_t{28} << 30}, {1}, 8}), 1, PlainMachine(), tiny)
                .status()
                .message(),
            "unit: 1 bytes; allowed: from 29, for a peak of 30064771080");
  WorkloadOptions nothing;
  nothing.granule_bytes = 0;
  EXPECT_EQ(MakeWorkload("w", trace, 1, PlainMachine(), nothing).status().message(),
            "granule: 0 bytes; allowed: from 1");
  EXPECT_NE(ProfileOf(trace::Trace(), 1, PlainMachine()).status().message().find("operators"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::scheduler::simulate
