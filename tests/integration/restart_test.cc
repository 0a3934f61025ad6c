// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <utility>

#include "common/bytes.h"
#include "noderuntime/cli/trainer_output.h"
#include "tests/support/restart_bed.h"
#include "tests/support/trainer.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;
using scheduler::Record;

constexpr uint64_t kContext = 4 * kMiB;  // of the simulated GPU's default machine
constexpr uint64_t kHandle = 2 * kMiB;
constexpr int kWaitMs = kRestartWaitMs;
constexpr uint64_t kSeed = 20261121;
/// Lines of the log: less than an iteration's while memory is lent, some iterations' while it is
/// not.
constexpr uint64_t kLines = 12;

/// How often the daemon is killed: 5 unless SLUICE_RESTARTS says otherwise (the soak asks for 50).
unsigned Restarts() {
  const char* text = ::getenv("SLUICE_RESTARTS");
  return text == nullptr ? 5 : static_cast<unsigned>(std::stoul(text));
}

/// Iterations of the faster trainer between two kills.
constexpr uint64_t kStride = 9;
constexpr uint64_t kSlack = kLines / 2;
/// Until both have a profile, mostly; nothing depends on it.
constexpr uint64_t kMeasured = 30;

/// Kills in one run of the trainers.
constexpr unsigned kKillsInARun = 10;

std::vector<TrainerRun> Runs(unsigned kills) {
  const uint64_t iterations = kMeasured + (kStride + kSlack) * (kills + 1);
  return {{"small-a", 1, iterations, {}}, {"small-b", 2, iterations, {}}};
}

/// Of the one that is ahead: both live until it ends.
size_t Losses(cli::JobGroup& group) {
  size_t most = 0;
  for (const cli::JobProcess& job : group.jobs()) {
    most = std::max(most, cli::CountLosses(job.out()));
  }
  return most;
}

/// What a daemon has in host memory goes with it (docs/operations/failures.md), and the job is told
/// so.
bool LostItsHostMemory(const cli::JobProcess& job) {
  return std::any_of(job.err().begin(), job.err().end(), [](const std::string& line) {
    return line.find("on its way to host memory: it is lost") != std::string::npos;
  });
}

/// Two trainers, and a daemon that is killed `kills` times while they compute and lend. False: one
/// of the kills met a job that was in host memory, and the run says nothing.
bool RunAndKill(const std::vector<TrainerRun>& runs, const std::vector<TrainerResult>& solo,
                unsigned kills, std::mt19937_64& random) {
  uint64_t sum = 0;
  for (const TrainerResult& result : solo) sum += result.peak_bytes;
  const uint64_t pool = sum * 645 / 1000 / kHandle * kHandle;
  BedOptions options = TrainerBed();
  options.keeper = true;
  options.pool = std::to_string(pool);
  options.gpu_memory = std::to_string(pool + (runs.size() + 2) * kContext);
  TestBed bed(options);
  cli::JobGroup group;
  for (const TrainerRun& run : runs) {
    group.Add(bed.Start({.label = run.Label(), .command = run.Command()}));
  }
  unsigned restarts = 0;
  Finish(group, 2 * kWaitMs, [&](cli::JobGroup& running) {
    if (restarts == kills || Losses(running) < kMeasured + restarts * (kStride + kSlack)) return;
    ++restarts;
    // Not where an iteration ends, but anywhere between two lines of the ledger.
    const size_t until = bed.log().Read().size() + random() % kLines;
    EXPECT_TRUE(bed.log().Await(
        [until](const std::vector<Record>& records) { return records.size() >= until; }, kWaitMs));
    bed.RestartDaemon();
  });
  if (std::any_of(group.jobs().begin(), group.jobs().end(), LostItsHostMemory)) return false;
  EXPECT_EQ(restarts, kills);
  for (size_t i = 0; i < runs.size(); ++i) ExpectSameLosses(solo[i], group.jobs()[i]);

  // Nothing is lost: after the last job's end the whole pool is free.
  const nlohmann::json status = AwaitStatus(bed, NoJobs);
  EXPECT_EQ(status.at("free_bytes"), status.at("pool_bytes")) << status.dump(1);
  bed.StopDaemon();
  // The keeper and the daemon's executor are on their way out.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kWaitMs);
  while (bed.GpuStats().memory_used > 0 && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_EQ(bed.GpuStats().memory_used, 0u);
  EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);

  uint64_t lent = 0;
  size_t gates = 0;
  for (const auto& log : bed.logs()) {
    const scheduler::AuditReport report = log->Audit();
    EXPECT_TRUE(report.ok()) << log->path() << "\n" << Violations(report);
    lent += report.lent_bytes_within_iterations;
    if (log == bed.logs().front()) continue;
    const std::vector<Record>& records = log->Read();
    const auto count = [&records](auto matches) {
      return static_cast<size_t>(std::count_if(records.begin(), records.end(), matches));
    };
    gates += count([](const Record& r) { return r.event == EventKind::kGate && r.profiled; });
    EXPECT_EQ(count([](const Record& r) { return r.event == EventKind::kRestore; }), 2u)
        << log->path();
  }
  EXPECT_GT(lent, 0u);
  EXPECT_GT(gates, kills) << "nobody went on behind gates after a restart";
  return true;
}

