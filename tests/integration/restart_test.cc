// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>

#include "common/bytes.h"
#include "noderuntime/cli/trainer_output.h"
#include "tests/support/trainer.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;
using scheduler::Record;

constexpr uint64_t kContext = 4 * kMiB;  // of the simulated GPU's default machine
constexpr uint64_t kHandle = 2 * kMiB;
constexpr int kWaitMs = 120'000;
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

/// Until `done` holds for the daemon's answer; the answers are round trips through its loop.
template <typename Done>
nlohmann::json AwaitStatus(TestBed& bed, Done done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kWaitMs);
  nlohmann::json status = bed.Status();
  while (!done(status) && std::chrono::steady_clock::now() < deadline) status = bed.Status();
  EXPECT_TRUE(done(status)) << status.dump(1);
  return status;
}

/// Two trainers, and a daemon that is killed `kills` times while they compute and lend.
void RunAndKill(const std::vector<TrainerRun>& runs, const std::vector<TrainerResult>& solo,
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
  EXPECT_EQ(restarts, kills);
  for (size_t i = 0; i < runs.size(); ++i) ExpectSameLosses(solo[i], group.jobs()[i]);

  // Nothing is lost: after the last job's end the whole pool is free.
  const nlohmann::json status =
      AwaitStatus(bed, [](const nlohmann::json& now) { return now.at("jobs").empty(); });
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
}

// The trainers' peaks do not fit together. Each daemon's log, which begins with what it took over,
// stands up to the audit by itself.
TEST(Restart, AKilledDaemonCostsNobodyAnything) {
  const std::vector<TrainerRun> runs = Runs(std::min(Restarts(), kKillsInARun));
  std::vector<TrainerResult> solo;
  for (const TrainerRun& run : runs) solo.push_back(RunAlone(run));
  std::mt19937_64 random(kSeed);
  unsigned left = Restarts();
  while (left > 0 && !::testing::Test::HasFailure()) {
    const unsigned kills = std::min(left, kKillsInARun);
    RunAndKill(runs, solo, kills, random);
    left -= kills;
  }
}

/// A job that holds `bytes` until its input ends, and has a forked child that lives until then.
cli::JobProcess StartHolding(TestBed& bed, InputPipe& input, std::vector<std::string> extra = {}) {
  std::vector<std::string> command = {Program("WORKLOAD"), "--one-shot", "--block-bytes", "6MiB",
                                      "--hold"};
  command.insert(command.end(), extra.begin(), extra.end());
  cli::JobProcess job = bed.Start({.label = "holder",
                                   .command = command,
                                   .run_flags = {"--limit", "8MiB", "--request", "2MiB"},
                                   .input = input.read_end.get()});
  input.read_end.reset();
  EXPECT_TRUE(bed.log().Await(
      [](const std::vector<Record>& records) {
        return std::any_of(records.begin(), records.end(), [](const Record& record) {
          return record.event == EventKind::kGrant || !record.extents.empty();
        });
      },
      kWaitMs));
  return job;
}

BedOptions SmallBed() {
  BedOptions options;
  options.gpu_memory = "64MiB";
  options.pool = "16MiB";
  options.keeper = true;
  return options;
}

// The process died before its daemon did: the next one still waits for the child.
TEST(Restart, ADeadJobsMemoryStaysInQuarantineOverARestart) {
  TestBed bed(SmallBed());
  InputPipe input = MakeInputPipe();
  cli::JobProcess job = StartHolding(bed, input, {"--fork-at-launch", "1"});
  cli::JobGroup group;
  group.Add(std::move(job));
  Finish(group, 60'000, [](cli::JobGroup& running) {
    const cli::JobProcess& victim = running.jobs().front();
    const auto& out = victim.out();
    if (std::find(out.begin(), out.end(), "holding") != out.end() && !victim.ended()) {
      victim.Signal(SIGKILL);
    }
  });
  const auto quarantined = [](const nlohmann::json& status) {
    const auto& jobs = status.at("jobs");
    return jobs.size() == 1 && jobs[0].at("phase") == "dying" &&
           jobs[0].at("held_bytes").get<uint64_t>() >= 6 * kMiB;
  };
  AwaitStatus(bed, quarantined);
  for (int i = 0; i < 2; ++i) {
    bed.RestartDaemon();
    EXPECT_TRUE(quarantined(bed.Status())) << bed.Status().dump(1);
  }
  input.write_end.reset();
  AwaitStatus(bed, [](const nlohmann::json& status) { return status.at("jobs").empty(); });
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
  AwaitStatus(bed, [](const nlohmann::json& status) { return status.at("jobs").empty(); });
  EXPECT_EQ(bed.Status().at("free_bytes"), bed.Status().at("pool_bytes"));
  bed.StopDaemon();
  EXPECT_TRUE(bed.log().Audit().ok()) << Violations(bed.log().Audit());
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
  AwaitStatus(bed, [](const nlohmann::json& status) { return status.at("jobs").empty(); });
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
                  "--event-log",
                  "/nonexistent/x"};
  failing.environment = bed.environment();
  const Result<cli::CommandOutput> failed = cli::RunCommand(std::move(failing));
  ASSERT_TRUE(failed.ok());
  EXPECT_FALSE(failed->status.ok());
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

/// The keeper of this folder; 0: none listens there.
pid_t KeeperOf(const TestBed& bed) {
  const std::string path = bed.runtime_dir() + "/keeper.sock";
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 0;
  ucred credentials = {};
  socklen_t length = sizeof credentials;
  EXPECT_EQ(::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length), 0);
  return credentials.pid;
}

// The daemon hands everything to another keeper; then it may die itself.
TEST(Restart, AKeeperThatDiesIsReplaced) {
  TestBed bed(SmallBed());
  InputPipe input = MakeInputPipe();
  cli::JobProcess job = StartHolding(bed, input);
  const pid_t first = KeeperOf(bed);
  ASSERT_GT(first, 0);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kWaitMs);
  for (pid_t now = 0; now == 0 || now == first; now = KeeperOf(bed)) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  bed.Status();  // it has done with the turn in which it handed everything over
  bed.RestartDaemon();
  EXPECT_GE(bed.Status().at("jobs").at(0).at("held_bytes").get<uint64_t>(), 6 * kMiB);
  input.write_end.reset();
  Finish(job);
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  AwaitStatus(bed, [](const nlohmann::json& status) { return status.at("jobs").empty(); });
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
  const cli::JobProcess next =
      bed.Run({.label = "next", .command = {Program("WORKLOAD"), "--one-shot"}});
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
