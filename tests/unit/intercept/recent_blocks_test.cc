// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/recent_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace sluice {
namespace {

TEST(RecentBlocks, FindsTheLastOfItsSizeAndStream) {
  RecentBlocks recent;
  EXPECT_TRUE(recent.empty());
  EXPECT_EQ(recent.Find(8, 1), kNoBlock);
  EXPECT_EQ(recent.Put(8, 1, 10), kNoBlock);
  EXPECT_EQ(recent.Put(8, 1, 11), kNoBlock);
  EXPECT_EQ(recent.Find(8, 1), 11u);
  EXPECT_EQ(recent.Find(8, 2), kNoBlock);
  EXPECT_EQ(recent.Find(9, 1), kNoBlock);
  recent.Take(8, 11);
  EXPECT_EQ(recent.Find(8, 1), 10u);
  recent.Take(8, 10);
  EXPECT_EQ(recent.Find(8, 1), kNoBlock);
  EXPECT_TRUE(recent.empty());
}

TEST(RecentBlocks, TheOldestGoesForANewOne) {
  RecentBlocks recent;
  recent.Put(8, 1, 10);
  recent.Put(8, 2, 11);
  EXPECT_EQ(recent.Put(8, 1, 12), 10u);
  EXPECT_EQ(recent.Find(8, 2), 11u);
  EXPECT_EQ(recent.Find(8, 1), 12u);
}

TEST(RecentBlocks, WhatIsNotTakenStays) {
  RecentBlocks recent;
  for (uint32_t size = 1; size <= 20; ++size) recent.Put(size, 0, size);
  std::vector<uint32_t> kept;
  recent.TakeEach([&](uint32_t id) {
    if (id % 2 == 0) return true;
    kept.push_back(id);
    return false;
  });
  for (const uint32_t id : kept) EXPECT_EQ(recent.Find(id, 0), id);
  EXPECT_EQ(recent.Find(2, 0), kNoBlock);
  recent.TakeEach([](uint32_t) { return true; });
  EXPECT_TRUE(recent.empty());
}

// Whatever is put in is in there, has had to go, or was taken: nothing is lost or doubled.
TEST(RecentBlocks, LosesNothing) {
  RecentBlocks recent;
  std::mt19937 random(1);
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> in;  // id -> size, slot
  for (uint32_t id = 0; id < 20'000; ++id) {
    const uint32_t size = 1 + static_cast<uint32_t>(random() % 200);
    const auto slot = static_cast<uint32_t>(random() % 3);
    if (const uint32_t found = recent.Find(size, slot); found != kNoBlock) {
      ASSERT_EQ(in.at(found), std::make_pair(size, slot));
      if (random() % 2 == 0) {
        recent.Take(size, found);
        in.erase(found);
      }
    }
    const uint32_t gone = recent.Put(size, slot, id);
    if (gone != kNoBlock) {
      ASSERT_EQ(in.erase(gone), 1u);
    }
    in[id] = {size, slot};
  }
  recent.TakeEach([&](uint32_t id) { return in.erase(id) == 1; });
  EXPECT_TRUE(in.empty());
  EXPECT_TRUE(recent.empty());
}

}  // namespace
}  // namespace sluice
