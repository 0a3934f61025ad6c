// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/identity/cgroup.h"

#include <gtest/gtest.h>

namespace sluice::identity {
namespace {

const std::string kPod = "3f2e1d0c-0b1a-4c5d-8e9f-001122334455";
const std::string kPodOfSystemd = "3f2e1d0c_0b1a_4c5d_8e9f_001122334455";
const std::string kId(64, 'a');
const std::string kOther(64, 'b');
const ContainerOf kContainer = {kPod, kId};

TEST(Cgroup, KnowsEachFormOfTheName) {
  for (const std::string& path : {
           "/kubepods/pod" + kPod + "/" + kId,
           "/kubepods/burstable/pod" + kPod + "/" + kId,
           "/kubepods/besteffort/pod" + kPod + "/" + kId,
           "/kubepods.slice/kubepods-pod" + kPodOfSystemd + ".slice/cri-containerd-" + kId +
               ".scope",
           "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kPodOfSystemd +
               ".slice/cri-containerd-" + kId + ".scope",
           "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + kPodOfSystemd +
               ".slice/crio-" + kId + ".scope",
           "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kPodOfSystemd +
               ".slice/docker-" + kId + ".scope",
           // containerd with the driver cgroupfs under a kubelet with systemd's names
           "/system.slice/containerd.service/kubepods-burstable-pod" + kPodOfSystemd +
               ".slice:cri-containerd:" + kId,
           // a node that is a container itself
           "/docker/" + kOther + "/kubelet/kubepods/burstable/pod" + kPod + "/" + kId,
           // seen from a namespace beside it
           "/../../pod" + kPod + "/" + kId,
           "/../../kubepods-burstable-pod" + kPodOfSystemd + ".slice/cri-containerd-" + kId +
               ".scope",
           // a group that the container made
           "/kubepods/pod" + kPod + "/" + kId + "/init.scope",
       }) {
    EXPECT_EQ(ContainerFromCgroup("0::" + path + "\n"), kContainer) << path;
    EXPECT_EQ(ContainerFromCgroup("12:memory:" + path + "\n11:cpu,cpuacct:" + path + "\n"),
              kContainer)
        << path;
  }
}

TEST(Cgroup, AStaticPodHasAnotherKindOfUid) {
  const std::string uid(32, 'c');
  EXPECT_EQ(ContainerFromCgroup("0::/kubepods/burstable/pod" + uid + "/" + kId),
            (ContainerOf{uid, kId}));
}

TEST(Cgroup, TheOutermostNamesCount) {
  const std::string other = "ffffffff-0b1a-4c5d-8e9f-001122334455";
  EXPECT_EQ(ContainerFromCgroup("0::/kubepods/pod" + kPod + "/" + kId + "/kubepods/pod" + other +
                                "/" + kOther),
            kContainer)
      << "a container that pretends to be another one";
}

TEST(Cgroup, WhoIsInNoContainerOfAPodHasNoName) {
  const std::vector<std::string> texts = {
      "",
      "\n\n",
      "0::/",
      "nonsense",
      "0:",
      "0::/user.slice/user-0.slice/session-1.scope",
      "0::/docker/" + kId,
      "0::/kubepods/pod" + kPod,
      "0::/kubepods/pod" + kPod + "/short",
      "0::/kubepods/pod" + std::string(36, 'z') + "/" + kId,
      "0::/kubepods/pod3f2e1d0c/" + kId,
      // CRI-O's helper
      "0::/kubepods.slice/kubepods-pod" + kPodOfSystemd + ".slice/crio-conmon-" + kId + ".scope",
      // a slice of somebody else
      "0::/my-pod" + kPodOfSystemd + ".slice/" + kId,
  };
  for (const std::string& text : texts) {
    EXPECT_EQ(ContainerFromCgroup(text), std::nullopt) << text;
  }
}

TEST(Cgroup, TwoAnswersAreNone) {
  const std::string here = "/kubepods/pod" + kPod + "/";
  EXPECT_EQ(ContainerFromCgroup("2:memory:" + here + kId + "\n1:cpu:" + here + kOther + "\n"),
            std::nullopt);
  // Controllers that kubelet leaves alone say nothing.
  EXPECT_EQ(ContainerFromCgroup("2:memory:" + here + kId + "\n1:rdma:/\n"), kContainer);
}

}  // namespace
}  // namespace sluice::identity
