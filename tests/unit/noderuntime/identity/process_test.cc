// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/identity/process.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/unique_fd.h"
#include "tests/support/temp_folder.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;

const ContainerOf kHere = {"3f2e1d0c-0b1a-4c5d-8e9f-001122334455", std::string(64, 'a')};
const ContainerOf kThere = {"99999999-0b1a-4c5d-8e9f-001122334455", std::string(64, 'b')};

UniqueFd PidfdOf(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

class ProcessTest : public ::testing::Test {
 protected:
  void Put(const std::string& process, const std::string& cgroup) {
    fs::create_directories(proc_ + "/" + process);
    std::ofstream(proc_ + "/" + process + "/cgroup") << cgroup << "\n";
  }
  void Write(pid_t pid, const ContainerOf& where) {
    Put(std::to_string(pid), "0::/kubepods/pod" + where.pod + "/" + where.container);
  }
  bool IsInOwnContainer() { return InOwnContainer(::getpid(), PidfdOf(::getpid()).get(), proc_); }
  const testing::TempFolder temp_;
  const std::string proc_ = temp_.path();
};

TEST_F(ProcessTest, ReadsWhereALivingProcessIs) {
  Write(::getpid(), kHere);
  const UniqueFd self = PidfdOf(::getpid());
  EXPECT_EQ(ContainerOfProcess(::getpid(), self.get(), proc_), kHere);
}

TEST_F(ProcessTest, AProcessThatHasEndedIsNowhere) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  const UniqueFd pidfd = PidfdOf(child);
  Write(child, kHere);  // whoever has its number now
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(ContainerOfProcess(child, pidfd.get(), proc_), std::nullopt);
}

TEST_F(ProcessTest, AProcessWithoutANumberHereIsNowhere) {
  const UniqueFd self = PidfdOf(::getpid());
  EXPECT_EQ(ContainerOfProcess(0, self.get(), proc_), std::nullopt);
  EXPECT_EQ(ContainerOfProcess(::getpid(), self.get(), proc_), std::nullopt) << "no file";
}

/// As a container sees them: by their names, or from inside a cgroup namespace of its own.
struct Seen {
  const char* name;
  std::string node;  // the node's first process
  std::string own;
  std::string other;  // another container's
};

class OwnContainer : public ProcessTest, public ::testing::WithParamInterface<Seen> {};

TEST_P(OwnContainer, IsWhoeverIsInIt) {
  const std::string here = std::to_string(::getpid());
  Put("1", GetParam().node);
  Put("self", GetParam().own);
  Put(here, GetParam().own);
  EXPECT_TRUE(IsInOwnContainer());
  Put(here, GetParam().other);
  EXPECT_FALSE(IsInOwnContainer());
  Put(here, GetParam().node);
  EXPECT_FALSE(IsInOwnContainer());
}

const std::string kPods = "/kubepods.slice/kubepods-pod3f2e1d0c_0b1a_4c5d_8e9f_001122334455.slice";
INSTANTIATE_TEST_SUITE_P(
    Cgroups, OwnContainer,
    ::testing::Values(Seen{"Named", "0::/init.scope",
                           "0::" + kPods + "/cri-containerd-" + kHere.container + ".scope",
                           "0::" + kPods + "/cri-containerd-" + kThere.container + ".scope"},
                      Seen{"Private", "0::/../../../init.scope", "0::/",
                           "0::/../../kubepods-pod99999999_0b1a_4c5d_8e9f_001122334455.slice/"
                           "cri-containerd-" +
                               kThere.container + ".scope"}),
    [](const auto& seen) { return seen.param.name; });

TEST_F(ProcessTest, ADaemonOutsideOfContainersHasNone) {
  for (const std::string& process :
       {std::string("1"), std::string("self"), std::to_string(::getpid())}) {
    Put(process, "0::/");
  }
  EXPECT_FALSE(IsInOwnContainer());
}

TEST(CheckPod, TheFirstPodKeepsTheGrant) {
  std::string pod;
  EXPECT_TRUE(CheckPod(7, std::nullopt, &pod).ok()) << "no cluster";
  EXPECT_EQ(pod, "");
  EXPECT_TRUE(CheckPod(7, kHere, &pod).ok());
  EXPECT_EQ(pod, kHere.pod);
  EXPECT_TRUE(CheckPod(8, ContainerOf{kHere.pod, kThere.container}, &pod).ok()) << "restarted";
}

TEST(CheckPod, OthersAreRefusedByName) {
  std::string pod = kHere.pod;
  const Status other = CheckPod(7, kThere, &pod);
  EXPECT_EQ(other.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(other.message(),
            "this grant is pod " + kHere.pod + "'s, and process 7 is pod " + kThere.pod + "'s");
  EXPECT_EQ(CheckPod(7, std::nullopt, &pod).message(),
            "this grant is pod " + kHere.pod + "'s, and process 7 is in no pod");
  EXPECT_EQ(pod, kHere.pod);
}

}  // namespace
}  // namespace sluice::identity
