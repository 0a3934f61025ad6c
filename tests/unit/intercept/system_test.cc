// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/system.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace sluice {
namespace {

long KernelsId() { return syscall(SYS_gettid); }  // NOLINT(google-runtime-int)

// Those of the kernel do, and what belonged to the thread that is gone would be the new one's.
TEST(System, AThreadsNumberDoesNotComeAgain) {
  long kernels = 0;  // NOLINT(google-runtime-int)
  uint64_t number = 0;
  std::thread([&] {
    kernels = KernelsId();
    number = ThreadNumber();
    EXPECT_EQ(ThreadNumber(), number);
  }).join();
  constexpr int kTries = 20;  // others start threads, too
  bool again = false;
  for (int i = 0; i < kTries && !again; ++i) {
    std::ofstream("/proc/sys/kernel/ns_last_pid") << kernels - 1;
    std::thread([&] {
      again = KernelsId() == kernels;
      EXPECT_NE(ThreadNumber(), number);
    }).join();
  }
  if (!again) GTEST_SKIP() << "the kernel may not be told which id comes next";
}

}  // namespace
}  // namespace sluice
