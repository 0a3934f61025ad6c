// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Another policy on a running node: sluice policy.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/bytes.h"
#include "tests/support/restart_bed.h"
#include "tests/support/test_bed.h"
#include "tests/support/two_workloads.h"

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
  cli::JobGroup jobs =
      StartTwoWorkloads(bed, input, {"--limit", "18MiB", "--request", "1MiB"}, {"--blocks", "48"});
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
    if (since.size() == order.size()) {
      const cli::CommandOutput spatial = bed.Sluice({"policy", "spatial"});
      EXPECT_NE(spatial.status.code, 0);
      EXPECT_NE(spatial.err.find("limits"), std::string::npos) << spatial.err;
      return input.write_end.reset();
    }
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

/// `auto`: the model names some ways of sharing, the jobs are measured under each, and one stays.
TEST(Policy, AutoMeasuresTheJobsAndChooses) {
  BedOptions options;
  options.pool = "24MiB";
  options.noded_flags = {"--policy", "auto"};
  TestBed bed(options);
  EXPECT_EQ(bed.Status().at("auto").at("state"), "idle");
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs =
      StartTwoWorkloads(bed, input, {"--limit", "18MiB", "--request", "1MiB"}, {"--blocks", "48"});
  nlohmann::json chosen;
  Finish(jobs, 300'000, [&](cli::JobGroup&) {
    if (!input.write_end.valid()) return;
    const nlohmann::json status = bed.Status();
    if (status.at("auto").at("state") != "chosen") return;
    chosen = status;
    EXPECT_EQ(bed.Sluice({"policy", "temporal"}).status.code, 0);
    EXPECT_EQ(bed.Status().at("auto"), nullptr);
    EXPECT_EQ(bed.Status().at("policy"), "temporal");
    input.write_end.reset();
  });
  for (const cli::JobProcess& job : jobs.jobs()) EXPECT_TRUE(job.status().ok()) << Describe(job);
  ExpectAllGivenBack(bed);
  ASSERT_TRUE(chosen.is_object());
  const nlohmann::json& candidates = chosen.at("auto").at("candidates");
  ASSERT_GE(candidates.size(), 2u) << chosen.dump();
  bool temporal = false;
  bool in_force = false;
  double most = 0;
  double of_chosen = 0;
  for (const nlohmann::json& candidate : candidates) {
    const double measured = candidate.at("measured_gpu_share");
    EXPECT_GT(measured, 0) << candidate.dump();
    most = std::max(most, measured);
    temporal = temporal || candidate.at("policy") == "temporal";
    if (candidate.at("policy") == chosen.at("policy") &&
        candidate.at("lanes") == chosen.at("lanes") &&
        candidate.at("claims") == chosen.at("claims") &&
        candidate.at("soft_budget_bytes") == chosen.at("soft_budget_bytes") &&
        candidate.at("credit_parts") == chosen.at("credit_parts")) {
      in_force = true;
      of_chosen = measured;
    }
  }
  EXPECT_TRUE(temporal) << candidates.dump();
  EXPECT_TRUE(in_force) << chosen.dump();
  EXPECT_GE(of_chosen * 1.021, most) << candidates.dump();
  // Each soft budget was in force, below the pool; nothing of one is left.
  const std::vector<Record> records = bed.log().Read();
  for (const nlohmann::json& candidate : candidates) {
    const nlohmann::json& soft = candidate.at("soft_budget_bytes");
    if (soft.is_null()) continue;
    EXPECT_LT(soft, chosen.at("pool_bytes"));
    EXPECT_TRUE(std::any_of(records.begin(), records.end(), [&](const Record& record) {
      return record.event == EventKind::kPolicy &&
             record.limit * chosen.at("unit_bytes").get<uint64_t>() == soft;
    })) << candidate.dump();
  }
  EXPECT_EQ(bed.Status().at("soft_budget_bytes"), nullptr);
}

/// Limits that fit together are reserved, and nobody waits; those that do not are refused.
TEST(Policy, SpatialReservesLimits) {
  BedOptions options;
  options.pool = "20MiB";
  options.noded_flags = {"--policy", "spatial"};
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs =
      StartTwoWorkloads(bed, input, {"--limit", "10MiB", "--request", "1MiB"}, {"--blocks", "20"});
  AwaitStatus(bed, [](const nlohmann::json& status) {
    uint64_t reserved = 0;
    for (const auto& job : status.at("jobs")) reserved += job.at("request_bytes").get<uint64_t>();
    return reserved == 20 * kMiB;
  });
  const cli::CommandOutput third = bed.Sluice({"run", "--limit", "1MiB", "--", "true"});
  EXPECT_NE(third.status.code, 0);
  EXPECT_NE(third.err.find("10.0 MiB"), std::string::npos) << third.err;
  input.write_end.reset();
  Finish(jobs);
  for (const cli::JobProcess& ended : jobs.jobs()) EXPECT_TRUE(ended.status().ok());
  ExpectAllGivenBack(bed);
  for (const Record& record : bed.log().Read()) {
    EXPECT_NE(record.event, EventKind::kTrough) << "there are no gates";
  }
}

/// A daemon that follows one that was killed goes by what that one was told, not by its flags.
TEST(Policy, OutlivesTheDaemonThatWasToldIt) {
  BedOptions options = SmallBed();
  options.noded_flags = {"--policy", "nodegroup"};
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobProcess job = StartHolding(bed, input);
  EXPECT_EQ(bed.Status().at("policy"), "nodegroup");
  bed.RestartDaemon();
  AwaitStatus(bed, [](const nlohmann::json& status) { return status.at("jobs").size() == 1; });
  EXPECT_EQ(bed.Status().at("policy"), "nodegroup") << "nothing else was said";
  EXPECT_EQ(bed.Sluice({"policy", "timeshift", "--lanes", "3"}).status.code, 0);
  for (int i = 0; i < 2; ++i) {
    bed.RestartDaemon();
    const nlohmann::json status = AwaitStatus(
        bed, [](const nlohmann::json& answer) { return answer.at("jobs").size() == 1; });
    EXPECT_EQ(status.at("policy"), "timeshift");
    EXPECT_EQ(status.at("lanes"), 3);
  }
  EXPECT_EQ(bed.Sluice({"policy", "auto"}).status.code, 0);
  bed.RestartDaemon();
  EXPECT_TRUE(bed.Status().at("auto").is_object());
  input.write_end.reset();
  Finish(job, kRestartWaitMs);
  EXPECT_TRUE(job.status().ok()) << Describe(job);
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
