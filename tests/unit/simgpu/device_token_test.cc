// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/device_token.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace sluice::simgpu {
namespace {

class DeviceTokenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/sluice-token-test-XXXXXX";
    ASSERT_NE(::mkdtemp(dir), nullptr);
    dir_ = dir;
    std::filesystem::create_directory(dir_ + "/gpu0");
    std::ofstream(dir_ + "/machine") << "launch_ns = 0\n";
    ASSERT_TRUE(GpuState::Initialise(dir_, 1 << 20, false).ok());
    Result<std::unique_ptr<GpuState>> gpu = GpuState::Open(dir_);
    ASSERT_TRUE(gpu.ok()) << gpu.status().message();
    gpu_ = std::move(*gpu);
  }
  void TearDown() override {
    gpu_.reset();
    std::filesystem::remove_all(dir_);
  }

  uint32_t Executor(pid_t pid) {
    const ProcessId id = FindProcess(pid);
    return gpu_->RegisterExecutor(id, id, gpu_->RegisterProcess(id, "test", false));
  }
  uint32_t Owner() {
    StateLock lock(gpu_->page());
    return gpu_->page()->owner;
  }
  void AwaitWaiter(uint32_t executor) {
    for (;;) {
      StateLock lock(gpu_->page());
      if (gpu_->page()->executor[executor].ticket != 0) return;
    }
  }

  std::string dir_;
  std::unique_ptr<GpuState> gpu_;
};

TEST_F(DeviceTokenTest, WaitersAreServedInTurn) {
  const uint32_t executors[] = {Executor(::getpid()), Executor(::getpid()), Executor(::getpid())};
  DeviceToken first(gpu_.get(), executors[0]);
  first.Acquire();
  std::vector<uint32_t> order;
  std::vector<std::thread> waiters;
  for (const uint32_t executor : {executors[1], executors[2]}) {
    waiters.emplace_back([&, executor] {
      DeviceToken token(gpu_.get(), executor);
      token.Acquire();
      order.push_back(executor);  // the token is the lock
      token.Release();
    });
    AwaitWaiter(executor);
  }
  first.Release();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(order, (std::vector<uint32_t>{executors[1], executors[2]}));
  EXPECT_EQ(Owner(), kNobody);
}

TEST_F(DeviceTokenTest, ADeadOwnerIsSkipped) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  DeviceToken owner(gpu_.get(), Executor(child));
  owner.Acquire();
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  DeviceToken next(gpu_.get(), Executor(::getpid()));
  next.Acquire();
  EXPECT_TRUE(next.held());
}

// Killed between its two steps: the next owner is named, but was not woken.
TEST_F(DeviceTokenTest, AWaiterThatWasNamedButNotWokenTakesItsTurn) {
  const uint32_t executors[] = {Executor(::getpid()), Executor(::getpid())};
  DeviceToken first(gpu_.get(), executors[0]);
  first.Acquire();
  std::thread waiter([&] { DeviceToken(gpu_.get(), executors[1]).Acquire(); });
  AwaitWaiter(executors[1]);
  {
    StateLock lock(gpu_->page());
    gpu_->page()->owner = executors[1];
  }
  waiter.join();
  EXPECT_EQ(Owner(), executors[1]);
}

// Killed before it named anybody: whoever waits longest is next, not whoever looks first.
TEST_F(DeviceTokenTest, ATokenThatNobodyOwnsGoesToTheLongestWaiter) {
  const uint32_t executors[] = {Executor(::getpid()), Executor(::getpid()), Executor(::getpid())};
  DeviceToken first(gpu_.get(), executors[0]);
  first.Acquire();
  std::atomic<bool> done{false};
  std::thread waiter([&] {
    DeviceToken token(gpu_.get(), executors[1]);
    token.Acquire();
    done.store(true);
    token.Release();
  });
  AwaitWaiter(executors[1]);
  {
    StateLock lock(gpu_->page());
    gpu_->page()->owner = kNobody;
  }
  DeviceToken late(gpu_.get(), executors[2]);
  late.Acquire();
  EXPECT_TRUE(done.load());
  late.Release();
  waiter.join();
}

}  // namespace
}  // namespace sluice::simgpu
