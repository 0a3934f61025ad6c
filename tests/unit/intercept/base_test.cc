// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "intercept/base/line.h"
#include "intercept/base/lock.h"
#include "intercept/base/paged_array.h"

namespace sluice {
namespace {

template <class Mutex>
void ExpectExclusion(Mutex& lock) {
  uint64_t counter = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        const LockGuard guard(lock);
        ++counter;
        if (i % 1000 == 0) std::this_thread::yield();  // so that others reach the slow path
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 80'000u);
}

TEST(Lock, ExcludesAndWakes) {
  Lock lock;
  ExpectExclusion(lock);
  EXPECT_TRUE(lock.TryAcquire());
  EXPECT_FALSE(lock.TryAcquire());
  lock.ForgetHolder();
  EXPECT_TRUE(lock.TryAcquire());
}

TEST(BriefLock, ExcludesAndWakes) {
  BriefLock lock;
  ExpectExclusion(lock);
  // One who sleeps is woken, or looks again.
  lock.Acquire();
  std::atomic<bool> has_it{false};
  std::thread sleeper([&] {
    const LockGuard guard(lock);
    has_it = true;
  });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(has_it);
  lock.Release();
  sleeper.join();
  EXPECT_TRUE(has_it);
  lock.Acquire();
  lock.ForgetHolder();
  lock.Acquire();
}

TEST(Line, NumbersAndBytes) {
  EXPECT_STREQ(Line().Number(0).c_str(), "sluice: 0");
  EXPECT_STREQ(Line().Number(~uint64_t{0}).c_str(), "sluice: 18446744073709551615");
  EXPECT_STREQ(Line().Bytes(1023).c_str(), "sluice: 1023 B");
  EXPECT_STREQ(Line().Bytes(26u << 20).c_str(), "sluice: 26.0 MiB");
  EXPECT_STREQ(Line().Bytes((3u << 30) + (1u << 29)).c_str(), "sluice: 3.5 GiB");
}

TEST(Line, HostileTextIsCutAndCleaned) {
  const std::string text(5000, 'x');
  EXPECT_LT(std::string(Line().Text(text.c_str()).c_str()).size(), 800u);
  EXPECT_STREQ(Line().Text("a\nb\x1b[0m\x7f").c_str(), "sluice: a?b?[0m?");
  EXPECT_STREQ(Line().Text("abcdef", 3).c_str(), "sluice: abc");
}

TEST(Line, OnceIsOncePerText) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    Line().Text("first").PrintOnce();
    Line().Text("second").PrintOnce();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "sluice: first\nsluice: second\n");
}

TEST(PagedArray, GrowsAndKeeps) {
  PagedArray<uint64_t> array;
  ASSERT_TRUE(array.Reserve(1));
  array[0] = 7;
  ASSERT_TRUE(array.Reserve(1'000'000));
  EXPECT_EQ(array[0], 7u);
  EXPECT_EQ(array[999'999], 0u);
  array.Free();
  EXPECT_EQ(array.capacity(), 0u);
}

}  // namespace
}  // namespace sluice
