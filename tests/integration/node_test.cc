// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice-node with real daemons on simulated GPUs.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/bytes.h"
#include "noderuntime/cli/daemon_client.h"
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

class Node : public ::testing::Test {
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
  /// Whether NVML reaches this GPU no more.
  void Lose(unsigned gpu) {
    cli::SpawnOptions options;
    options.environment = cli::Environment::Current();
    options.argv = {layout_.Program("simgpu-ctl"),
                    "lose",
                    work_->File("gpu"),
                    "on",
                    "--gpu",
                    std::to_string(gpu)};
    const auto done = cli::RunCommand(std::move(options));
    ASSERT_TRUE(done.ok() && done->status.code == 0);
  }
  cli::JobProcess Start(std::vector<std::string> arguments) {
    cli::SpawnOptions options;
    options.environment = gpu_->Select(cli::Environment::Current());
    options.argv = {layout_.Program("sluice-node"), "--runtime-dir", folder_.path()};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    auto node = cli::JobProcess::Start("node", std::move(options));
    EXPECT_TRUE(node.ok()) << node.status().message();
    return std::move(*node);
  }
  bool Ready() { return supervisor::Signs::CheckReady(folder_.path()).ok(); }
  /// The daemon that answers for this GPU; 0: none.
  pid_t DaemonOf(unsigned gpu) {
    std::error_code none;
    const std::string own = folder_ / std::to_string(gpu);
    for (const auto& process : std::filesystem::directory_iterator("/proc", none)) {
      std::ifstream file(process.path() / "cmdline");
      // It may have ended since it was listed: then there is no line.
      std::string line;
      std::getline(file, line);
      if (line.find("sluice-noded") != std::string::npos &&
          line.find(own + std::string(1, '\0')) != std::string::npos) {
        return std::stoi(process.path().filename());
      }
    }
    return 0;
  }

  const cli::Layout layout_ = cli::Layout::At(Program("BIN"));
  std::optional<cli::WorkDir> work_;
  std::optional<cli::SimulatedGpu> gpu_;
  const TempFolder folder_{"/dev/shm"};
};

const std::vector<std::string> kSmallPool = {"--",   "--pool",       "16MiB", "--handle",
                                             "2MiB", "--lease-unit", "256KiB"};

TEST_F(Node, RunsADaemonForEachGpuAndStartsAgainWhatWasKilled) {
  ASSERT_NO_FATAL_FAILURE(Up(2));
  cli::JobProcess node = Start(kSmallPool);
  ASSERT_TRUE(Await([&] { return Ready(); })) << Describe(node);
  const pid_t first = DaemonOf(0);
  const pid_t second = DaemonOf(1);
  ASSERT_GT(first, 0);
  ASSERT_GT(second, 0);

  ::kill(first, SIGKILL);
  ASSERT_TRUE(Await([&] {
    const pid_t now = DaemonOf(0);
    return now != 0 && now != first && Ready();
  }));
  EXPECT_EQ(DaemonOf(1), second);

  node.Signal(SIGTERM);
  Finish(node, kPatienceMs);
  EXPECT_EQ(node.status().Describe(), "exit code 0") << Describe(node);
  EXPECT_FALSE(Ready());
  EXPECT_EQ(DaemonOf(0), 0);
  EXPECT_EQ(DaemonOf(1), 0);
}

TEST_F(Node, AGpuThatDoesNotAnswerGetsNoDaemonAndTheOthersDo) {
  ASSERT_NO_FATAL_FAILURE(Up(3));
  ASSERT_NO_FATAL_FAILURE(Lose(1));
  cli::JobProcess node = Start(kSmallPool);
  ASSERT_TRUE(Await([&] { return node.ended() || Ready(); }));
  EXPECT_GT(DaemonOf(0), 0);
  EXPECT_EQ(DaemonOf(1), 0);
  EXPECT_GT(DaemonOf(2), 0);
  node.Signal(SIGTERM);
  Finish(node, kPatienceMs);
  EXPECT_EQ(node.status().Describe(), "exit code 0");
  EXPECT_NE(Describe(node).find("GPU 1 is left out: NVML: device 1: error 15"), std::string::npos)
      << Describe(node);
}

TEST_F(Node, ANodeOfWhichNoGpuAnswersIsAnError) {
  ASSERT_NO_FATAL_FAILURE(Up(1));
  ASSERT_NO_FATAL_FAILURE(Lose(0));
  cli::JobProcess node = Start(kSmallPool);
  Finish(node, kPatienceMs);
  EXPECT_EQ(node.status().Describe(), "exit code 1");
  EXPECT_NE(Describe(node).find("NVML: device 0: error 15"), std::string::npos) << Describe(node);
}

