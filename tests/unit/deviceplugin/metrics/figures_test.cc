// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/metrics/figures.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sluice::deviceplugin {
namespace {

TEST(TimeCounts, AreBySmallestBoundThatIsNotExceeded) {
  TimeCounts times;
  times.Add(0);
  times.Add(500'000);
  times.Add(500'001);
  times.Add(10'000'000'001);
  EXPECT_EQ(times.count(0), 2u);
  EXPECT_EQ(times.count(1), 1u);
  EXPECT_EQ(times.count(TimeCounts::kBoundsNs.size()), 1u);
  EXPECT_EQ(times.sum_ns(), 10'001'000'002u);
}

TEST(TimeCounts, LoseNothingOfSeveralThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 10'000;
  TimeCounts times;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kEach; ++j) times.Add(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(times.count(0), kThreads * kEach);
  EXPECT_EQ(times.sum_ns(), kThreads * kEach);
}

}  // namespace
}  // namespace sluice::deviceplugin
