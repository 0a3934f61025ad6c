// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "common/bytes.h"
#include "noderuntime/cli/simulated_gpu.h"
#include "noderuntime/cli/work_dir.h"
#include "tests/support/fake_kubelet.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// What a liveness probe of the device plugin's pod asks.
TEST(DevicePluginCheck, FailsWhileThePluginDoesNotAnswer) {
  const cli::Layout layout = cli::Layout::At(Program("BIN"));
  auto work = cli::WorkDir::Create("");
  ASSERT_TRUE(work.ok());
  std::ofstream(work->File("machine")) << "";
  auto gpu = cli::SimulatedGpu::Up(layout, work->File("gpu"), 64 * kMiB, work->File("machine"));
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  std::filesystem::create_directories(work->File("kubelet"));
  const auto options = [&](const char* flag, const std::string& value) {
    cli::SpawnOptions spawn;
    spawn.environment = gpu->Select(cli::Environment::Current());
    spawn.argv = {layout.Program("sluice-device-plugin"), "--kubelet-dir", work->File("kubelet"),
                  flag};
    if (!value.empty()) spawn.argv.push_back(value);
    return spawn;
  };
  const auto check = [&] {
    const Result<cli::CommandOutput> done = cli::RunCommand(options("--check", ""));
    EXPECT_TRUE(done.ok()) << done.status().message();
    return done.ok() ? done->status.Describe() + done->err : "";
  };
  const std::string socket = work->File("kubelet") + "/sluice.sock";

  const std::string before = check();
  EXPECT_TRUE(before.starts_with("exit code 1")) << before;
  EXPECT_NE(before.find(socket), std::string::npos) << before;

  FakeKubelet kubelet(work->File("kubelet"));
  auto plugin = cli::JobProcess::Start("plugin", options("--root", work->File("grants")));
  ASSERT_TRUE(plugin.ok()) << plugin.status().message();
  ASSERT_TRUE(kubelet.AwaitDevices([](const auto& devices) { return !devices.healthy.empty(); }));
  EXPECT_EQ(check(), "exit code 0");

  plugin->Signal(SIGSTOP);
  const std::string stopped = check();
  EXPECT_TRUE(stopped.starts_with("exit code 1")) << stopped;
  plugin->Signal(SIGCONT);
  EXPECT_EQ(check(), "exit code 0");
  plugin->Signal(SIGTERM);
  Finish(*plugin, 60'000);
  EXPECT_EQ(plugin->status().Describe(), "exit code 0");
}

}  // namespace
}  // namespace sluice::testing
