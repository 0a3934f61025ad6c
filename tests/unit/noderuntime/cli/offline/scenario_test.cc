// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "intercept/blocks/block.h"
#include "scheduler/ledger/limits.h"

namespace sluice::cli {
namespace {

using scheduler::simulate::Workload;

Result<Scenario> Asked(const std::string& policy) {
  ScenarioOptions options;
  options.policy = policy;
  return Scenario::Load(options, SLUICE_MACHINES);
}

std::vector<NamedTrace> Resnets(size_t count) {
  const auto trace = ReadTrace(std::string(SLUICE_TRACES) + "/resnet50.trace");
  EXPECT_TRUE(trace.ok()) << trace.status().message();
  return std::vector<NamedTrace>(trace.ok() ? count : 0, trace.value());
}

bool KnowTouches(const std::vector<Workload>& jobs) {
  return std::all_of(jobs.begin(), jobs.end(), [](const Workload& job) {
    return job.touches.touch_ends.size() == job.kernels.size();
  });
}

TEST(Scenario, APlacedBlockIsOfWholeGranules) {
  static_assert(scheduler::simulate::kClientGranuleBytes == kGranuleBytes);
  ScenarioOptions options;
  const auto traces = Resnets(1);
  ASSERT_EQ(traces.size(), 1u);
  const auto job = [&] {
    return Scenario::Load(options, SLUICE_MACHINES)->Make(traces[0], 3).value();
  };
  const Workload packed = job();
  options.placing = scheduler::Placing::kPieces;
  EXPECT_EQ(job().peak_bytes % kGranuleBytes, 0u);
  EXPECT_GT(job().peak_bytes, packed.peak_bytes);
}

TEST(Scenario, AJobOnANodeClaimsMoreThanItAsksFor) {
  for (const auto placing :
       {scheduler::Placing::kPacked, scheduler::Placing::kRuns, scheduler::Placing::kPieces}) {
    ScenarioOptions options;
    options.placing = placing;
    options.policy = "flow";
    options.record = true;
    const auto scenario = Scenario::Load(options, SLUICE_MACHINES);
    const auto jobs = scenario->Make(Resnets(2), {8, 8}).value();
    const scheduler::CyclePlan& plan = jobs[0].plan;
    const auto answer = scenario->Share(jobs);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    scheduler::Units most = 0;
    for (const auto& record : answer->outcome.records) most = std::max(most, record.claim);
    EXPECT_EQ(most, placing == scheduler::Placing::kPacked
                        ? plan.peak_units
                        : scheduler::WithClaimMargin(plan.peak_units, plan.piece_units))
        << scheduler::PlacingName(placing);
  }
}

TEST(Scenario, TouchesAreMadeForWhatIsPagedAlone) {
  const auto traces = Resnets(2);
  const auto spatial = Asked("spatial");
  ASSERT_TRUE(spatial.ok()) << spatial.status().message();
  const auto fit = spatial->Make(traces, {32, 32});
  const auto paged = spatial->Make(traces, {300, 300});
  ASSERT_TRUE(fit.ok() && paged.ok());
  EXPECT_FALSE(KnowTouches(*fit));
  EXPECT_TRUE(KnowTouches(*paged));
  EXPECT_FALSE(KnowTouches(Asked("temporal")->Make(traces, {300, 300}).value()));
  // A search for the largest batch asks for much more: rows for terabytes.
  EXPECT_FALSE(KnowTouches({spatial->Make(traces[0], uint64_t{1} << 20).value()}));
}

}  // namespace
}  // namespace sluice::cli
