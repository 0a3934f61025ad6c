// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>

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
