// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/process_id.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/unique_fd.h"
#include "tests/support/temp_folder.h"

namespace sluice::simgpu {
namespace {

/// A process in a PID namespace of its own, as a container's: number 1 there. It says how it knows
/// itself and sleeps until it is killed.
class Contained {
 public:
  explicit Contained(const std::string& folder) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    // The one between is needed because a process's namespace is that of its children only.
    between_ = fork();
    if (between_ == 0) {
      if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) _exit(1);
      const pid_t inner = fork();
      if (inner == 0) Live(folder, theirs.get());
      int status = 0;
      waitpid(inner, &status, 0);
      _exit(0);
    }
    theirs.reset();
    there_ = read(ours.get(), &id, sizeof id) == sizeof id;
    outer = there_ ? NumberHere(id) : 0;
  }
  ~Contained() { End(); }
  bool there() const { return there_; }
  void End() {
    if (outer > 0) kill(outer, SIGKILL);
    if (between_ > 0) waitpid(between_, nullptr, 0);
    outer = between_ = 0;
  }

  ProcessId id;
  pid_t outer = 0;

 private:
  [[noreturn]] static void Live(const std::string& folder, int socket) {
    const bool own_proc = mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                          mount("proc", "/proc", "proc", 0, nullptr) == 0;
    if (!own_proc) _exit(1);
    WatchLives(folder);
    ShowLife();
    const ProcessId self = SelfProcess();
    if (write(socket, &self, sizeof self) != sizeof self) _exit(1);
    for (;;) pause();
  }

  pid_t between_ = 0;
  bool there_ = false;
};

TEST(ProcessId, AProcessOfThisNamespaceIsFoundByItsNumber) {
  const ProcessId self = SelfProcess();
  EXPECT_EQ(self.pid, getpid());
  EXPECT_NE(self.space, 0u);
  EXPECT_FALSE(ProcessGone(self));
  EXPECT_EQ(NumberHere(self), getpid());
  EXPECT_TRUE(ProcessGone({self.pid, self.start + 1, self.space}));
}

TEST(ProcessId, AProcessOfAContainerLivesAsLongAsItShows) {
  const testing::TempFolder folder;
  WatchLives(folder.path());
  Contained container(folder.path());
  if (!container.there()) GTEST_SKIP() << "no PID namespace can be made here";
  EXPECT_EQ(container.id.pid, 1);
  EXPECT_NE(container.id.space, SelfProcess().space);
  EXPECT_GT(container.outer, 1);
  EXPECT_FALSE(ProcessGone(container.id));
  container.End();
  EXPECT_TRUE(ProcessGone(container.id));
  EXPECT_EQ(NumberHere(container.id), 0);
}

TEST(ProcessId, AStrangerOfAnotherNamespaceIsGone) {
  const testing::TempFolder folder;
  WatchLives(folder.path());
  const ProcessId self = SelfProcess();
  EXPECT_TRUE(ProcessGone({self.pid, self.start, self.space + 1}));
}

}  // namespace
}  // namespace sluice::simgpu
