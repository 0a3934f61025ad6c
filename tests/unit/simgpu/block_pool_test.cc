// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/memory/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace sluice::simgpu {
namespace {

constexpr uint64_t kChunk = 4096;

/// Memory of a fixed number of chunks, and streams that complete when told.
struct World : BlockPool::Backing, BlockPool::Order {
  bool Grow(uint64_t offset, uint64_t bytes) override {
    if (chunks.size() + bytes / kChunk > capacity) return false;
    for (uint64_t at = offset; at < offset + bytes; at += kChunk) {
      EXPECT_TRUE(chunks.insert(at).second);
    }
    return true;
  }
  void Shrink(uint64_t offset, uint64_t bytes) override {
    for (uint64_t at = offset; at < offset + bytes; at += kChunk) EXPECT_EQ(chunks.erase(at), 1u);
  }
  bool Completed(const StreamMark& mark) const override {
    const auto found = done.find(mark.stream);
    return found != done.end() && found->second >= mark.id;
  }
  bool Follows(uint32_t stream, const StreamMark& mark) const override {
    return follows.contains({stream, mark.stream});
  }
  size_t capacity = 1000;
  std::set<uint64_t> chunks;
  std::map<uint32_t, uint64_t> done;
  std::set<std::pair<uint32_t, uint32_t>> follows;
};

class BlockPoolTest : public ::testing::Test {
 protected:
  World world_;
  BlockPool pool_{4000 * kChunk, kChunk, &world_, &world_};
};

TEST_F(BlockPoolTest, RoundsToTheGranuleAndGrowsByChunks) {
  const auto a = pool_.Alloc(1, 1);
  ASSERT_TRUE(a);
  EXPECT_EQ(pool_.used(), BlockPool::kGranule);
  EXPECT_EQ(pool_.reserved(), kChunk);
  const auto b = pool_.Alloc(3 * kChunk, 1);
  ASSERT_TRUE(b);
  EXPECT_EQ(pool_.reserved(), 4 * kChunk);  // the rest of the first chunk is used too
  EXPECT_EQ(*b, *a + BlockPool::kGranule);
  EXPECT_EQ(pool_.Find(*b + 5)->offset, *b);
  EXPECT_FALSE(pool_.Find(*b + 3 * kChunk));
}

TEST_F(BlockPoolTest, AnotherStreamGetsABlockWhenItsMarkIsReached) {
  const auto a = pool_.Alloc(kChunk, 1);
  ASSERT_TRUE(pool_.Free(*a, {1, 10}));
  const auto b = pool_.Alloc(kChunk, 2);
  EXPECT_NE(*a, *b);
  world_.done[1] = 10;
  EXPECT_EQ(*pool_.Alloc(kChunk, 2), *a);
}

TEST_F(BlockPoolTest, ADependencyIsAsGoodAsCompletion) {
  const auto a = pool_.Alloc(kChunk, 1);
  ASSERT_TRUE(pool_.Free(*a, {1, 10}));
  world_.follows.insert({2, 1});
  EXPECT_EQ(*pool_.Alloc(kChunk, 2), *a);
}

TEST_F(BlockPoolTest, TheSameStreamGetsItAtOnce) {
  const auto a = pool_.Alloc(kChunk, 1);
  ASSERT_TRUE(pool_.Free(*a, {1, 10}));
  EXPECT_EQ(*pool_.Alloc(kChunk, 1), *a);
}

TEST_F(BlockPoolTest, NeighboursWithDifferentMarksServeOneRequest) {
  const auto a = pool_.Alloc(kChunk, 1);
  const auto b = pool_.Alloc(kChunk, 2);
  ASSERT_TRUE(pool_.Free(*a, {1, 5}));
  ASSERT_TRUE(pool_.Free(*b, {2, 6}));
  world_.follows.insert({1, 2});
  EXPECT_EQ(*pool_.Alloc(2 * kChunk, 1), *a);
  EXPECT_EQ(pool_.reserved(), 2 * kChunk);
}

TEST_F(BlockPoolTest, TrimsOnlyWhatNobodyUses) {
  const auto a = pool_.Alloc(4 * kChunk, 1);
  const auto b = pool_.Alloc(100, 1);
  ASSERT_TRUE(pool_.Free(*a, {1, 5}));
  pool_.Trim(0);
  EXPECT_EQ(pool_.reserved(), 5 * kChunk);  // still in use by the GPU
  world_.done[1] = 5;
  pool_.Trim(2 * kChunk);
  EXPECT_EQ(pool_.reserved(), 2 * kChunk);
  pool_.Trim(0);
  EXPECT_EQ(pool_.reserved(), kChunk);
  ASSERT_TRUE(pool_.Free(*b, {}));
  pool_.Trim(0);
  EXPECT_EQ(pool_.reserved(), 0u);
  EXPECT_TRUE(world_.chunks.empty());
}

TEST_F(BlockPoolTest, GivesBackBeforeItFails) {
  world_.capacity = 10;
  const auto a = pool_.Alloc(5 * kChunk, 1);
  const auto b = pool_.Alloc(100, 1);
  ASSERT_TRUE(pool_.Free(*a, {}));
  EXPECT_TRUE(pool_.Alloc(8 * kChunk, 1));  // not where `a` was, and not beside it within 10 chunks
  EXPECT_FALSE(pool_.Alloc(5 * kChunk, 1));
  EXPECT_TRUE(pool_.Find(*b));
}

TEST_F(BlockPoolTest, RefusesForeignFrees) {
  EXPECT_FALSE(pool_.Free(0, {}));
  const auto a = pool_.Alloc(kChunk, 1);
  EXPECT_FALSE(pool_.Free(*a + 512, {}));
  EXPECT_TRUE(pool_.Free(*a, {}));
  EXPECT_FALSE(pool_.Free(*a, {}));
  EXPECT_FALSE(pool_.Alloc(0, 1));
  EXPECT_FALSE(pool_.Alloc(~uint64_t{0}, 1));
}

// Against a plain model: blocks never overlap, always lie in backed chunks, and the sums are right.
TEST_F(BlockPoolTest, HoldsItsInvariantsUnderARandomLoad) {
  std::mt19937 random(7);
  std::map<uint64_t, uint64_t> live;
  uint64_t clock = 0;
  world_.capacity = 200;
  for (int step = 0; step < 20000; ++step) {
    const auto stream = static_cast<uint32_t>(random() % 3);
    const auto what = random() % 10;
    if (what < 5) {
      const uint64_t bytes = 1 + random() % (6 * kChunk);
      const auto at = pool_.Alloc(bytes, stream);
      if (!at) continue;
      const uint64_t rounded = (bytes + 511) / 512 * 512;
      const auto next = live.lower_bound(*at);
      ASSERT_TRUE(next == live.end() || next->first >= *at + rounded);
      ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= *at);
      for (uint64_t c = *at / kChunk * kChunk; c < *at + rounded; c += kChunk) {
        ASSERT_TRUE(world_.chunks.contains(c));
      }
      live[*at] = rounded;
    } else if (what < 9 && !live.empty()) {
      auto victim = live.lower_bound(random() % (200 * kChunk));
      if (victim == live.end()) victim = live.begin();
      ASSERT_TRUE(pool_.Free(victim->first, {stream, ++clock}));
      live.erase(victim);
    } else {
      world_.done[stream] = clock;
      if (random() % 4 == 0) pool_.Trim(random() % (100 * kChunk));
    }
    uint64_t used = 0;
    for (const auto& [offset, bytes] : live) used += bytes;
    ASSERT_EQ(pool_.used(), used);
    ASSERT_EQ(pool_.reserved(), world_.chunks.size() * kChunk);
  }
  for (const auto& [offset, bytes] : live) ASSERT_TRUE(pool_.Free(offset, {}));
  for (uint32_t stream = 0; stream < 3; ++stream) world_.done[stream] = clock;
  pool_.Trim(0);
  EXPECT_EQ(pool_.reserved(), 0u);
}

}  // namespace
}  // namespace sluice::simgpu
