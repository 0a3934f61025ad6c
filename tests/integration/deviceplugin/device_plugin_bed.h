// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/grant/record.h"
#include "noderuntime/cli/simulated_gpu.h"
#include "noderuntime/cli/work_dir.h"
#include "tests/support/fake_kubelet.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {

using Devices = FakeKubelet::Devices;

inline size_t Healthy(const Devices& devices) {
  return static_cast<size_t>(std::count_if(devices.healthy.begin(), devices.healthy.end(),
                                           [](const auto& d) { return d.second; }));
}
inline bool AllHealthy(const Devices& devices) {
  return Healthy(devices) == devices.healthy.size();
}
inline std::vector<std::string> Ids(const Devices& devices) {
  std::vector<std::string> ids;
  for (const auto& [id, healthy] : devices.healthy) ids.push_back(id);
  return ids;
}

/// Simulated GPUs, the plugin as a process of its own, and a kubelet that comes and goes.
class DevicePluginBed : public ::testing::Test {
 protected:
  static constexpr int kPatienceMs = 60'000;

  void Up(unsigned gpus, uint64_t memory, const std::string& machine = "") {
    auto work = cli::WorkDir::Create("");
    ASSERT_TRUE(work.ok());
    work_.emplace(std::move(*work));
    std::ofstream(work_->File("machine")) << machine;
    auto gpu =
        cli::SimulatedGpu::Up(layout_, work_->File("gpu"), memory, work_->File("machine"), gpus);
    ASSERT_TRUE(gpu.ok()) << gpu.status().message();
    gpu_.emplace(std::move(*gpu));
    kubelet_dir_ = work_->File("kubelet");
    std::filesystem::create_directories(kubelet_dir_);
    // On a node it is below /run, which is a tmpfs, too.
    memory_.emplace("/dev/shm");
    root_ = memory_->path();
  }
  void TearDown() override {
    if (!plugin_.has_value()) return;
    if (!plugin_->ended()) Stop(SIGTERM);
    EXPECT_EQ(plugin_->status().Describe(), "exit code 0") << Describe(*plugin_);
  }

  void Start(std::vector<std::string> flags = {}) {
    cli::SpawnOptions options;
    options.environment = gpu_->Select(cli::Environment::Current());
    options.argv = {layout_.Program("sluice-device-plugin"), "--kubelet-dir", kubelet_dir_,
                    "--root", root_};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    auto plugin = cli::JobProcess::Start("plugin", std::move(options));
    ASSERT_TRUE(plugin.ok()) << plugin.status().message();
    plugin_.emplace(std::move(*plugin));
  }
  void Stop(int signal) {
    plugin_->Signal(signal);
    Finish(*plugin_, kPatienceMs);
  }
  Devices Await(FakeKubelet& kubelet, const std::function<bool(const Devices&)>& good) {
    const auto devices = kubelet.AwaitDevices(good);
    EXPECT_TRUE(devices.has_value());
    return devices.value_or(Devices());
  }
  GrantRecord RecordBeside(const FakeKubelet::Container& container) {
    const std::string folder = container.mounts.at(0).first;
    std::ostringstream text;
    text
        << std::ifstream(root_ + "/g/" + std::filesystem::path(folder).filename().string()).rdbuf();
    const Result<GrantRecord> grant = ParseGrant(text.str());
    EXPECT_TRUE(grant.ok()) << grant.status().message();
    return grant.ok() ? *grant : GrantRecord();
  }
  /// What happens to a GPU.
  void Control(unsigned gpu, const std::string& what, const std::string& value) {
    cli::SpawnOptions options;
    options.argv = {layout_.Program("simgpu-ctl"),
                    what,
                    work_->File("gpu"),
                    value,
                    "--gpu",
                    std::to_string(gpu)};
    options.environment = cli::Environment::Current();
    const auto done = cli::RunCommand(std::move(options));
    ASSERT_TRUE(done.ok()) << done.status().message();
  }

  const cli::Layout layout_ = cli::Layout::At(Program("BIN"));
  std::optional<cli::WorkDir> work_;
  std::optional<cli::SimulatedGpu> gpu_;
  std::optional<cli::JobProcess> plugin_;
  std::string kubelet_dir_;
  std::optional<TempFolder> memory_;
  std::string root_;
};

}  // namespace sluice::testing
