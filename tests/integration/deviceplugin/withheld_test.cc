// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// GPUs that are not offered, or no longer.
#include <gtest/gtest.h>

#include "tests/integration/deviceplugin/device_plugin_bed.h"

namespace sluice::testing {
namespace {

class WithheldGpus : public DevicePluginBed {};

TEST_F(WithheldGpus, AGpuOfAnotherPluginIsWithheldUntilThatOneIsGone) {
  Up(2, 64 * kMiB);
  FakeKubelet kubelet(kubelet_dir_);
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--pod-resources", kubelet.pod_resources()});
  const Devices all = Await(kubelet, AllHealthy);
  const auto given = kubelet.Allocate({{Ids(all).front()}, {Ids(all).back()}});
  ASSERT_TRUE(given.ok()) << given.status().message();
  const std::string uuid = given->front().environment.at("NVIDIA_VISIBLE_DEVICES");
  ASSERT_NE(uuid, given->back().environment.at("NVIDIA_VISIBLE_DEVICES"));

  kubelet.OfferOf("nvidia.com/gpu.shared", {uuid + "::0", uuid + "::1"});
  const Devices rest =
      Await(kubelet, [](const Devices& devices) { return Healthy(devices) == 12; });
  ASSERT_EQ(rest.healthy.size(), 24u) << "the capacity stays";
  EXPECT_FALSE(rest.healthy.at(Ids(all).front()));
  EXPECT_TRUE(rest.healthy.at(Ids(all).back()));
  // Kubelet may have chosen before it was told; the other GPU is as it was.
  const Status late = kubelet.Allocate({{Ids(all).front()}}).status();
  EXPECT_EQ(late.message(), uuid +
                                " is not offered: nvidia.com/gpu.shared offers it; allowed: a "
                                "GPU that nobody else manages (leave it out there or here, or "
                                "say --foreign-gpus share)");
  EXPECT_TRUE(kubelet.Allocate({{Ids(all).back()}}).ok());
  // Who has a grant there keeps it.
  EXPECT_EQ(RecordBeside(given->front()).gpu, uuid);

  kubelet.OfferOf("nvidia.com/gpu.shared", {});
  kubelet.OfferOf("example.com/nic", {"mlx5_0"});
  Await(kubelet, AllHealthy);
  EXPECT_TRUE(kubelet.Allocate({{Ids(all).front()}}).ok());
}

TEST_F(WithheldGpus, AGpuThatIsSomebodyElsesFromTheBeginningIsNeverOffered) {
  Up(1, 64 * kMiB);
  std::string uuid;
  {
    FakeKubelet kubelet(kubelet_dir_);
    Start({"--granule", "4MiB", "--reserve", "16MiB", "--foreign-gpus", "share"});
    const auto given = kubelet.Allocate({{Ids(Await(kubelet, AllHealthy)).front()}});
    ASSERT_TRUE(given.ok());
    uuid = given->front().environment.at("NVIDIA_VISIBLE_DEVICES");
    Stop(SIGTERM);
  }
  FakeKubelet kubelet(kubelet_dir_);
  kubelet.Own("nvidia.com/gpu", uuid, "main");
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--pod-resources", kubelet.pod_resources()});
  // The first list that kubelet sees.
  const Devices devices = Await(kubelet, [](const Devices&) { return true; });
  EXPECT_EQ(devices.healthy.size(), 12u);
  EXPECT_EQ(Healthy(devices), 0u);
  const Status refused = kubelet.Allocate({{Ids(devices).front()}}).status();
  EXPECT_NE(refused.message().find("nvidia.com/gpu gave it to default/pod/main"), std::string::npos)
      << refused.message();
  Stop(SIGTERM);
  // Who says so has both.
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--pod-resources", kubelet.pod_resources(),
         "--foreign-gpus", "share"});
  Await(kubelet, AllHealthy);
}

TEST_F(WithheldGpus, AGpuInMigModeIsNotOfferedAsIfItWereWhole) {
  Up(2, 64 * kMiB);
  Control(1, "mig", "on");
  FakeKubelet kubelet(kubelet_dir_);
  // Whoever shares GPUs with others cannot share this one either.
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--foreign-gpus", "share"});
  const Devices first = Await(kubelet, [](const Devices&) { return true; });
  ASSERT_EQ(first.healthy.size(), 24u);
  EXPECT_EQ(Healthy(first), 12u);
  size_t refused = 0;
  for (const auto& [id, healthy] : first.healthy) {
    const auto given = kubelet.Allocate({{id}});
    EXPECT_EQ(given.ok(), healthy) << id;
    if (given.ok()) continue;
    ++refused;
    EXPECT_NE(given.status().message().find(" is not offered: its MIG mode is on, "),
              std::string::npos)
        << given.status().message();
  }
  EXPECT_EQ(refused, 12u);
  Control(1, "mig", "off");
  Await(kubelet, AllHealthy);
}

TEST_F(WithheldGpus, AGpuThatDoesNotAnswerLeavesTheOthersOffered) {
  Up(3, 64 * kMiB);
  Control(1, "lose", "on");
  std::optional<FakeKubelet> kubelet(std::in_place, kubelet_dir_);
  Start({"--granule", "4MiB", "--reserve", "16MiB"});
  EXPECT_EQ(Await(*kubelet, AllHealthy).healthy.size(), 24u);
  Stop(SIGTERM);
  const std::string said = Describe(*plugin_);
  EXPECT_NE(said.find("GPU 1 is left out: NVML: device 1: error 15"), std::string::npos) << said;
  EXPECT_EQ(said.find("GPU 2 is left out"), std::string::npos) << said;
  // The one behind it still has its own number.
  kubelet.emplace(kubelet_dir_);
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--gpus", "1,2"});
  EXPECT_EQ(Await(*kubelet, AllHealthy).healthy.size(), 12u);
}

TEST_F(WithheldGpus, ANodeOfWhichNoGpuAnswersIsAnError) {
  Up(1, 64 * kMiB);
  Control(0, "lose", "on");
  Start();
  Finish(*plugin_, kPatienceMs);
  EXPECT_EQ(plugin_->status().Describe(), "exit code 1");
  EXPECT_NE(Describe(*plugin_).find("NVML: device 0: error 15"), std::string::npos)
      << Describe(*plugin_);
  plugin_.reset();
}

}  // namespace
}  // namespace sluice::testing
