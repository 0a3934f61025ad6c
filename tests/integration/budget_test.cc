// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Less of the pool, and all of it again, on a running node: sluice budget.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/bytes.h"
#include "tests/support/test_bed.h"
#include "tests/support/two_workloads.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;
using scheduler::kBeyondBudget;
using scheduler::Record;

constexpr uint64_t kMib = 1 << 20;

bool BothHaveProfiles(const nlohmann::json& status) {
  const nlohmann::json& jobs = status.at("jobs");
  return jobs.size() == 2 && std::all_of(jobs.begin(), jobs.end(), [](const nlohmann::json& job) {
           return job.at("profile").is_object();
         });
}

size_t DrainedTroughs(const std::vector<Record>& records) {
  return static_cast<size_t>(std::count_if(records.begin(), records.end(), [](const Record& r) {
    return r.event == EventKind::kTrough && r.drained;
  }));
}

/// Two jobs which together hold more than the smaller budget: it comes into force, they go on in
/// it, and in all of the pool again. (Zico, figure 10.)
TEST(Budget, FallsAndRisesWhileJobsRun) {
  BedOptions options;
  options.pool = "30MiB";
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs = StartTwoWorkloads(bed, input, {"--request", "1MiB"}, {"--blocks", "48"});
  enum class At : uint8_t { kBeginning, kFalling, kLess, kAll, kEnd } at = At::kBeginning;
  size_t since = 0;
  uint64_t most_held = 0;  // in the smaller one
  Finish(jobs, 300'000, [&](cli::JobGroup&) {
    if (at == At::kEnd) return;
    const nlohmann::json status = bed.Status();
    const size_t troughs = DrainedTroughs(bed.log().Read());
    if (at == At::kBeginning && BothHaveProfiles(status) && troughs > 40) {
      const cli::CommandOutput small = bed.Sluice({"budget", "2MiB"});
      EXPECT_NE(small.status.code, 0);
      EXPECT_NE(small.err.find("; allowed: from "), std::string::npos) << small.err;
      const cli::CommandOutput said = bed.Sluice({"budget", "20MiB"});
      EXPECT_EQ(said.status.code, 0) << said.err;
      EXPECT_EQ(said.out.find("budget 20.0 MiB"), 0u) << said.out;
      at = At::kFalling;
    } else if (at == At::kFalling && status.at("budget_bytes") == 20 * kMib) {
      EXPECT_EQ(status.at("wanted_budget_bytes"), 20 * kMib);
      since = troughs;
      at = At::kLess;
    } else if (at == At::kLess) {
      uint64_t held = 0;
      for (const nlohmann::json& job : status.at("jobs")) {
        held += job.at("held_bytes").get<uint64_t>();
      }
      most_held = std::max(most_held, held);
      if (troughs < since + 40) return;
      EXPECT_EQ(bed.Sluice({"budget", "all"}).out, "budget 30.0 MiB\n");
      since = troughs;
      at = At::kAll;
    } else if (at == At::kAll && troughs >= since + 40) {
      at = At::kEnd;
      input.write_end.reset();
    }
  });
  for (const cli::JobProcess& job : jobs.jobs()) EXPECT_TRUE(job.status().ok()) << Describe(job);
  ASSERT_EQ(at, At::kEnd);
  EXPECT_GT(most_held, 0u);
  EXPECT_LE(most_held, 20 * kMib);
  ExpectAllGivenBack(bed);  // and the audit of the log
  const std::vector<Record> records = bed.log().Read();
  EXPECT_TRUE(std::any_of(records.begin(), records.end(), [](const Record& record) {
    return record.event == EventKind::kSettle && record.job == kBeyondBudget;
  }));
}

TEST(Budget, OfAnIdleNode) {
  BedOptions options;
  options.pool = "16MiB";
  const TestBed bed(options);
  EXPECT_EQ(bed.Sluice({"budget", "4MiB"}).out, "budget 4.0 MiB\n");
  const cli::CommandOutput status = bed.Sluice({"status"});
  EXPECT_NE(status.out.find("pool 16.0 MiB (4.0 MiB of it lent), free 4.0 MiB"), std::string::npos)
      << status.out;
  for (const char* wrong : {"17MiB", "1B"}) {
    const cli::CommandOutput said = bed.Sluice({"budget", wrong});
    EXPECT_NE(said.status.code, 0) << wrong;
    EXPECT_NE(said.err.find("to 16.0 MiB (the pool)"), std::string::npos) << said.err;
  }
  EXPECT_NE(bed.Sluice({"budget", "much"}).err.find("allowed: "), std::string::npos);
  EXPECT_EQ(bed.Status().at("budget_bytes"), 4 * kMib);
}

}  // namespace
}  // namespace sluice::testing
