// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Claims that fall on a job's way through its iteration: sluice-noded --claims.
#include <gtest/gtest.h>

#include "tests/support/test_bed.h"
#include "tests/support/two_workloads.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;
using scheduler::Record;

struct Outcome {
  uint64_t lent_bytes = 0;
  size_t waived = 0;  // grants that say so
  size_t iterations = 0;
  size_t denied = 0;
  size_t evicted = 0;
};

/// Two triangles of 13 MiB each in a pool that has room for one of them, the base of the other, and
/// little more: by its peak nobody can begin beside another one.
/// Goes on until both have come far enough, and until so many grants say that something is waived.
Outcome Share(const std::string& claims, const std::string& host_memory, size_t waives) {
  BedOptions options;
  options.pool = "18MiB";
  options.unit = "256KiB";
  options.noded_flags = {"--claims", claims, "--host-memory", host_memory};
  options.machine = "cost.default = 200000\nlaunch_ns = 2000\n";
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs =
      StartTwoWorkloads(bed, input, {"--limit", "15MiB", "--request", "2MiB"},
                        {"--blocks", "48", "--block-bytes", "256KiB", "--base-bytes", "1MiB"});
  Outcome outcome;
  size_t seen = 0;
  Finish(jobs, 300'000, [&](cli::JobGroup&) {
    const std::vector<Record>& records = bed.log().Read();
    for (; seen < records.size(); ++seen) {
      const Record& record = records[seen];
      if (record.event == EventKind::kTrough && record.drained) ++outcome.iterations;
      if (record.waives > 0) ++outcome.waived;
      if (record.event == EventKind::kDeny) ++outcome.denied;
      if (record.event == EventKind::kEvict) ++outcome.evicted;
    }
    if (outcome.iterations >= 100 && outcome.waived >= waives) input.write_end.reset();
  });
  for (const cli::JobProcess& job : jobs.jobs()) {
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    EXPECT_EQ(Number(job.out(), "mismatches"), 0u);
  }
  ExpectAllGivenBack(bed);
  const scheduler::AuditReport report = bed.log().Audit();
  outcome.lent_bytes = report.lent_bytes_within_iterations;
  std::printf("%s: %zu iterations, lent %llu, waived %zu, denied %zu, evicted %zu\n",
              claims.c_str(), outcome.iterations,
              static_cast<unsigned long long>(outcome.lent_bytes),  // NOLINT: printf
              outcome.waived, outcome.denied, outcome.evicted);
  return outcome;
}

TEST(Claims, WhatIsBehindAJobIsLentWhereItIsInsured) {
  for (const char* claims : {"steps", "curve"}) {
    const Outcome outcome = Share(claims, "64MiB", 20);
    EXPECT_GE(outcome.waived, 20u);
    EXPECT_GT(outcome.lent_bytes, 0u);
    EXPECT_EQ(outcome.denied, 0u);
  }
}

TEST(Claims, AContractWaivesNothing) { EXPECT_EQ(Share("contract", "64MiB", 0).waived, 0u); }

TEST(Claims, WithoutHostMemoryItIsTheContract) { EXPECT_EQ(Share("curve", "0", 0).waived, 0u); }

}  // namespace
}  // namespace sluice::testing
