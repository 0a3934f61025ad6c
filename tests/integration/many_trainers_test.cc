// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <map>

#include "tests/support/trainer_crowd.h"

namespace sluice::testing {
namespace {

struct Spec {
  const char* name;
  double pool_fraction;
  std::vector<Arrival> jobs;
};

void PrintTo(const Spec& spec, std::ostream* out) { *out << spec.name; }

class ManyTrainers : public ::testing::TestWithParam<Spec> {
 protected:
  /// Each job runs alone once, whichever tests are run.
  static const TrainerCrowd& Crowd() {
    static std::map<std::string, TrainerCrowd> crowds;
    const Spec& spec = GetParam();
    return crowds.try_emplace(spec.name, spec.jobs, spec.pool_fraction).first->second;
  }
};

TEST_P(ManyTrainers, WithoutSluiceOneRunsOutOfMemory) { Crowd().ExpectOutOfMemoryWithoutSluice(); }

TEST_P(ManyTrainers, FlowLendsWithinIterations) {
  EXPECT_GT(Crowd().Share("flow").lent_bytes_within_iterations, 0u);
}

// The control is shorter, though long enough for every job to have a profile.
TEST_P(ManyTrainers, TemporalLendsNothingWithinIterations) {
  const scheduler::AuditReport report = Crowd().Share("temporal", 40);
  EXPECT_EQ(report.lent_bytes_within_iterations, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Crowds, ManyTrainers,
    ::testing::Values(Spec{"Three",
                           0.5,
                           {{{"small-a", 1, 60, {}}},
                            {{"small-b", 2, 60, {}}},
                            {{"small-a", 3, 60, {"--optimizer", "adam"}}}}},
                      Spec{"Four",
                           0.45,
                           {{{"small-a", 1, 60, {}}},
                            {{"small-b", 2, 60, {}}},
                            {{"small-a", 3, 60, {"--optimizer", "adam"}}},
                            {{"small-b", 4, 60, {}}}}},
                      // The first ends while the others run; the last comes when two are under way.
                      Spec{"StartAndStopAtDifferentTimes",
                           0.5,
                           {{{"small-a", 1, 30, {}}},
                            {{"small-b", 2, 80, {}}, 0, 5},
                            {{"small-a", 3, 60, {}}, 1, 8}}}),
    [](const ::testing::TestParamInfo<Spec>& spec) { return std::string(spec.param.name); });

}  // namespace
}  // namespace sluice::testing
