// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/holder_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fake_gpu.h"

namespace sluice::noded {
namespace {

/// A process that lives until it is told to end, or has ended already.
class Child {
 public:
  Child() {
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends_[1]);
      char byte = 0;
      ::_exit(::read(ends_[0], &byte, 1) == 0 ? 0 : 1);
    }
    ::close(ends_[0]);
  }
  ~Child() { End(); }
  void End() {
    if (pid_ <= 0) return;
    ::close(ends_[1]);
    EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }
  UniqueFd Pidfd() const { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))); }

 private:
  int ends_[2] = {};
  pid_t pid_ = 0;
};

class HolderWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    liveness_.reset(ends[0]);
    fork_.reset(ends[1]);
  }
  /// Looks often enough for any interval.
  bool Gone(HolderWatch& watch) {
    bool gone = false;
    for (int i = 0; i < 10 && !gone; ++i) {
      now_ns_ += HolderWatch::kSlowestPollNs;
      gone = watch.Poll(&device_, now_ns_);
    }
    return gone;
  }

  testing::FakeGpu device_;
  Child child_;
  UniqueFd liveness_;
  UniqueFd fork_;  // what a forked child has of the liveness pipe
  uint64_t now_ns_ = 1;
};

TEST_F(HolderWatchTest, ProcessForkedChildAndDriverHaveToBeGone) {
  device_.user = child_.pid();
  HolderWatch watch(child_.pid(), child_.Pidfd(), std::move(liveness_), now_ns_);
  EXPECT_TRUE(watch.can_tell());
  EXPECT_FALSE(Gone(watch));
  child_.End();
  EXPECT_FALSE(Gone(watch)) << "a forked child lives";
  fork_.reset();
  EXPECT_FALSE(Gone(watch)) << "the driver lists it";
  device_.user = -1;
  EXPECT_TRUE(Gone(watch));
}

TEST_F(HolderWatchTest, ALostProcessDescriptorIsNoDeath) {
  HolderWatch watch(child_.pid(), UniqueFd(), std::move(liveness_), now_ns_);
  fork_.reset();
  EXPECT_FALSE(watch.ProcessEnded());
  EXPECT_FALSE(Gone(watch)) << "the process lives";
  child_.End();
  EXPECT_TRUE(Gone(watch)) << "its number is nobody's any more";
}

// Nobody can say then that no forked child has the memory.
TEST_F(HolderWatchTest, ALostPipeIsNeverTheLastHoldersEnd) {
  HolderWatch watch(child_.pid(), child_.Pidfd(), UniqueFd(), now_ns_);
  EXPECT_FALSE(watch.can_tell());
  child_.End();
  fork_.reset();
  EXPECT_TRUE(watch.ProcessEnded());
  EXPECT_FALSE(Gone(watch));
}

}  // namespace
}  // namespace sluice::noded
