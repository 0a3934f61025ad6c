// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/inventory/foreign.h"

#include <gtest/gtest.h>

namespace sluice::deviceplugin {
namespace {

constexpr char kUuid[] = "GPU-8f2c9f0e-5a01-4a6c-9d1e-0123456789ab";
constexpr char kOther[] = "GPU-8f2c9f0e-5a01-4a6c-9d1e-0123456789ac";

TEST(Foreign, AnIdIsOfAGpuWhoseNameIsWholeInIt) {
  const std::string uuid = kUuid;
  for (const std::string& id : {uuid, uuid + "::0", uuid + "::12", uuid + "-3", uuid + "-_-7",
                                "MIG-" + uuid + "/1/0", "nvidia.com/gpu=" + uuid}) {
    EXPECT_TRUE(IsOfGpu(id, uuid)) << id;
    EXPECT_FALSE(IsOfGpu(id, kOther)) << id;
  }
  for (const std::string& id :
       {uuid + "0", "x" + uuid, uuid.substr(0, uuid.size() - 1), std::string("0"), std::string(),
        std::string("5f3a0c1e-2s"), std::string("MIG-8f2c9f0e-5a01-4a6c-9d1e-0123456789ab")}) {
    EXPECT_FALSE(IsOfGpu(id, uuid)) << id;
  }
  EXPECT_FALSE(IsOfGpu("anything", ""));
  EXPECT_TRUE(IsOfGpu("GPU-ab/GPU-a", "GPU-a")) << "the first look-alike is not the last word";
}

TEST(Foreign, NobodyElseIsTheRule) {
  const std::vector<std::string> nobody = {"", ""};
  EXPECT_EQ(ForeignManagers({kUuid, kOther}, {}), nobody);
  ForeignView view;
  view.devices = {{"example.com/nic", "mlx5_0", ""}, {"example.com/nic", "mlx5_1", "a/b/c"}};
  pods::Pod pod;
  pod.name = "train";
  view.pods = {pod};
  EXPECT_EQ(ForeignManagers({kUuid, kOther}, view), nobody);
}

TEST(Foreign, WhatAnotherPluginOffersOrGaveIsItsOwn) {
  ForeignView view;
  view.devices = {{"nvidia.com/gpu.shared", std::string(kUuid) + "::3", ""}};
  EXPECT_EQ(ForeignManagers({kUuid, kOther}, view),
            (std::vector<std::string>{"nvidia.com/gpu.shared offers it", ""}));
  // Who has it says more than who offers it, in whatever order they come.
  view.devices.push_back({"nvidia.com/gpu", kUuid, "team/train/main"});
  view.devices.push_back({"nvidia.com/gpu", kOther, ""});
  EXPECT_EQ(ForeignManagers({kUuid, kOther}, view),
            (std::vector<std::string>{"nvidia.com/gpu gave it to team/train/main",
                                      "nvidia.com/gpu offers it"}));
}

TEST(Foreign, AMigDeviceIsOfItsGpu) {
  ForeignView view;
  view.devices = {{"nvidia.com/mig-1g.10gb", "MIG-77", ""}};
  EXPECT_EQ(ForeignManagers({kUuid}, view), std::vector<std::string>{""}) << "nobody knows whose";
  view.parents = {{"MIG-7", kOther}, {"MIG-77", kUuid}};
  EXPECT_EQ(ForeignManagers({kUuid, kOther}, view),
            (std::vector<std::string>{"nvidia.com/mig-1g.10gb offers it", ""}));
  view.devices[0].id = "MIG-7::2";
  EXPECT_EQ(ForeignManagers({kUuid, kOther}, view),
            (std::vector<std::string>{"", "nvidia.com/mig-1g.10gb offers it"}));
}

TEST(Foreign, ADaemonOfFractionsHasTheWholeNode) {
  pods::Pod mpsd;
  mpsd.space = "gpu-fractioning";
  mpsd.name = "mpsd-x";
  mpsd.manages_gpus = "mpsd";
  ForeignView view;
  view.pods = {mpsd};
  view.devices = {{"nvidia.com/gpu", kOther, ""}};
  EXPECT_EQ(ForeignManagers({kUuid, kOther}, view),
            (std::vector<std::string>{"mpsd (pod gpu-fractioning/mpsd-x) manages all of the node",
                                      "nvidia.com/gpu offers it"}));
  view.pods[0].over = true;
  EXPECT_EQ(ForeignManagers({kUuid}, view), std::vector<std::string>{""});
}

TEST(ForeignBook, RefusesAtOnceAndForgivesAfterAWhile) {
  ForeignBook book(2);
  EXPECT_TRUE(book.OnLook({"", ""}).empty());
  EXPECT_EQ(book.OnLook({"", "a"}), std::vector<size_t>{1});
  EXPECT_EQ(book.Manager(0), "");
  EXPECT_EQ(book.Manager(1), "a");
  EXPECT_TRUE(book.OnLook({"", "a"}).empty());
  // Kubelet was restarted: for two looks nobody has told it anything.
  EXPECT_TRUE(book.OnLook({"", ""}).empty());
  EXPECT_TRUE(book.OnLook({"", ""}).empty());
  EXPECT_TRUE(book.OnLook({"", "a"}).empty());
  EXPECT_TRUE(book.OnLook({"", ""}).empty());
  EXPECT_TRUE(book.OnLook({"", ""}).empty());
  EXPECT_EQ(book.Manager(1), "a");
  EXPECT_EQ(book.OnLook({"", ""}), std::vector<size_t>{1});
  EXPECT_EQ(book.Manager(1), "");
}

TEST(ForeignBook, AnotherManagerIsNews) {
  ForeignBook book(1);
  EXPECT_EQ(book.OnLook({"a"}), std::vector<size_t>{0});
  EXPECT_EQ(book.OnLook({"b"}), std::vector<size_t>{0});
  EXPECT_EQ(book.Manager(0), "b");
}

TEST(Foreign, ARefusalNamesGpuManagerAndWhatIsAllowed) {
  EXPECT_EQ(ForeignRefusal("GPU-a", "nvidia.com/gpu offers it"),
            "GPU-a is not offered: nvidia.com/gpu offers it; allowed: a GPU that nobody else "
            "manages (leave it out there or here, or say --foreign-gpus share)");
}

TEST(Foreign, AGpuInPartsIsRefusedInWordsOfItsOwn) {
  EXPECT_EQ(ForeignRefusal("GPU-a", std::string(kInMigMode)),
            "GPU-a is not offered: its MIG mode is on, so that nobody gets memory of the whole of "
            "it; allowed: a GPU in one piece (nvidia-smi -i GPU-a -mig 0, then start this node's "
            "sluice-node again)");
}

}  // namespace
}  // namespace sluice::deviceplugin
