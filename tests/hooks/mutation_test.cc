// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <cctype>

#include "tests/hooks/hook_fixture.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

constexpr const char* kHooks[] = {
#define SLUICE_HOOK(symbol, what, params, names, policy) #symbol,
#include "intercept/hooks/hooks.def"
#undef SLUICE_HOOK
#define SLUICE_NVML_HOOK(symbol, params, names, policy) #symbol,
#include "intercept/nvml/nvml_hooks.def"
#undef SLUICE_NVML_HOOK
};

/// Every hook has a test, which passes with it and fails without it.
class Hooks : public ::testing::TestWithParam<const char*> {
 protected:
  /// MPS: of that one's clients only a GPU that is shared through it has any.
  static std::unique_ptr<TestBed> MakeBed(const char* machine) {
    BedOptions options;
    options.machine = machine;
    options.gpus = 2;  // one that others may be given access to
    options.gpu_memory = "96MiB";
    options.pool = "48MiB";
    options.unit = options.handle;  // physical memory can be leased
    options.noded_flags = {"--context", std::to_string(hooks::kContext)};
    return std::make_unique<TestBed>(options);
  }
  static void TearDownTestSuite() {
    bed_.reset();
    mps_bed_.reset();
  }
  static TestBed& BedFor(const std::string& hook) {
    const bool mps = hook.find("MPS") != std::string::npos;
    std::unique_ptr<TestBed>& bed = mps ? mps_bed_ : bed_;
    if (bed == nullptr) bed = MakeBed(mps ? "sharing = mps\n" : "");
    return *bed;
  }

  /// Patience: how long a test waits for what the daemon is to say soon.
  static cli::JobProcess RunTest(const std::string& hook, bool taken_out,
                                 const std::string& patience) {
    JobSpec spec;
    spec.label = hook;
    // The library with switches takes the place of the one that `sluice run` would load.
    spec.command = {"/usr/bin/env", "LD_PRELOAD=" + Program("LIBRARY_WITH_SWITCHES"),
                    Program("HOOKS"), "--gtest_filter=*." + hook};
    spec.run_flags = {"--limit", std::to_string(hooks::kLimit)};
    spec.environment = {{"SLUICE_TEST_PATIENCE_MS", patience}};
    if (taken_out) spec.environment.emplace_back("SLUICE_TEST_WITHOUT", hook);
    return BedFor(hook).Run(spec);
  }
  static std::string LineWith(const cli::JobProcess& job, const std::string& part) {
    for (const std::string& line : job.out()) {
      if (line.find(part) != std::string::npos) return line;
    }
    return "";
  }

  static std::unique_ptr<TestBed> bed_;
  static std::unique_ptr<TestBed> mps_bed_;
};

std::unique_ptr<TestBed> Hooks::bed_;
std::unique_ptr<TestBed> Hooks::mps_bed_;

TEST_P(Hooks, IsThereAndIsMissedWhenItIsNot) {
  // A busy machine may need more than the usual. The test without the hook gets what sufficed with
  // it, or a timeout that has nothing to do with the hook would look like its absence.
  std::string patience = "100";
  cli::JobProcess with = RunTest(GetParam(), false, patience);
  for (const char* more : {"1000", "10000"}) {
    if (with.status().ok()) break;
    patience = more;
    with = RunTest(GetParam(), false, patience);
  }
  ASSERT_TRUE(with.status().ok()) << Describe(with);
  ASSERT_NE(LineWith(with, "[  PASSED  ] 1 test."), "") << "no test of this name\n"
                                                        << Describe(with);
  const cli::JobProcess without = RunTest(GetParam(), true, patience);
  EXPECT_FALSE(without.status().ok()) << "nothing notices that the hook is gone";
  EXPECT_NE(LineWith(without, "[  FAILED  ] 1 test"), "") << Describe(without);
}

INSTANTIATE_TEST_SUITE_P(All, Hooks, ::testing::ValuesIn(kHooks),
                         [](const ::testing::TestParamInfo<const char*>& hook) {
                           return std::string(hook.param);
                         });

}  // namespace
}  // namespace sluice::testing
