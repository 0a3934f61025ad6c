// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The keeper is lost while the daemon gives it something or takes something back; then the daemon
// itself dies. Its successor finds everything with the second keeper.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/bytes.h"
#include "tests/support/restart_bed.h"
#include "tests/support/temp_folder.h"

namespace sluice::testing {
namespace {

constexpr unsigned kHandles = 8;
/// In the order in which the keeper is given them.
const std::vector<std::string> kMoments = {"state",       "listener",    "launcher", "mark page",
                                           "client page", "daemon page", "liveness", "pidfd"};

/// A bed whose first keeper dies as `order` says (tests/support/mortal_keeper.cc).
BedOptions MortalBed(const std::string& order) {
  BedOptions options = SmallBed();
  options.keeper_program = Program("MORTAL_KEEPER");
  options.keeper_dies = order;
  return options;
}

// The daemon hears of the loss when its loop comes to it, and goes on until another keeper is
// there. Both lost at once is another matter.
void AwaitNextKeeper(TestBed& bed) {
  AwaitStatus(bed, [](const nlohmann::json& status) {
    return status.at("keeper").at("losses") == 1 && KeeperIn(status) != 0;
  });
  struct stat info = {};
  EXPECT_NE(::stat((bed.runtime_dir() + "/keeper-dies").c_str(), &info), 0)
      << "the first keeper lives";
}

TEST(KeeperLoss, WhileASessionIsAccepted) {
  for (unsigned i = 0; i < kMoments.size(); ++i) {
    SCOPED_TRACE("lost behind: " + kMoments[i]);
    TestBed bed(MortalBed(std::to_string(kHandles + 1 + i)));
    InputPipe input = MakeInputPipe();
    cli::JobProcess job = StartHolding(bed, input);
    AwaitNextKeeper(bed);
    bed.RestartDaemon();
    const nlohmann::json status = bed.Status();
    ASSERT_EQ(status.at("jobs").size(), 1u) << status.dump(1);
    EXPECT_NE(status.at("jobs")[0].at("phase"), "dying") << status.dump(1);
    EXPECT_GE(status.at("jobs")[0].at("held_bytes").get<uint64_t>(), 6 * kMiB);
    input.write_end.reset();
    Finish(job);
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    const nlohmann::json last = AwaitStatus(bed, NoJobs);
    EXPECT_EQ(last.at("free_bytes"), last.at("pool_bytes"));
    bed.StopDaemon();
    EXPECT_TRUE(bed.log().Audit().ok()) << Violations(bed.log().Audit());
    if (::testing::Test::HasFailure()) break;
  }
}

// The session's pages are dropped when its process has died; a forked child still has its memory.
TEST(KeeperLoss, WhileADeadJobsPagesAreDropped) {
  TestBed bed(MortalBed("drop"));
  InputPipe input = MakeInputPipe();
  RunUntilHoldingAndKill(bed, input);
  AwaitStatus(bed, Quarantined);
  AwaitNextKeeper(bed);
  bed.RestartDaemon();
  // Longer than a daemon needs that takes what it does not have for a proof.
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Quarantined(bed.Status())) << bed.Status().dump(1);
  input.write_end.reset();
  const nlohmann::json last = AwaitStatus(bed, NoJobs);
  EXPECT_EQ(last.at("free_bytes"), last.at("pool_bytes"));
  bed.StopDaemon();
  EXPECT_TRUE(bed.log().Audit().ok()) << Violations(bed.log().Audit());
}

/// A job that holds memory lives on behind the end of the daemon, which has its keeper.
void ExpectTheJobOutlivesTheDaemon(TestBed& bed, cli::JobProcess& job, InputPipe& input) {
  bed.RestartDaemon();
  EXPECT_GE(bed.Status().at("jobs").at(0).at("held_bytes").get<uint64_t>(), 6 * kMiB);
  input.write_end.reset();
  Finish(job);
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  const nlohmann::json last = AwaitStatus(bed, NoJobs);
  EXPECT_EQ(last.at("free_bytes"), last.at("pool_bytes"));
  bed.StopDaemon();
  EXPECT_TRUE(bed.log().Audit().ok()) << Violations(bed.log().Audit());
}

TEST(KeeperLoss, AnotherOneComesEachTime) {
  TestBed bed(SmallBed());
  InputPipe input = MakeInputPipe();
  cli::JobProcess job = StartHolding(bed, input);
  pid_t keeper = AwaitKeeper(bed);
  for (unsigned losses = 1; losses <= 4; ++losses) {
    SCOPED_TRACE(losses);
    ASSERT_EQ(::kill(keeper, SIGKILL), 0);
    keeper = AwaitKeeper(bed, keeper);
    EXPECT_EQ(bed.Status().at("keeper").at("losses"), losses);
  }
  ExpectTheJobOutlivesTheDaemon(bed, job, input);
}

// Frozen, say: it answers nothing. What it has must not be needed, nor stay for ever.
TEST(KeeperLoss, OneThatDoesNotAnswerIsReplaced) {
  TestBed bed(SmallBed());
  InputPipe input = MakeInputPipe();
  const pid_t first = AwaitKeeper(bed);
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, first, 0)));
  ASSERT_TRUE(process.valid());
  ASSERT_EQ(::kill(first, SIGSTOP), 0);
  cli::JobProcess job = StartHolding(bed, input);  // which is to be kept
  AwaitKeeper(bed, first);
  ASSERT_EQ(::kill(first, SIGCONT), 0);
  pollfd end = {process.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, kRestartWaitMs), 1) << "it lives on with what it was given";
  ExpectTheJobOutlivesTheDaemon(bed, job, input);
}

