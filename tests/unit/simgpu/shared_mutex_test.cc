// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/shared_mutex.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>

#include "simgpu/sharing/process_id.h"

namespace sluice::simgpu {
namespace {

struct Shared {
  SharedMutex mutex;
  std::atomic<uint32_t> waits;
  std::atomic<uint32_t> had_it;
};

class SharedMutexTest : public ::testing::Test {
 protected:
  SharedMutexTest() {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    shared_ = static_cast<Shared*>(memory);
    shared_->mutex.Initialise();
  }
  ~SharedMutexTest() override { munmap(shared_, sizeof(Shared)); }

  static pid_t Fork(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    body();
    _exit(0);
  }

  /// A process that waits for the mutex, and is asleep. This one has it.
  pid_t Waiter(bool yields) {
    const uint32_t before = shared_->waits.load();
    const pid_t child = Fork([this, yields] {
      const sched_param none = {};
      // It does not run while anybody else wants to.
      if (yields && sched_setscheduler(0, SCHED_IDLE, &none) != 0) _exit(1);
      shared_->waits.fetch_add(1);
      const std::lock_guard guard(shared_->mutex);
      shared_->had_it.fetch_add(1);
    });
    while (shared_->waits.load() == before || !SleepingProcessCpu(child)) {
      if (ProcessGone(FindProcess(child))) throw std::runtime_error("a waiter has ended");
      sched_yield();
    }
    return child;
  }

  /// Ended by itself, and well.
  static bool Well(pid_t child) {
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
  }

  Shared* shared_;
};

TEST_F(SharedMutexTest, IsPassedOnByOneThatDiesInside) {
  const pid_t dies = Fork([this] {
    shared_->mutex.lock();
    _exit(0);
  });
  EXPECT_TRUE(Well(dies));
  shared_->mutex.lock();
  const pid_t waiter = Waiter(false);
  shared_->mutex.unlock();
  EXPECT_TRUE(Well(waiter));
  EXPECT_EQ(shared_->had_it.load(), 1u);
}

/// The wake-up goes to one that is killed before it runs, while somebody has the mutex who took it
/// without seeing that there are others. On one processor, where the one that is woken does not run
/// at once; should it run all the same, once more.
TEST_F(SharedMutexTest, IsTakenThoughTheWakeUpWentToADeadOne) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  bool killed = false;
  for (int tries = 0; tries < 100 && !killed; ++tries) {
    shared_->mutex.lock();
    const pid_t first = Waiter(true);
    const pid_t second = Waiter(false);
    shared_->mutex.unlock();  // wakes the first one
    shared_->mutex.lock();
    kill(first, SIGKILL);
    int status = 0;
    EXPECT_EQ(waitpid(first, &status, 0), first);
    killed = WIFSIGNALED(status);
    shared_->mutex.unlock();  // wakes nobody, unless the second one has looked again already
    EXPECT_TRUE(Well(second));
  }
  EXPECT_TRUE(killed);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace sluice::simgpu
