// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The driver's own limit of a container's memory.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "common/bytes.h"
#include "tests/integration/deviceplugin/device_plugin_bed.h"

namespace sluice::testing {
namespace {

class DriverLimit : public DevicePluginBed {
 protected:
  /// What a container gets that asks for one granule, with a driver of this version.
  std::map<std::string, std::string> EnvironmentWith(const std::string& driver,
                                                     std::vector<std::string> flags) {
    Up(1, 64 * kMiB, "driver = " + driver + "\n");
    std::filesystem::create_directories(work_->File("cgroup"));
    std::ofstream(work_->File("cgroup/cgroup.controllers")) << "cpu memory\n";
    FakeKubelet kubelet(kubelet_dir_);
    for (const char* flag : {"--granule", "4MiB", "--reserve", "16MiB", "--cgroups"}) {
      flags.emplace_back(flag);
    }
    flags.push_back(work_->File("cgroup"));
    Start(std::move(flags));
    const auto given = kubelet.Allocate({{Ids(Await(kubelet, AllHealthy)).front()}});
    EXPECT_TRUE(given.ok()) << given.status().message();
    Stop(SIGTERM);
    return given.ok() ? given->front().environment : std::map<std::string, std::string>();
  }
};

TEST_F(DriverLimit, ANewDriverIsToldOfALimit) {
  const auto environment = EnvironmentWith("615.21.04", {});
  EXPECT_EQ(environment.at("NVIDIA_GPU_MEMORY_LIMIT"), "64") << "the pool and the reserve";
  EXPECT_EQ(environment.at("NVIDIA_GPU_MEMORY_REQUEST"), "0");
}

TEST_F(DriverLimit, ADriverThatChargesWhatIsMadeIsToldOfTheReserve) {
  const auto environment = EnvironmentWith("615.21.04", {"--driver-charges", "made"});
  EXPECT_EQ(environment.at("NVIDIA_GPU_MEMORY_LIMIT"), "16");
}

TEST_F(DriverLimit, AnOldDriverIsToldOfNone) {
  const auto environment = EnvironmentWith("580.65.06", {});
  EXPECT_FALSE(environment.contains("NVIDIA_GPU_MEMORY_LIMIT"));
  EXPECT_FALSE(environment.contains("NVIDIA_GPU_MEMORY_REQUEST"));
}

TEST_F(DriverLimit, NoDriverIsToldWhereItIsOff) {
  const auto environment = EnvironmentWith("615.21.04", {"--driver-limit", "off"});
  EXPECT_FALSE(environment.contains("NVIDIA_GPU_MEMORY_LIMIT"));
}

TEST_F(DriverLimit, ALimitThatMustBeAndCannotKeepsItFromStarting) {
  Up(1, 64 * kMiB, "driver = 580.65.06\n");
  Start({"--driver-limit", "on"});
  Finish(*plugin_, kPatienceMs);
  EXPECT_NE(Describe(*plugin_).find("--driver-limit on: the driver is 580.65.06; allowed: on with "
                                    "a driver from 615"),
            std::string::npos)
      << Describe(*plugin_);
  EXPECT_EQ(plugin_->status().Describe(), "exit code 1");
  plugin_.reset();
}

}  // namespace
}  // namespace sluice::testing
