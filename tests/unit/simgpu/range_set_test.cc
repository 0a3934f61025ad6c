// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/memory/range_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace sluice::simgpu {
namespace {

using Ranges = std::map<uint64_t, uint64_t>;

TEST(RangeSet, JoinsWhatTouches) {
  RangeSet set;
  set.Add(10, 20);
  set.Add(30, 40);
  EXPECT_EQ(set.ranges(), (Ranges{{10, 20}, {30, 40}}));
  set.Add(20, 30);
  EXPECT_EQ(set.ranges(), (Ranges{{10, 40}}));
  set.Add(5, 50);
  set.Add(12, 13);
  set.Add(60, 60);
  EXPECT_EQ(set.ranges(), (Ranges{{5, 50}}));
}

TEST(RangeSet, CutsOutOfTheMiddle) {
  RangeSet set;
  set.Add(0, 100);
  set.Remove(40, 60);
  EXPECT_EQ(set.ranges(), (Ranges{{0, 40}, {60, 100}}));
  set.Remove(30, 70);
  EXPECT_EQ(set.ranges(), (Ranges{{0, 30}, {70, 100}}));
  set.Remove(30, 70);
  set.Remove(100, 200);
  EXPECT_EQ(set.ranges(), (Ranges{{0, 30}, {70, 100}}));
  set.Remove(0, 100);
  EXPECT_EQ(set.ranges(), Ranges{});
}

TEST(RangeSet, HoldsWhatASetOfNumbersHolds) {
  std::mt19937 random(7);
  RangeSet set;
  std::set<uint64_t> numbers;
  for (int i = 0; i < 2000; ++i) {
    const uint64_t start = random() % 50;
    const uint64_t end = start + random() % 12;
    const bool add = random() % 2 == 0;
    for (uint64_t n = start; n < end; ++n) add ? (void)numbers.insert(n) : (void)numbers.erase(n);
    add ? set.Add(start, end) : set.Remove(start, end);
    std::set<uint64_t> held;
    uint64_t last = 0;
    for (const auto& [from, to] : set.ranges()) {
      EXPECT_LT(from, to);
      EXPECT_TRUE(held.empty() || from > last) << "neighbours are one range";
      for (uint64_t n = from; n < to; ++n) held.insert(n);
      last = to;
    }
    ASSERT_EQ(held, numbers);
  }
}

}  // namespace
}  // namespace sluice::simgpu