TEST_F(Node, ItsFolderIsAllOfItsDaemonsToTheCommandLine) {
  ASSERT_NO_FATAL_FAILURE(Up(2));
  cli::JobProcess node = Start(kSmallPool);
  ASSERT_TRUE(Await([&] { return Ready(); })) << Describe(node);
  const auto sluice = [&](std::vector<std::string> arguments) {
    cli::SpawnOptions options;
    options.environment = cli::Environment::Current();
    options.environment.Set("SLUICE_RUNTIME_DIR", folder_.path());
    options.argv = {layout_.Program("sluice")};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    auto output = cli::RunCommand(std::move(options));
    EXPECT_TRUE(output.ok()) << output.status().message();
    return std::move(*output);
  };
  const auto status = [&] { return nlohmann::json::parse(sluice({"status", "--json"}).out); };
  ASSERT_EQ(status().size(), 2u);
  EXPECT_EQ(status().at(1).at("gpu"), 1);
  const cli::CommandOutput table = sluice({"status"});
  EXPECT_NE(table.out.find("GPU 0 "), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("\nGPU 1 "), std::string::npos) << table.out;
  const cli::CommandOutput drained = sluice({"drain", "on"});
  EXPECT_EQ(drained.out, (folder_ / "0") + ": drain on, 0 jobs are there\n" + (folder_ / "1") +
                             ": drain on, 0 jobs are there\n");
  for (const auto& gpu : status()) EXPECT_EQ(gpu.at("draining"), true);
  EXPECT_NE(sluice({"limit", "nobody", "8MiB"}).err.find("job 'nobody': there is none"),
            std::string::npos);

  // Of one that is down: a folder without a daemon.
  const std::string down = folder_ / "9";
  ASSERT_TRUE(std::filesystem::create_directory(down));
  const std::string silent = "sluice: " + down + ": no daemon runs in " + down;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"status"}, {"status", "--json"}, {"drain", "off"}}) {
    const cli::CommandOutput most = sluice(command);
    EXPECT_EQ(most.status.code, 1);
    EXPECT_EQ(most.err.find(silent), 0u) << most.err;
    EXPECT_FALSE(most.out.empty());
  }
  EXPECT_EQ(nlohmann::json::parse(sluice({"status", "--json"}).out).size(), 2u);
  auto client = cli::DaemonClient::Connect(folder_ / "0/noded.sock");
  ASSERT_TRUE(client.ok()) << client.status().message();
  const auto job = client->Register(
      {.limit_bytes = 8 * kMiB, .request_bytes = 4 * kMiB, .gpu = 0, .name = "trains"});
  ASSERT_TRUE(job.ok()) << job.status().message();
  const cli::CommandOutput changed = sluice({"limit", "trains", "12MiB"});
  EXPECT_EQ(changed.status.code, 0) << changed.err;
  EXPECT_NE(changed.out.find("limit 12.0 MiB"), std::string::npos) << changed.out;
  EXPECT_EQ(changed.err, silent +
                             "; 'sluice run' starts one, or name another folder with "
                             "--runtime-dir\n");
  // The silent one may have a job of this number.
  const cli::CommandOutput guess = sluice({"limit", std::to_string(job->job), "8MiB"});
  EXPECT_EQ(guess.status.code, 1);
  EXPECT_NE(guess.err.find("a GPU whose daemon does not answer"), std::string::npos) << guess.err;
  EXPECT_TRUE(std::filesystem::remove(down));

  // All are told, whatever one of them says.
  ASSERT_EQ(sluice({"budget", "8MiB", "--runtime-dir", folder_ / "0"}).status.code, 0);
  EXPECT_EQ(sluice({"budget", "all"}).status.code, 0);
  node.Signal(SIGTERM);
  Finish(node, kPatienceMs);
}

TEST_F(Node, OptionsThatNoDaemonAcceptsEndItWithTheirError) {
  ASSERT_NO_FATAL_FAILURE(Up(1));
  cli::JobProcess node = Start({"--", "--lanes", "many"});
  Finish(node, kPatienceMs);
  EXPECT_EQ(node.status().Describe(), "exit code 2");
  EXPECT_NE(Describe(node).find("--lanes 'many'"), std::string::npos) << Describe(node);
}

TEST_F(Node, ADaemonThatCannotRunIsTriedAgain) {
  ASSERT_NO_FATAL_FAILURE(Up(1));
  // There is only GPU 0.
  cli::JobGroup group;
  group.Add(Start({"--gpus", "0,1"}));
  const auto said = [&group](const std::string& text) {
    return Describe(group.jobs().front()).find(text) != std::string::npos;
  };
  Finish(group, kPatienceMs, [&](cli::JobGroup& nodes) {
    if (said("once more in 200 ms")) nodes.jobs().front().Signal(SIGTERM);
  });
  EXPECT_TRUE(said("GPU 1: its daemon ended, exit code 1; once more in 100 ms"));
  EXPECT_FALSE(said("GPU 0: its daemon ended"));
  EXPECT_EQ(group.jobs().front().status().Describe(), "exit code 0");
}

}  // namespace
}  // namespace sluice::testing