// The trainers' peaks do not fit together. Each daemon's log, which begins with what it took over,
// stands up to the audit by itself.
TEST(Restart, AKilledDaemonCostsNobodyAnything) {
  const std::vector<TrainerRun> runs = Runs(std::min(Restarts(), kKillsInARun));
  std::vector<TrainerResult> solo;
  for (const TrainerRun& run : runs) solo.push_back(RunAlone(run));
  std::mt19937_64 random(kSeed);
  unsigned left = Restarts();
  int again = 5;
  while (left > 0 && !::testing::Test::HasFailure()) {
    const unsigned kills = std::min(left, kKillsInARun);
    if (RunAndKill(runs, solo, kills, random)) {
      left -= kills;
    } else {
      ASSERT_GT(again--, 0) << "they are in host memory most of the time";
    }
  }
}

// The process died before its daemon did: the next one still waits for the child.
TEST(Restart, ADeadJobsMemoryStaysInQuarantineOverARestart) {
  TestBed bed(SmallBed());
  InputPipe input = MakeInputPipe();
  RunUntilHoldingAndKill(bed, input);
  AwaitStatus(bed, Quarantined);
  for (int i = 0; i < 2; ++i) {
    bed.RestartDaemon();
    EXPECT_TRUE(Quarantined(bed.Status())) << bed.Status().dump(1);
  }
  input.write_end.reset();
  AwaitStatus(bed, NoJobs);
  EXPECT_EQ(bed.Status().at("free_bytes"), bed.Status().at("pool_bytes"));
  bed.StopDaemon();
  for (const auto& log : bed.logs()) EXPECT_TRUE(log->Audit().ok()) << Violations(log->Audit());
}

// The job dies while there is no daemon: the next one finds that out, and has its memory back.
TEST(Restart, AJobThatEndsWithoutADaemonIsFoundOut) {
  TestBed bed(SmallBed());
  InputPipe input = MakeInputPipe();
  cli::JobProcess job = StartHolding(bed, input);
  bed.KillDaemon();
  job.Signal(SIGKILL);
  Finish(job);
  bed.StartDaemon();
  AwaitStatus(bed, NoJobs);
  EXPECT_EQ(bed.Status().at("free_bytes"), bed.Status().at("pool_bytes"));
  bed.StopDaemon();
  EXPECT_TRUE(bed.log().Audit().ok()) << Violations(bed.log().Audit());
}

// Its context ends while there is no daemon, and it begins anew in another one. What the first one
// held is free then, and the second life is served like any.
TEST(Restart, AContextMayEndWithoutADaemon) {
  TestBed bed(SmallBed());
  InputPipe input = MakeInputPipe();
  cli::JobGroup group;
  group.Add(StartHolding(bed, input, {"--lives", "2"}));
  bool killed = false;
  bool restarted = false;
  Finish(group, kWaitMs, [&](cli::JobGroup& running) {
    const auto& out = running.jobs().front().out();
    const auto said = [&out](const char* line) {
      return std::find(out.begin(), out.end(), line) != out.end();
    };
    if (said("holding") && !std::exchange(killed, true)) {
      bed.KillDaemon();
      input.write_end.reset();
    }
    if (said("lives=1") && !std::exchange(restarted, true)) bed.StartDaemon();
  });
  EXPECT_TRUE(restarted);
  const cli::JobProcess& job = group.jobs().front();
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  const nlohmann::json last = AwaitStatus(bed, NoJobs);
  EXPECT_EQ(last.at("free_bytes"), last.at("pool_bytes"));
  bed.StopDaemon();
  EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);
  for (const auto& log : bed.logs()) EXPECT_TRUE(log->Audit().ok()) << Violations(log->Audit());
}

