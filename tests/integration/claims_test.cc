// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Claims that fall on a job's way through its iteration: sluice-noded --claims.
#include <gtest/gtest.h>

#include "tests/support/test_bed.h"

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
Outcome Share(const std::string& claims, const std::string& host_memory) {
  BedOptions options;
  options.pool = "18MiB";
  options.unit = "256KiB";
  options.noded_flags = {"--claims", claims, "--host-memory", host_memory};
  options.machine = "cost.default = 200000\nlaunch_ns = 2000\n";
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs;
  for (const char* seed : {"1", "2"}) {
    jobs.Add(bed.Start({.label = seed,
                        .command = {Program("WORKLOAD"), "--blocks", "48", "--block-bytes",
                                    "256KiB", "--base-bytes", "1MiB", "--seed", seed,
                                    "--iterations", "60", "--until-eof", "--progress"},
                        .run_flags = {"--limit", "15MiB", "--request", "2MiB"},
                        .input = input.read_end.get()}));
  }
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
    if (outcome.iterations >= 100) input.write_end.reset();
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
  const Outcome contract = Share("contract", "64MiB");
  const Outcome steps = Share("steps", "64MiB");
  const Outcome curve = Share("curve", "64MiB");
  EXPECT_EQ(contract.waived, 0u);
  EXPECT_GT(steps.waived, 40u);
  EXPECT_GT(curve.waived, 40u);
  // By contract only what is not in the way of the peak.
  EXPECT_GT(steps.lent_bytes, contract.lent_bytes);
  EXPECT_GT(curve.lent_bytes, contract.lent_bytes);
}

TEST(Claims, WithoutHostMemoryItIsTheContract) {
  const Outcome outcome = Share("curve", "0");
  EXPECT_EQ(outcome.waived, 0u);
}

}  // namespace
}  // namespace sluice::testing
