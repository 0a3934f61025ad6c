// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/bytes.h"
#include "common/mps_folder.h"
#include "noderuntime/cli/simulated_gpu.h"
#include "noderuntime/cli/work_dir.h"
#include "noderuntime/supervisor/signs.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {

inline constexpr int kPatienceMs = 60'000;  // only ends a test that fails

template <typename Done>
bool Await(Done done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!done() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return done();
}

/// sluice-node --compute mps with real daemons on simulated GPUs and a stand-in for NVIDIA's
/// control daemon.
class Mps : public ::testing::Test {
 protected:
  void Up(unsigned gpus, const std::string& machine = "") {
    auto work = cli::WorkDir::Create("");
    ASSERT_TRUE(work.ok());
    work_.emplace(std::move(*work));
    std::ofstream(work_->File("machine")) << machine;
    auto gpu =
        cli::SimulatedGpu::Up(layout_, work_->File("gpu"), 64 * kMiB, work_->File("machine"), gpus);
    ASSERT_TRUE(gpu.ok()) << gpu.status().message();
    gpu_.emplace(std::move(*gpu));
  }
  cli::JobProcess Start(const std::string& program,
                        std::vector<std::pair<std::string, std::string>> environment = {},
                        const std::vector<std::string>& flags = {}) {
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
                    Dir()};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    for (const char* argument :
         {"--", "--pool", "16MiB", "--handle", "2MiB", "--lease-unit", "256KiB"}) {
      options.argv.emplace_back(argument);
    }
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
      const std::string name = each.path().filename();
      if (name != "log" && name != "job") gpus.push_back(each.path().filename());
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

}  // namespace sluice::testing
