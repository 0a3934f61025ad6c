// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Programs with a rank on each of two GPUs, whose daemons know nothing of each other.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;
using scheduler::Record;

constexpr const char* kIterations = "60";

BedOptions Bed(const std::string& policy) {
  BedOptions options;
  options.pool = "20MiB";
  options.noded_flags = {"--policy", policy, "--lanes", "2"};
  return options;
}

class Collectives : public ::testing::Test {
 protected:
  /// Two ranks of one program, one on each GPU. Ends of itself.
  std::vector<JobSpec> Ranks(const std::string& name, const std::vector<std::string>& flags) {
    std::vector<std::string> pipes;
    for (const char* rank : {"0", "1"}) {
      pipes.push_back(first_.work().File(name + rank));
      EXPECT_EQ(::mkfifo(pipes.back().c_str(), 0600), 0) << pipes.back();
    }
    std::vector<JobSpec> ranks;
    for (size_t rank : {0u, 1u}) {
      ranks.push_back({.label = name + std::to_string(rank),
                       .command = {Program("WORKLOAD"), "--iterations", kIterations, "--blocks",
                                   "24", "--meet", pipes[rank] + ":" + pipes[1 - rank]},
                       .run_flags = flags});
    }
    return ranks;
  }
  /// Gates 0 that were opened for jobs with collective operations.
  static size_t Opened(TestBed& bed) {
    const std::vector<Record>& records = bed.log().Read();
    return static_cast<size_t>(
        std::count_if(records.begin(), records.end(), [&](const Record& record) {
          return record.event == EventKind::kGate && record.collective;
        }));
  }

  /// Those while another job was in its iteration.
  static size_t OpenedBesideOthers(TestBed& bed) {
    std::set<uint64_t> inside;
    size_t beside = 0;
    for (const Record& record : bed.log().Read()) {
      if (record.event == EventKind::kTrough || record.event == EventKind::kDeath ||
          record.event == EventKind::kLeave) {
        inside.erase(record.job);
      }
      if (record.event != EventKind::kGate) continue;
      if (record.collective && !inside.empty()) ++beside;
      inside.insert(record.job);
    }
    return beside;
  }

  TestBed first_{Bed("temporal")};
  TestBed second_{Bed("temporal")};
};

/// Beside a job of one GPU a rank waits at its trough, and nowhere else.
TEST_F(Collectives, ARankIsGatedAtItsTroughAlone) {
  // Where jobs take turns nobody stands at later gates.
  ASSERT_EQ(first_.Sluice({"policy", "flow"}).status.code, 0);
  const std::vector<JobSpec> ranks = Ranks("a", {"--limit", "12MiB", "--request", "1MiB"});
  cli::JobGroup jobs;
  jobs.Add(first_.Start(ranks[0]));
  jobs.Add(second_.Start(ranks[1]));
  jobs.Add(
      first_.Start({.label = "beside",
                    .command = {Program("WORKLOAD"), "--iterations", kIterations, "--blocks", "24"},
                    .run_flags = {"--limit", "12MiB", "--request", "1MiB"}}));
  Finish(jobs, 200'000);
  for (const cli::JobProcess& job : jobs.jobs()) EXPECT_TRUE(job.status().ok()) << Describe(job);
  // Every iteration but those in which it was measured.
  EXPECT_GT(Opened(first_), 30u);
  std::map<uint64_t, bool> takes_part;  // job: said so at its gate
  size_t inside = 0;
  for (const Record& record : first_.log().Read()) {
    if (record.event == EventKind::kGate) takes_part[record.job] = record.collective;
    if (record.event != EventKind::kGrant || record.gate == 0) continue;
    EXPECT_FALSE(takes_part[record.job]) << "gate " << record.gate;
    ++inside;
  }
  EXPECT_GT(inside, 0u) << "the job of one GPU has its other gates";
  ExpectAllGivenBack(first_);
  ExpectAllGivenBack(second_);
}

/// Whoever is in its iteration on the first GPU may be the one who waits on the second: taking
/// turns, the two programs would wait in a circle until their daemons give one of them up, after
/// two minutes.
TEST_F(Collectives, TwoProgramsWaitForNobodyWhereThereIsRoomForBoth) {
  cli::JobGroup jobs;
  const std::vector<JobSpec> a = Ranks("a", {"--limit", "9MiB", "--request", "1MiB"});
  const std::vector<JobSpec> b = Ranks("b", {"--limit", "9MiB", "--request", "1MiB"});
  jobs.Add(first_.Start(a[0]));
  jobs.Add(second_.Start(a[1]));
  jobs.Add(first_.Start(b[0]));
  jobs.Add(second_.Start(b[1]));
  Finish(jobs, 200'000);
  for (const cli::JobProcess& job : jobs.jobs()) EXPECT_TRUE(job.status().ok()) << Describe(job);
  for (TestBed* bed : {&first_, &second_}) {
    EXPECT_GT(Opened(*bed), 0u);
    EXPECT_GT(OpenedBesideOthers(*bed), 0u) << "under temporal";
    size_t standstills = 0;
    for (const Record& record : bed->log().Read()) {
      EXPECT_NE(record.event, EventKind::kSettle) << record.text;
      standstills += record.event == EventKind::kQuiet ? 1u : 0u;
    }
    EXPECT_LE(standstills, 2u) << "while both begin";
    ExpectAllGivenBack(*bed);
  }
}

}  // namespace
}  // namespace sluice::testing