// A daemon that is told to end while jobs live leaves them to the next one.
TEST(Restart, AnOrderlyStopIsNoEndForTheJobs) {
  TestBed bed(SmallBed());
  InputPipe input = MakeInputPipe();
  cli::JobProcess job = StartHolding(bed, input);
  bed.StopDaemon();
  bed.StartDaemon();
  EXPECT_EQ(bed.Status().at("jobs").size(), 1u);
  EXPECT_GE(bed.Status().at("jobs")[0].at("held_bytes").get<uint64_t>(), 6 * kMiB);
  input.write_end.reset();
  Finish(job);
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  AwaitStatus(bed, NoJobs);
  bed.StopDaemon();
}

// A daemon that cannot start (a full disk, a bad flag) is not the end of what another one can take
// over.
TEST(Restart, AStartThatFailsLeavesTheJobsToTheNextOne) {
  TestBed bed(SmallBed());
  InputPipe input = MakeInputPipe();
  cli::JobProcess job = StartHolding(bed, input);
  bed.KillDaemon();
  cli::SpawnOptions failing;
  failing.argv = {Program("BIN") + "/sluice-noded",
                  "--runtime-dir",
                  bed.runtime_dir(),
                  "--pool",
                  "16MiB",
                  "--lease-unit",
                  "256KiB",
                  "--handle",
                  "2MiB",
                  "--keeper",
                  Program("BIN") + "/sluice-keeper",
                  "--idle-exit",
                  "1",
                  "--event-log",
                  "/nonexistent/x"};
  failing.environment = bed.environment();
  for (const bool busy : {false, true}) {
    // A keeper that is somebody else's just now is no reason to begin anew, either.
    const UniqueFd daemon = busy ? ConnectToKeeper(bed) : UniqueFd();
    if (busy) failing.argv.resize(failing.argv.size() - 2);
    const Result<cli::CommandOutput> failed = cli::RunCommand(failing);
    ASSERT_TRUE(failed.ok());
    EXPECT_FALSE(failed->status.ok());
  }
  bed.StartDaemon();
  const nlohmann::json status = bed.Status();
  ASSERT_EQ(status.at("jobs").size(), 1u) << status.dump(1);
  EXPECT_GE(status.at("jobs")[0].at("held_bytes").get<uint64_t>(), 6 * kMiB);
  input.write_end.reset();
  Finish(job);
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  bed.StopDaemon();
}

// A program that still loads its data has no session yet, but its launcher was promised one.
TEST(Restart, AnOrderlyStopKeepsJobsThatHaveNotBegun) {
  TestBed bed(SmallBed());
  InputPipe input = MakeInputPipe();
  cli::JobProcess job =
      bed.Start({.label = "late",
                 .command = {Program("BASH"), "-c", "read -r go; exec \"$@\"", "bash",
                             Program("WORKLOAD"), "--one-shot", "--block-bytes", "1MiB"},
                 .run_flags = {"--limit", "8MiB"},
                 .input = input.read_end.get()});
  AwaitStatus(bed, [](const nlohmann::json& status) { return status.at("jobs").size() == 1; });
  bed.StopDaemon();
  bed.StartDaemon();
  ASSERT_EQ(::write(input.write_end.get(), "go\n", 3), 3);
  Finish(job);
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  bed.StopDaemon();
}

// On a workstation the next launcher brings the daemon back.
TEST(Restart, TheNextRunTakesOver) {
  BedOptions options = SmallBed();
  options.oracle = false;  // the daemon that it starts is not told to publish holders
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobProcess job = StartHolding(bed, input);
  bed.KillDaemon();
  // It needs no memory: nobody would wait less than two minutes for the measurement of the holder.
  const cli::JobProcess next = bed.Run({.label = "next", .command = {Program("BASH"), "-c", ":"}});
  EXPECT_TRUE(next.status().ok()) << Describe(next);
  const nlohmann::json status = bed.Status();
  EXPECT_EQ(status.at("pool_bytes"), 16 * kMiB) << "as the first daemon made it";
  EXPECT_GE(status.at("jobs")[0].at("held_bytes").get<uint64_t>(), 6 * kMiB);
  input.write_end.reset();
  Finish(job);
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  // That daemon ends by itself, and its keeper with it: its socket goes last.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kWaitMs);
  while (std::filesystem::exists(bed.runtime_dir() + "/keeper.sock")) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
}

}  // namespace
}  // namespace sluice::testing
