// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice-node --compute mps with real daemons on simulated GPUs and a stand-in for NVIDIA's control
// daemon.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "common/bytes.h"
#include "common/mps_folder.h"
#include "noderuntime/cli/simulated_gpu.h"
#include "noderuntime/cli/work_dir.h"
#include "noderuntime/supervisor/signs.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

constexpr int kPatienceMs = 60'000;  // only ends a test that fails

template <typename Done>
bool Await(Done done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!done() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return done();
}

class Mps : public ::testing::Test {
 protected:
  void Up(unsigned gpus) {
    auto work = cli::WorkDir::Create("");
    ASSERT_TRUE(work.ok());
    work_.emplace(std::move(*work));
    std::ofstream(work_->File("machine")) << "";
    auto gpu =
        cli::SimulatedGpu::Up(layout_, work_->File("gpu"), 64 * kMiB, work_->File("machine"), gpus);
    ASSERT_TRUE(gpu.ok()) << gpu.status().message();
    gpu_.emplace(std::move(*gpu));
  }
  cli::JobProcess Start(const std::string& program,
                        std::vector<std::pair<std::string, std::string>> environment = {}) {
    cli::SpawnOptions options;
    options.environment = gpu_->Select(cli::Environment::Current());
    for (auto& [name, value] : environment) options.environment.Set(name, std::move(value));
    options.argv = {layout_.Program("sluice-node"),
                    "--runtime-dir",
                    folder_ / "n",
                    "--compute",
                    "mps",
                    "--mps-control",
                    program,
                    "--mps-dir",
                    Dir(),
                    "--",
                    "--pool",
                    "16MiB",
                    "--handle",
                    "2MiB",
                    "--lease-unit",
                    "256KiB"};
    auto node = cli::JobProcess::Start("node", std::move(options));
    EXPECT_TRUE(node.ok()) << node.status().message();
    return std::move(*node);
  }
  std::string Dir() const { return folder_ / "m"; }
  bool Ready() const { return supervisor::Signs::CheckReady(folder_ / "n").ok(); }
  /// The GPUs that have a pipe folder, in any order.
  std::vector<std::string> Gpus() const {
    std::vector<std::string> gpus;
    std::error_code none;
    for (const auto& each : std::filesystem::directory_iterator(Dir(), none)) {
      if (each.path().filename() != "log") gpus.push_back(each.path().filename());
    }
    return gpus;
  }
  /// The control daemon that serves this GPU; 0: none.
  pid_t ControlOf(const std::string& gpu) const {
    pid_t pid = 0;
    std::ifstream(MpsPipeFolder(Dir(), gpu) + "/nvidia-cuda-mps-control.pid") >> pid;
    return pid;
  }
  bool AllServe(size_t gpus) const {
    if (!Ready() || Gpus().size() != gpus) return false;
    for (const std::string& gpu : Gpus()) {
      if (ControlOf(gpu) == 0) return false;
    }
    return true;
  }

  const cli::Layout layout_ = cli::Layout::At(Program("BIN"));
  const std::string stand_in_ = Program("MPS_CONTROL");
  std::optional<cli::WorkDir> work_;
  std::optional<cli::SimulatedGpu> gpu_;
  const TempFolder folder_{"/dev/shm"};
};

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
