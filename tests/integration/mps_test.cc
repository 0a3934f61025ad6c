// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice-node --compute mps with real daemons on simulated GPUs and a stand-in for NVIDIA's control
// daemon.
#include "tests/integration/mps_fixture.h"

namespace sluice::testing {
namespace {

TEST_F(Mps, OneForEachGpuStartedAgainAndEndedWithTheNode) {
  ASSERT_NO_FATAL_FAILURE(Up(2));
  cli::JobProcess node = Start(stand_in_);
  ASSERT_TRUE(Await([&] { return AllServe(2); })) << Describe(node);
  const std::vector<std::string> gpus = Gpus();
  const pid_t killed = ControlOf(gpus[0]);
  const pid_t other = ControlOf(gpus[1]);

  ::kill(killed, SIGKILL);
  ASSERT_TRUE(Await([&] { return ControlOf(gpus[0]) != killed && ControlOf(gpus[0]) != 0; }))
      << Describe(node);
  EXPECT_EQ(ControlOf(gpus[1]), other);
  EXPECT_TRUE(Ready());

  const pid_t second = ControlOf(gpus[0]);
  node.Signal(SIGTERM);
  Finish(node, kPatienceMs);
  EXPECT_EQ(node.status().Describe(), "exit code 0") << Describe(node);
  EXPECT_NE(Describe(node).find(gpus[0] + ": its MPS control daemon ended, killed by signal 9"),
            std::string::npos);
  // They were asked, not killed: they have taken their files away.
  EXPECT_EQ(ControlOf(gpus[0]), 0);
  EXPECT_EQ(ControlOf(gpus[1]), 0);
  EXPECT_NE(::kill(second, 0), 0);
  EXPECT_NE(::kill(other, 0), 0);
}

TEST_F(Mps, OneThatDoesNotQuitIsEndedAllTheSame) {
  ASSERT_NO_FATAL_FAILURE(Up(1));
  cli::JobProcess node = Start(stand_in_, {{"MPS_STAND_IN_DEAF", "1"}});
  ASSERT_TRUE(Await([&] { return AllServe(1); })) << Describe(node);
  const pid_t control = ControlOf(Gpus()[0]);
  node.Signal(SIGTERM);
  Finish(node, kPatienceMs);
  EXPECT_EQ(node.status().Describe(), "exit code 0") << Describe(node);
  EXPECT_NE(Describe(node).find("does not quit"), std::string::npos) << Describe(node);
  EXPECT_NE(::kill(control, 0), 0);
}

TEST_F(Mps, AGpuOnWhichItCannotStartHasItsDaemonAndTheOthersHaveBoth) {
  ASSERT_NO_FATAL_FAILURE(Up(2));
  cli::JobProcess first = Start(stand_in_);
  ASSERT_TRUE(Await([&] { return AllServe(2); })) << Describe(first);
  const std::vector<std::string> gpus = Gpus();
  first.Signal(SIGTERM);
  Finish(first, kPatienceMs);

  cli::JobGroup group;
  group.Add(Start(stand_in_, {{"MPS_STAND_IN_REFUSES", gpus[0]}}));
  const auto said = [&group](const std::string& text) {
    return Describe(group.jobs().front()).find(text) != std::string::npos;
  };
  const std::string failed = gpus[0] + ": its MPS control daemon ended, exit code 1";
  bool served = false;
  Finish(group, kPatienceMs, [&](cli::JobGroup& nodes) {
    if (!said(failed) || !Ready() || ControlOf(gpus[1]) == 0) return;
    served = ControlOf(gpus[0]) == 0;
    nodes.jobs().front().Signal(SIGTERM);
  });
  EXPECT_TRUE(served) << Describe(group.jobs().front());
  EXPECT_FALSE(said(gpus[1] + ": its MPS control daemon ended"));
  EXPECT_EQ(group.jobs().front().status().Describe(), "exit code 0");
}

TEST_F(Mps, AProgramThatIsNotThereIsRefusedAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Up(1));
  cli::JobProcess node = Start(folder_ / "none");
  Finish(node, kPatienceMs);
  EXPECT_EQ(node.status().Describe(), "exit code 2");
  EXPECT_NE(Describe(node).find("--mps-control '" + (folder_ / "none") + "': allowed: "),
            std::string::npos)
      << Describe(node);
}

}  // namespace
}  // namespace sluice::testing
