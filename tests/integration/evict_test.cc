// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A job that leaves its claim beside one that does not: it goes to host memory and comes back, and
// each byte of both is what its program wrote.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;
using scheduler::JobId;
using scheduler::Record;

constexpr int kOutOfMemory = 4;  // exit codes of the workload
constexpr int kWrongBytes = 5;

/// The soak asks for 1,000.
size_t Wanted() {
  const char* text = ::getenv("SLUICE_EVICTIONS");
  return text == nullptr ? 50 : std::stoul(text);
}

/// Two jobs of 2.9 MiB each in a pool of 4 MiB. Each 40th iteration of the first wants another
/// 512 KiB at its peak, which its profile, found some 20 iterations after each such surprise, knows
/// nothing of. While it waits for that, another thread of it has the GPU read what it has.
class Pair {
 public:
  explicit Pair(std::vector<std::string> noded_flags, const std::string& noded = "",
                const std::string& machine = "", bool keeper = false)
      : Pair(Options(std::move(noded_flags), noded, machine, keeper),
             {"--blocks", "22", "--block-bytes", "128KiB", "--base-bytes", "128KiB"}) {}

  Pair(const BedOptions& options, const std::vector<std::string>& sizes) : bed(options) {
    for (const bool deviates : {true, false}) {
      JobSpec spec{
          .label = deviates ? "deviates" : "conforms",
          .command = {Program("WORKLOAD"), "--iterations", "60", "--until-eof", "--progress"},
          .run_flags = {"--limit", "3840KiB", "--request", "256KiB"},
          .input = input.read_end.get()};
      spec.command.insert(spec.command.end(), sizes.begin(), sizes.end());
      if (deviates) {
        for (const char* flag : {"--grow-at", "40:512KiB", "--grow-every", "40", "--read-beside"}) {
          spec.command.emplace_back(flag);
        }
      }
      jobs.Add(bed.Start(spec));
    }
  }

  /// Until `enough` holds for what is in the log, and then to the jobs' ends.
  void Run(const std::function<bool(Pair&)>& enough, int patience_ms = 300'000) {
    Finish(jobs, patience_ms, [&](cli::JobGroup&) {
      const std::vector<Record>& records = bed.logs().front()->Read();
      for (; seen_ < records.size(); ++seen_) {
        if (records[seen_].event == EventKind::kEvict) ++evicted;
        if (records[seen_].event == EventKind::kBringBack) ++back;
      }
      if (jobs.jobs().front().ended() || enough(*this)) input.write_end.reset();
    });
  }
  const cli::JobProcess& deviating() { return jobs.jobs()[0]; }
  const cli::JobProcess& conforming() { return jobs.jobs()[1]; }

  InputPipe input = MakeInputPipe();
  TestBed bed;
  cli::JobGroup jobs;
  size_t evicted = 0;
  size_t back = 0;

  static BedOptions Options(std::vector<std::string> flags, const std::string& noded = "",
                            const std::string& machine = "", bool keeper = false) {
    BedOptions options;
    options.pool = "4MiB";
    options.unit = "32KiB";
    options.noded_flags = std::move(flags);
    options.noded = noded;
    options.machine = machine;
    options.keeper = keeper;
    return options;
  }

 private:
  size_t seen_ = 0;
};

/// I5: a job inside its claim is not told out-of-memory because of another, and waits for the
/// deviator to go, never for it to come back.
void ExpectNeighbourUnharmed(const std::vector<Record>& records, JobId deviates, JobId conforms) {
  bool waits = false;  // past its gate
  bool away = false;
  for (const Record& record : records) {
    if (record.job == deviates) {
      if (record.event == EventKind::kEvict) away = true;
      if (record.event == EventKind::kBringBack) {
        EXPECT_FALSE(waits) << "job " << deviates << " comes back while its neighbour waits";
        away = false;
      }
    }
    if (record.job != conforms) continue;
    EXPECT_NE(record.event, EventKind::kDeny) << record.text;
    if (record.event == EventKind::kWait) waits = record.gate != 0;
    if (record.event == EventKind::kGrant) waits = false;
    if (record.event == EventKind::kTrough || record.event == EventKind::kMismatch) waits = false;
    if (away && record.event == EventKind::kWait && waits) {
      ADD_FAILURE() << "job " << conforms
                    << " waits although its neighbour is away: " << record.text;
    }
  }
}

TEST(Evict, BothJobsKeepEveryByte) {
  Pair pair({"--host-memory", "64MiB"});
  const int patience_ms = 300'000 + 1'200 * static_cast<int>(Wanted());
  pair.Run([](Pair& running) { return running.back >= Wanted(); }, patience_ms);
  for (const cli::JobProcess& job : pair.jobs.jobs()) {
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    EXPECT_EQ(Number(job.out(), "mismatches"), 0u);
  }
  std::printf("%zu evictions beside %llu iterations of the deviator, %llu of its neighbour\n",
              pair.back,
              static_cast<unsigned long long>(  // NOLINT: printf
                  Number(pair.deviating().out(), "iterations")),
              static_cast<unsigned long long>(  // NOLINT: printf
                  Number(pair.conforming().out(), "iterations")));
  EXPECT_GE(pair.back, Wanted());
  EXPECT_EQ(pair.back, pair.evicted);
  const nlohmann::json status = pair.bed.Status();
  EXPECT_EQ(status.at("host_tier").at("used_bytes"), 0);
  ExpectAllGivenBack(pair.bed);
  const std::vector<Record>& records = pair.bed.log().Read();
  ExpectNeighbourUnharmed(records, 1, 2);
}

