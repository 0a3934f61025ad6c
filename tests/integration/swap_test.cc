// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Jobs whose memory at the trough is in host memory by turns: each byte of all is what its program
// wrote, and the pool holds more than it could with all of them in it.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "scheduler/audit/audit.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;
using scheduler::JobId;
using scheduler::Record;

constexpr int kWrongBytes = 5;  // exit code of the workload

/// Three jobs of 1 MiB at their troughs and 640 KiB more at their peaks, in a pool of 4 MiB: one of
/// them at a time could be at its peak beside the others' bases, and two where one base is away.
class Three {
 public:
  explicit Three(const std::string& residents = "2", bool keeper = false,
                 const std::string& fault = "")
      : bed(Options(residents, keeper, fault)) {
    for (const char* label : {"a", "b", "c"}) {
      JobSpec spec{
          .label = label,
          .command = {Program("WORKLOAD"), "--iterations", "60", "--until-eof", "--progress",
                      "--blocks", "5", "--block-bytes", "128KiB", "--base-bytes", "1MiB"},
          .run_flags = {"--limit", "1792KiB", "--request", "1088KiB"},
          .input = input.read_end.get()};
      jobs.Add(bed.Start(spec));
    }
  }

  /// Until `enough` holds for what is in the log, and then to the jobs' ends.
  void Run(const std::function<bool(Three&)>& enough) {
    Finish(jobs, 300'000, [&](cli::JobGroup&) {
      const std::vector<Record>& records = bed.logs().front()->Read();
      for (; seen_ < records.size(); ++seen_) {
        const Record& record = records[seen_];
        if (record.event == EventKind::kEvict) away = record.job;
        if (record.event == EventKind::kBringBack) ++back[record.job];
      }
      const bool ended = std::any_of(jobs.jobs().begin(), jobs.jobs().end(),
                                     [](const cli::JobProcess& job) { return job.ended(); });
      if (ended || enough(*this)) input.write_end.reset();
    });
  }
  /// Of who was there least often.
  size_t Rounds() const {
    size_t rounds = back.size() < 3 ? 0 : ~size_t{0};
    for (const auto& [job, times] : back) rounds = std::min(rounds, times);
    return rounds;
  }
  void ExpectEveryByte() {
    for (const cli::JobProcess& job : jobs.jobs()) {
      EXPECT_TRUE(job.status().ok()) << Describe(job);
      EXPECT_EQ(Number(job.out(), "mismatches"), 0u);
    }
    EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);
  }

  InputPipe input = MakeInputPipe();
  TestBed bed;
  cli::JobGroup jobs;
  std::map<JobId, size_t> back;
  JobId away = 0;  // who went last

 private:
  static BedOptions Options(const std::string& residents, bool keeper, const std::string& fault) {
    BedOptions options;
    options.pool = "4MiB";
    options.unit = "32KiB";
    options.noded_flags = {"--host-memory", "64MiB", "--residents", residents, "--slice", "0.02"};
    options.keeper = keeper;
    if (!fault.empty()) {
      options.noded = Program("NODED_WITH_FAULTS");
      options.noded_flags.insert(options.noded_flags.end(), {"--fault", fault});
    }
    return options;
  }

  size_t seen_ = 0;
};

TEST(Swap, EveryJobIsAwayByTurnsAndKeepsEveryByte) {
  constexpr size_t kRounds = 10;
  Three three;
  three.Run([](Three& running) { return running.Rounds() >= kRounds; });
  three.ExpectEveryByte();
  EXPECT_GE(three.Rounds(), kRounds);
  const nlohmann::json status = three.bed.Status();
  EXPECT_EQ(status.at("host_tier").at("used_bytes"), 0);
  EXPECT_EQ(status.at("residents"), 2);
  ExpectAllGivenBack(three.bed);
  const std::vector<Record>& records = three.bed.log().Read();
  for (const Record& record : records) {
    EXPECT_NE(record.event, EventKind::kDeny) << record.text;
  }
  // What two have at once is more than the pool has beside the base of the third.
  constexpr scheduler::Units kBesideABase = 128 - 32;
  scheduler::Units most = 0;
  for (const scheduler::AuditSample& sample : scheduler::Audit(records, 100'000).series) {
    scheduler::Units held = 0;
    for (const auto& [job, units] : sample.held) held += units;
    most = std::max(most, held);
  }
  EXPECT_GT(most, kBesideABase);
}

TEST(Swap, WhereAllStayNobodyGoes) {
  Three three("all");
  three.Run([](Three&) { return true; });
  three.ExpectEveryByte();
  EXPECT_TRUE(three.back.empty());
  EXPECT_TRUE(three.bed.Status().at("residents").is_null());
}

TEST(Swap, WhoIsKilledWhileItIsAwayLeavesNothingBehind) {
  Three three;
  bool killed = false;
  three.Run([&](Three& running) {
    if (killed || running.Rounds() < 2) return killed;
    running.jobs.jobs()[running.away - 1].Signal(SIGKILL);
    killed = true;
    return true;
  });
  EXPECT_TRUE(killed);
  size_t ok = 0;
  for (const cli::JobProcess& job : three.jobs.jobs()) ok += job.status().ok() ? 1u : 0u;
  EXPECT_EQ(ok, 2u);
  EXPECT_EQ(three.bed.Status().at("host_tier").at("used_bytes"), 0);
  EXPECT_EQ(three.bed.GpuStats().oracle_violations, 0u);
  ExpectAllGivenBack(three.bed);
}

/// A daemon that dies takes with it what it had of a job: that one computes nothing more, and
/// nobody else notices.
TEST(Swap, WhatADaemonTakesWithItIsLostToWhoWasAway) {
  Three three("2", true);
  bool killed = false;
  three.Run([&](Three& running) {
    if (killed) return true;
    if (running.Rounds() < 2) return false;
    killed = true;
    running.bed.RestartDaemon();
    return true;
  });
  EXPECT_TRUE(killed);
  size_t ok = 0;
  for (const cli::JobProcess& job : three.jobs.jobs()) {
    ok += job.status().ok() ? 1u : 0u;
    EXPECT_NE(job.status().code, kWrongBytes) << Describe(job);
  }
  EXPECT_GE(ok, 2u) << "one at most is away at a time";
  EXPECT_EQ(three.bed.GpuStats().oracle_violations, 0u);
}

TEST(Swap, AnOrderlyEndBringsEverybodyBackFirst) {
  Three three("2", true);
  bool stopped = false;
  three.Run([&](Three& running) {
    if (stopped) return true;
    if (running.Rounds() < 2) return false;
    stopped = true;
    running.bed.StopDaemon();
    running.bed.StartDaemon();
    return true;
  });
  EXPECT_TRUE(stopped);
  three.ExpectEveryByte();
}

TEST(Swap, WhatIsNotCopiedBackShows) {
  Three three("2", false, "skip_copy_back");
  three.Run([](Three& running) { return running.Rounds() >= 2; });
  bool wrong_bytes = false;
  for (const cli::JobProcess& job : three.jobs.jobs()) {
    wrong_bytes = wrong_bytes || job.status().code == kWrongBytes;
  }
  EXPECT_TRUE(wrong_bytes);
}

}  // namespace
}  // namespace sluice::testing
