// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Another policy on a running node: sluice policy.
#include <gtest/gtest.h>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;
using scheduler::Record;

size_t Troughs(const std::vector<Record>& records, size_t from) {
  size_t troughs = 0;
  for (size_t i = from; i < records.size(); ++i) {
    if (records[i].event == EventKind::kTrough && records[i].drained) ++troughs;
  }
  return troughs;
}

/// Two jobs under `temporal`, which lends nothing within an iteration, then under `flow`, which
/// does, then under each of the others; they get on under each.
TEST(Policy, ChangesWhileJobsRun) {
  BedOptions options;
  options.pool = "20MiB";
  options.noded_flags = {"--policy", "temporal"};
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs;
  for (const char* seed : {"1", "2"}) {
    jobs.Add(bed.Start({.label = seed,
                        .command = {Program("WORKLOAD"), "--blocks", "48", "--seed", seed,
                                    "--iterations", "60", "--until-eof", "--progress"},
                        .run_flags = {"--limit", "18MiB", "--request", "1MiB"},
                        .input = input.read_end.get()}));
  }
  const std::vector<std::string> order = {"temporal", "flow", "nodegroup", "timeshift", "flow"};
  std::vector<size_t> since = {0};
  Finish(jobs, 300'000, [&](cli::JobGroup&) {
    const std::vector<Record>& records = bed.log().Read();
    // Long enough that both have a profile under the first, and go through some iterations each.
    const size_t wanted = since.size() == 1 ? 60 : 20;
    if (!input.write_end.valid() || Troughs(records, since.back()) < wanted) return;
    // How soon the two meet such that one lends to the other is the machine's affair.
    const bool lends = order[since.size() - 1] == "flow";
    if (lends && scheduler::Audit(records).lent_bytes_within_iterations == 0) return;
    if (since.size() == order.size()) return input.write_end.reset();
    const cli::CommandOutput said = bed.Sluice({"policy", order[since.size()], "--lanes", "2"});
    EXPECT_EQ(said.status.code, 0) << said.err;
    EXPECT_EQ(said.out, "policy " + order[since.size()] + ", 2 lanes\n");
    since.push_back(records.size());
  });
  for (const cli::JobProcess& job : jobs.jobs()) EXPECT_TRUE(job.status().ok()) << Describe(job);
  ASSERT_EQ(since.size(), order.size());
  ExpectAllGivenBack(bed);
  const std::vector<Record> records = bed.log().Read();
  const std::vector<Record> first(records.begin(),
                                  records.begin() + static_cast<std::ptrdiff_t>(since[1]));
  EXPECT_EQ(scheduler::Audit(first).lent_bytes_within_iterations, 0u);
  EXPECT_GT(scheduler::Audit(records).lent_bytes_within_iterations, 0u);
  size_t changes = 0;
  for (const Record& record : records) changes += record.event == EventKind::kPolicy ? 1u : 0u;
  EXPECT_EQ(changes, order.size() - 1);
  EXPECT_EQ(bed.Status().at("policy"), "flow");
}

TEST(Policy, AnUnknownOneChangesNothing) {
  const TestBed bed;
  const cli::CommandOutput said = bed.Sluice({"policy", "magic"});
  EXPECT_NE(said.status.code, 0);
  EXPECT_NE(said.err.find("flow, nodegroup, temporal, timeshift"), std::string::npos) << said.err;
  EXPECT_EQ(bed.Status().at("policy"), "flow");
}

}  // namespace
}  // namespace sluice::testing