// The program that it would be is not there. That is said for as long as it is so, everybody is
// served meanwhile, and it ends by itself.
TEST(KeeperLoss, WhileNoneCanBeHadTheDaemonServesAndSaysSo) {
  const TempFolder folder;
  const std::string program = folder.path() + "/keeper";
  const std::string away = folder.path() + "/away";
  std::filesystem::copy_file(Program("BIN") + "/sluice-keeper", program);
  BedOptions options = SmallBed();
  options.keeper_program = program;
  TestBed bed(options);
  const pid_t first = AwaitKeeper(bed);
  EXPECT_EQ(bed.Sluice({"status"}).out.find("keeper"), std::string::npos);
  std::filesystem::rename(program, away);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  AwaitStatus(bed, [](const nlohmann::json& status) {
    return status.at("keeper").at("missing_ms").get<uint64_t>() > 0;
  });
  InputPipe input = MakeInputPipe();
  cli::JobProcess job = StartHolding(bed, input);
  const std::string said = bed.Sluice({"status"}).out;
  EXPECT_NE(said.find("no keeper for "), std::string::npos) << said;
  const std::string advice = bed.Sluice({"doctor"}).out;
  EXPECT_NE(advice.find("the daemon has had no keeper for "), std::string::npos) << advice;
  EXPECT_EQ(KeeperIn(bed.Status()), 0);
  std::filesystem::rename(away, program);
  AwaitKeeper(bed);
  EXPECT_EQ(bed.Sluice({"status"}).out.find("keeper"), std::string::npos);
  ExpectTheJobOutlivesTheDaemon(bed, job, input);
}

// It hangs before it has said a word. When it goes on, another one is there.
TEST(KeeperLoss, OneThatNeverBeginsIsGivenUp) {
  const TempFolder folder;
  const std::string program = folder.path() + "/keeper";
  const std::string hangs = folder.path() + "/hangs";
  const std::string goes_on = folder.path() + "/goes-on";
  std::ofstream(program) << "#!/bin/sh\nif [ -e " << hangs << " ] && rm " << hangs
                         << "; then\n  echo $$ >" << folder.path() << "/new && mv " << folder.path()
                         << "/new " << folder.path() << "/pid\n  until [ -e " << goes_on
                         << " ]; do sleep 0.1; done\nfi\nexec " << Program("BIN")
                         << "/sluice-keeper \"$@\"\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  BedOptions options = SmallBed();
  options.keeper_program = program;
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobProcess job = StartHolding(bed, input);
  const pid_t first = AwaitKeeper(bed);
  std::ofstream(hangs) << "once";
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  AwaitKeeper(bed, first);  // the third one
  pid_t second = 0;
  std::ifstream(folder.path() + "/pid") >> second;
  ASSERT_GT(second, 0);
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, second, 0)));
  ASSERT_TRUE(process.valid());
  std::ofstream(goes_on) << "now";
  pollfd end = {process.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, kRestartWaitMs), 1) << "it lives on with nobody";
  ExpectTheJobOutlivesTheDaemon(bed, job, input);
}

// A daemon that is told to end leaves its jobs to the next one, also in the moment in which it has
// no keeper: it waits for one.
TEST(KeeperLoss, AnOrderlyStopWaitsForOne) {
  TestBed bed(SmallBed());
  InputPipe input = MakeInputPipe();
  cli::JobProcess job = StartHolding(bed, input);
  const pid_t keeper = AwaitKeeper(bed);
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, keeper, 0)));
  ASSERT_EQ(::kill(bed.daemon_pid(), SIGSTOP), 0);
  ASSERT_EQ(::kill(keeper, SIGKILL), 0);
  pollfd end = {process.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&end, 1, kRestartWaitMs), 1);
  // Both are there when it looks.
  ASSERT_EQ(::kill(bed.daemon_pid(), SIGTERM), 0);
  ASSERT_EQ(::kill(bed.daemon_pid(), SIGCONT), 0);
  bed.StopDaemon();
  bed.StartDaemon();
  ExpectTheJobOutlivesTheDaemon(bed, job, input);
}

}  // namespace
}  // namespace sluice::testing
