// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/recent_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

namespace sluice {
namespace {

class RecentBlocksTest : public testing::Test {
 protected:
  RecentBlocksTest() { EXPECT_TRUE(blocks_.Reserve(32'768)); }
  ~RecentBlocksTest() override { blocks_.Free(); }

  // False: there is no room. What stood in its place goes into gone_.
  bool Put(uint32_t size, uint32_t slot, uint32_t id, bool small = true) {
    RecentBlocks::Stack& stack = recent_.Place(size, slot);
    while (RecentBlocks::HoldsOthers(stack, size, slot)) {
      gone_.push_back(recent_.Pop(stack, blocks_));
    }
    if (!RecentBlocks::HasRoom(stack, small)) return false;
    blocks_[id].size = size;
    blocks_[id].slot = static_cast<uint16_t>(slot);
    recent_.Push(stack, blocks_, id);
    return true;
  }
  uint32_t Take(uint32_t size, uint32_t slot) {
    RecentBlocks::Stack* const stack = recent_.Find(size, slot);
    return stack == nullptr ? kNoBlock : recent_.Pop(*stack, blocks_);
  }

  PagedArray<Block> blocks_;
  RecentBlocks recent_;
  std::vector<uint32_t> gone_;
};

TEST_F(RecentBlocksTest, FindsTheLastOfItsSizeAndStream) {
  EXPECT_TRUE(recent_.empty());
  EXPECT_EQ(Take(8, 1), kNoBlock);
  Put(8, 1, 10);
  Put(8, 1, 11);
  EXPECT_EQ(recent_.Find(8, 2), nullptr);
  EXPECT_EQ(recent_.Find(9, 1), nullptr);
  EXPECT_EQ(Take(8, 1), 11u);
  EXPECT_EQ(Take(8, 1), 10u);
  EXPECT_EQ(Take(8, 1), kNoBlock);
  EXPECT_TRUE(recent_.empty());
}

TEST_F(RecentBlocksTest, TheSizeThatWasUsedLongestAgoGoesForANewOne) {
  // One size is in one place of the table, on every stream.
  Put(8, 1, 10);
  Put(8, 1, 11);
  Put(8, 2, 12);
  Put(8, 1, 13);
  EXPECT_TRUE(gone_.empty());
  Put(8, 3, 14);
  EXPECT_EQ(gone_, std::vector<uint32_t>({12}));
  EXPECT_EQ(Take(8, 1), 13u);
  EXPECT_EQ(Take(8, 3), 14u);
  Put(8, 4, 15);
  EXPECT_EQ(gone_.size(), 1u) << "the place of the third stream is empty";
}

TEST_F(RecentBlocksTest, ManyThatAreSmallAndAFewThatAreNot) {
  for (uint32_t id = 0; id < RecentBlocks::kMostInStack; ++id) EXPECT_TRUE(Put(8, 1, id));
  EXPECT_FALSE(Put(8, 1, 200)) << "the time that it takes to merge them is bounded";
  EXPECT_TRUE(Put(1'000, 1, 201, false));
  EXPECT_TRUE(Put(1'000, 1, 202, false));
  EXPECT_FALSE(Put(1'000, 1, 203, false));
}

TEST_F(RecentBlocksTest, ReversedTheOldestIsOnTop) {
  for (uint32_t id = 10; id < 14; ++id) Put(8, 1, id);
  RecentBlocks::Reverse(*recent_.Find(8, 1), blocks_);
  for (uint32_t id = 10; id < 14; ++id) EXPECT_EQ(Take(8, 1), id);
}

// Whatever is put in is in there, has had to go, or was taken: nothing is lost or doubled.
TEST_F(RecentBlocksTest, LosesNothing) {
  std::mt19937 random(1);
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> in;  // id -> size, slot
  const auto leaves = [&](uint32_t id) { ASSERT_EQ(in.erase(id), 1u); };
  for (uint32_t id = 0; id < 20'000; ++id) {
    const uint32_t size = 1 + static_cast<uint32_t>(random() % 200);
    const auto slot = static_cast<uint32_t>(random() % 3);
    if (random() % 2 == 0) {
      if (const uint32_t found = Take(size, slot); found != kNoBlock) {
        ASSERT_EQ(in.at(found), std::make_pair(size, slot));
        leaves(found);
      }
    }
    if (Put(size, slot, id)) in[id] = {size, slot};
    for (const uint32_t gone : gone_) leaves(gone);
    gone_.clear();
  }
  EXPECT_GT(in.size(), 128u);
  recent_.ForEach([&](RecentBlocks::Stack& stack) {
    while (stack.count > 0) leaves(recent_.Pop(stack, blocks_));
  });
  EXPECT_TRUE(in.empty());
  EXPECT_TRUE(recent_.empty());
}

}  // namespace
}  // namespace sluice
