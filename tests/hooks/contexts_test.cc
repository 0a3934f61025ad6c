// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/hooks/hook_fixture.h"
#include "tests/support/test_bed.h"

// What the hooks ask for: no more of a current context than the driver does, and the driver here no
// more than its documentation says (intercept/hooks/contexts.def).

namespace sluice::testing {
namespace {

constexpr const char* kHooks[] = {
#define SLUICE_HOOK(symbol, what, params, names, policy) #symbol,
#include "intercept/hooks/hooks.def"
#undef SLUICE_HOOK
};

struct Row {
  std::string documented;
  std::string simulated;
};

std::map<std::string, Row> Table() {
  std::map<std::string, Row> table;
#define SLUICE_CONTEXT(symbol, section, documented, simulated) \
  table[#symbol] = {#documented, #simulated};
#include "intercept/hooks/contexts.def"
#undef SLUICE_CONTEXT
  return table;
}

/// The stream kind makes no difference: one row is for all.
std::string RowOf(const std::string& symbol) {
  for (const char* suffix : {"_ptds", "_ptsz"}) {
    if (symbol.ends_with(suffix)) return symbol.substr(0, symbol.size() - 5);
  }
  return symbol;
}

using Results = std::map<std::string, int>;

/// Each result by the call's name. What is said twice has to be the same twice.
Results ResultsOf(const cli::JobProcess& job) {
  Results results;
  for (const std::string& line : job.out()) {
    const size_t equals = line.rfind('=');
    if (!line.starts_with("cu") || equals == std::string::npos) continue;
    const std::string call = line.substr(0, equals);
    const int result = std::atoi(line.c_str() + equals + 1);
    const auto [known, added] = results.emplace(call, result);
    EXPECT_EQ(known->second, result) << call;
  }
  return results;
}

class Contexts : public ::testing::TestWithParam<bool> {
 protected:
  /// `leases`: units of the pool are handles, so that physical memory is lent.
  static BedOptions Options(bool leases) {
    BedOptions options;
    options.gpu_memory = "96MiB";
    options.pool = "48MiB";
    if (leases) options.unit = options.handle;
    options.noded_flags = {"--context", std::to_string(hooks::kContext)};
    return options;
  }
  static JobSpec Spec(const std::string& tests, bool under_sluice) {
    return {.label = tests,
            .command = {Program("HOOKS"), "--gtest_filter=" + tests},
            .run_flags = {"--limit", std::to_string(hooks::kLimit)},
            .under_sluice = under_sluice};
  }
};

/// What the driver says by itself, as a row of the table would have it.
std::string Observed(const Results& results, const std::string& symbol) {
  const auto refused = [&](const std::string& call) {
    const auto known = results.find(call);
    return known != results.end() && known->second == CUDA_ERROR_INVALID_CONTEXT;
  };
  const std::string on_stream = symbol + "+stream";
  if (results.count(on_stream) != 0 && !refused(on_stream))
    return refused(symbol) ? "default_stream" : "none";
  return refused(symbol) || refused(on_stream) ? "asks" : "none";
}

// A hook that is in no line of the program, or whose answer differs, is named.
TEST_P(Contexts, AreAskedForNoMoreThanTheDriverDoes) {
  for (const char* tests : {"WithoutContext.Bare", "WithoutContext.Prepared"}) {
    // A machine of its own for each: nothing of Sluice has the GPU's memory where it is not.
    BedOptions alone = Options(GetParam());
    alone.start_noded = false;
    TestBed machine(alone);
    const cli::JobProcess without = machine.Run(Spec(tests, false));
    ASSERT_TRUE(without.status().ok()) << Describe(without);
    TestBed bed(Options(GetParam()));
    const cli::JobProcess with = bed.Run(Spec(tests, true));
    ASSERT_TRUE(with.status().ok()) << Describe(with);
    const Results expected = ResultsOf(without);
    const Results found = ResultsOf(with);
    for (const auto& [call, result] : expected) {
      const auto known = found.find(call);
      ASSERT_NE(known, found.end()) << call;
      EXPECT_EQ(known->second, result) << tests << ": " << call;
    }
    EXPECT_EQ(found.size(), expected.size());
    for (const char* hook : kHooks) EXPECT_EQ(expected.count(hook), 1u) << hook;
    ExpectAllGivenBack(bed);
  }
}

// Small programs of one kind of memory each (driver_calls.cc).
TEST_P(Contexts, AndCallsForMemoryDoAsWithoutSluiceUpToTheLimit) {
  TestBed bed(Options(GetParam()));
  for (const char* test :
       {"DriverCalls.Alloc", "DriverCalls.AllocAndHold", "DriverCalls.AllocPitch",
        "DriverCalls.AllocManaged", "DriverCalls.Arrays", "DriverCalls.AllocHost",
        "DriverCalls.HostAlloc", "DriverCalls.MemCreateInThreads",
        "DriverCalls.AllocAsyncWithoutACurrentContext", "WithoutOne.MemCreate",
        "WithoutOne.MemCreateAndContextsAfterwards",
        "WithoutOne.MemCreateForItselfAndContextsAfterwards"}) {
    JobSpec spec = Spec(test, true);
    spec.environment = {{"SLUICE_TEST_LIMITED", "1"}};
    const cli::JobProcess with = bed.Run(spec);
    EXPECT_TRUE(with.status().ok()) << Describe(with);
    ExpectAllGivenBack(bed);
  }
  BedOptions alone = Options(GetParam());
  alone.start_noded = false;
  TestBed machine(alone);
  for (const char* tests : {"DriverCalls.*", "WithoutOne.*"}) {
    const cli::JobProcess without = machine.Run(Spec(tests, false));
    EXPECT_TRUE(without.status().ok()) << Describe(without);
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, Contexts, ::testing::Bool(),
                         [](const auto& leases) { return leases.param ? "Lent" : "Charged"; });

// The table says what the simulated driver does, and that asks for no more than the documentation.
TEST(ContextTable, IsWhatTheDriverDoes) {
  BedOptions options;
  options.gpu_memory = "96MiB";
  options.start_noded = false;
  TestBed bed(options);
  const cli::JobProcess job =
      bed.Run({.label = "table",
               .command = {Program("HOOKS"), "--gtest_filter=WithoutContext.Prepared"},
               .under_sluice = false});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  const Results results = ResultsOf(job);
  const std::map<std::string, Row> table = Table();
  std::map<std::string, bool> used;
  for (const char* hook : kHooks) {
    const auto row = table.find(RowOf(hook));
    ASSERT_NE(row, table.end()) << hook;
    used[row->first] = true;
    EXPECT_EQ(row->second.simulated, Observed(results, hook)) << hook;
    if (row->second.documented == "none") {
      EXPECT_NE(row->second.simulated, "asks") << hook;
    }
    if (row->second.documented == "default_stream") {
      EXPECT_EQ(row->second.simulated, "default_stream") << hook;
    }
  }
  for (const auto& [symbol, row] : table) EXPECT_TRUE(used[symbol]) << symbol << " is no hook";
}

}  // namespace
}  // namespace sluice::testing
