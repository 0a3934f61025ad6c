// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The keeper is lost while the daemon gives it something or takes something back; then the daemon
// itself dies. Its successor finds everything with the second keeper.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/bytes.h"
#include "noderuntime/cli/offline/files.h"
#include "tests/support/restart_bed.h"

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

// The daemon hears of the loss when its loop comes to it, and gives the next keeper everything in
// that same turn: whom it answers afterwards finds it done. Both lost at once is another matter.
void AwaitNextKeeper(TestBed& bed) {
  AwaitStatus(bed, [&](const nlohmann::json&) {
    const Result<std::string> log = cli::ReadWholeFile(bed.daemon_log());
    return log.ok() && log->find("the keeper: ") != std::string::npos;
  });
  static_cast<void>(bed.Status());
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

}  // namespace
}  // namespace sluice::testing