/// A unit is a handle, as on a node by default, and its blocks are of one and a half: who needs a
/// run that is not there makes it of units that lie apart.
TEST(Evict, WhereAUnitIsAHandleBothJobsKeepEveryByte) {
  BedOptions options = Pair::Options({"--host-memory", "64MiB"}, "", "granularity = 65536\n");
  options.unit = options.handle = "64KiB";
  Pair pair(options, {"--blocks", "29", "--block-bytes", "96KiB", "--base-bytes", "128KiB"});
  constexpr size_t kWanted = 10;
  pair.Run([](Pair& running) { return running.back >= kWanted; });
  for (const cli::JobProcess& job : pair.jobs.jobs()) {
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    EXPECT_EQ(Number(job.out(), "mismatches"), 0u);
  }
  EXPECT_GE(pair.back, kWanted);
  EXPECT_EQ(pair.bed.GpuStats().oracle_violations, 0u);
  ExpectAllGivenBack(pair.bed);
  ExpectNeighbourUnharmed(pair.bed.log().Read(), 1, 2);
}

TEST(Evict, WithoutHostMemoryTheDeviatorIsTold) {
  Pair pair({"--host-memory", "0"});
  pair.Run([](Pair&) { return false; });
  EXPECT_EQ(pair.deviating().status().code, kOutOfMemory) << Describe(pair.deviating());
  EXPECT_TRUE(pair.conforming().status().ok()) << Describe(pair.conforming());
  EXPECT_EQ(pair.evicted, 0u);
  ExpectAllGivenBack(pair.bed);
}

TEST(Evict, WhoIsKilledMeanwhileLeavesNothingBehind) {
  Pair pair({"--host-memory", "64MiB"});
  pair.Run([](Pair& running) {
    if (running.evicted == 0) return false;
    running.deviating().Signal(SIGKILL);
    return true;
  });
  EXPECT_FALSE(pair.deviating().status().ok());
  EXPECT_TRUE(pair.conforming().status().ok()) << Describe(pair.conforming());
  EXPECT_EQ(pair.bed.Status().at("host_tier").at("used_bytes"), 0);
  ExpectAllGivenBack(pair.bed);
}

/// A daemon that dies takes with it what it had of the job: that one is told so and computes
/// nothing more, and nobody else notices.
TEST(Evict, WhatADaemonTakesWithItIsLostToOneJobOnly) {
  Pair pair({"--host-memory", "64MiB"}, "", "", true);
  bool killed = false;
  pair.Run([&](Pair& running) {
    if (!killed && running.evicted > running.back) {
      killed = true;
      running.bed.RestartDaemon();
    }
    // Its neighbour has gone on beside the next daemon.
    return killed && running.jobs.jobs()[1].out().size() > 100;
  });
  EXPECT_TRUE(killed);
  EXPECT_FALSE(pair.deviating().status().ok()) << Describe(pair.deviating());
  EXPECT_NE(pair.deviating().status().code, kWrongBytes) << Describe(pair.deviating());
  EXPECT_TRUE(pair.conforming().status().ok()) << Describe(pair.conforming());
  EXPECT_EQ(pair.bed.GpuStats().oracle_violations, 0u);
}

TEST(Evict, AnOrderlyEndBringsItBackFirst) {
  Pair pair({"--host-memory", "64MiB"}, "", "", true);
  bool stopped = false;
  pair.Run([&](Pair& running) {
    if (!stopped && running.evicted > running.back) {
      stopped = true;
      running.bed.StopDaemon();
      running.bed.StartDaemon();
    }
    return stopped && running.jobs.jobs()[1].out().size() > 100;
  });
  EXPECT_TRUE(stopped);
  for (const cli::JobProcess& job : pair.jobs.jobs()) {
    EXPECT_TRUE(job.status().ok()) << Describe(job);
  }
  EXPECT_EQ(pair.bed.GpuStats().oracle_violations, 0u);
}

struct Harm {
  uint64_t oracle_violations = 0;
  bool wrong_bytes = false;
};

/// With kernels so slow that there is always one under way.
Harm HarmOf(const std::string& fault) {
  std::vector<std::string> flags = {"--host-memory", "64MiB"};
  if (!fault.empty()) flags.insert(flags.end(), {"--fault", fault});
  Pair pair(flags, Program("NODED_WITH_FAULTS"), "cost.default = 100000\nlaunch_ns = 2000\n");
  pair.Run([](Pair& running) { return running.back >= 2; });
  EXPECT_GT(pair.evicted, 0u);
  Harm harm;
  harm.oracle_violations = pair.bed.GpuStats().oracle_violations;
  for (const cli::JobProcess& job : pair.jobs.jobs()) {
    harm.wrong_bytes = harm.wrong_bytes || job.status().code == kWrongBytes;
  }
  return harm;
}

TEST(Evict, ASeededBugShows) {
  EXPECT_GT(HarmOf("skip_quiet").oracle_violations, 0u);
  EXPECT_TRUE(HarmOf("skip_copy_back").wrong_bytes);
  const Harm none = HarmOf("");
  EXPECT_EQ(none.oracle_violations, 0u);
  EXPECT_FALSE(none.wrong_bytes);
}

}  // namespace
}  // namespace sluice::testing
