// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/gate/standstill.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "intercept/base/system.h"

namespace sluice {
namespace {

constexpr uint64_t kLong = 10'000'000'000;

TEST(Standstill, LetsEverybodyPassUntilItBegins) {
  Standstill standstill;
  EXPECT_TRUE(standstill.Enter());
  EXPECT_TRUE(standstill.Enter());
  standstill.Leave();
  standstill.Leave();
  EXPECT_FALSE(standstill.still());
  standstill.Begin();
  EXPECT_TRUE(standstill.still());
  EXPECT_TRUE(standstill.AwaitOthers(kLong));
}

TEST(Standstill, WaitsForThoseInTheMiddleOfACallButNotForEver) {
  Standstill standstill;
  ASSERT_TRUE(standstill.Enter());
  standstill.Begin();
  EXPECT_FALSE(standstill.AwaitOthers(1));
  standstill.Leave();
  EXPECT_TRUE(standstill.AwaitOthers(kLong));
}

TEST(Standstill, WhoComesMeanwhileWaitsForTheEnd) {
  Standstill standstill;
  standstill.Begin();
  std::atomic<int> passed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_TRUE(standstill.Enter());
      ++passed;
      standstill.Leave();
    });
  }
  EXPECT_TRUE(standstill.AwaitOthers(kLong)) << "those who wait are not under way";
  EXPECT_EQ(passed, 0);
  standstill.End();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(passed, 4);
}

// Whoever was slow to go on finds that the memory is away again.
TEST(Standstill, WhoWaitedLooksAgainBeforeItIsInside) {
  Standstill standstill;
  ASSERT_TRUE(standstill.Enter());  // as if it had seen the standstill only now
  standstill.Begin();
  int waits = 0;
  EXPECT_TRUE(standstill.EnterAfter([&] {
    EXPECT_TRUE(standstill.AwaitOthers(kLong)) << "it is not under way while it waits";
    standstill.End();
    if (++waits < 3) standstill.Begin();
  }));
  EXPECT_EQ(waits, 3);
  EXPECT_FALSE(standstill.still());
  standstill.Leave();
  EXPECT_TRUE(standstill.AwaitOthers(kLong));
}

TEST(Standstill, WhatIsLostStaysLostUntilItBeginsAnew) {
  Standstill standstill;
  standstill.Begin();
  std::thread waiting([&] { EXPECT_FALSE(standstill.Enter()); });
  standstill.Lose();
  waiting.join();
  EXPECT_FALSE(standstill.Enter());
  EXPECT_TRUE(standstill.AwaitOthers(kLong)) << "nobody has entered";
  standstill.End();
  EXPECT_TRUE(standstill.Enter());
}

// The memory is in use by whoever has entered, or being moved, never both.
TEST(Standstill, NobodyIsInsideWhileMemoryIsMoved) {
  Standstill standstill;
  std::atomic<int> inside{0};
  std::atomic<bool> moving{false};
  std::atomic<bool> done{false};
  std::atomic<int> both{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        ASSERT_TRUE(standstill.Enter());
        ++inside;
        if (moving) ++both;
        --inside;
        standstill.Leave();
      }
    });
  }
  for (int i = 0; i < 2'000; ++i) {
    standstill.Begin();
    ASSERT_TRUE(standstill.AwaitOthers(kLong));
    moving = true;
    if (inside != 0) ++both;
    moving = false;
    standstill.End();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(both, 0);
}

}  // namespace
}  // namespace sluice
