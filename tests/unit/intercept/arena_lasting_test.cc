// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "intercept/blocks/arena.h"

namespace sluice {
namespace {

constexpr uint32_t kUnit = 64;  // granules
constexpr uint32_t kPool = 16;
constexpr uint32_t kSmall = kUnit / 8;

class ArenaLasting : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(arena_.Init(kPool, kUnit, 16));
    ASSERT_TRUE(arena_.Grant({0, 8}));
    for (uint32_t unit = 0; unit < 8; ++unit) ids_.push_back(arena_.Allocate(kUnit, 1, marks_));
  }
  void TearDown() override { arena_.FreeMemory(); }

  void Free(uint32_t unit, uint32_t slot = 1) { arena_.FreeOnStream(ids_[unit], slot, ++mark_); }
  uint32_t Lasting(uint32_t granules = kSmall, uint32_t slot = 1) {
    return arena_.AllocateLasting(granules, slot, marks_);
  }
  uint32_t UnitOf(uint32_t id) const { return arena_.block(id).start / kUnit; }

  Arena arena_;
  protocol::MarkPage marks_{};
  std::vector<uint32_t> ids_;
  uint64_t mark_ = 0;
};

// As in a backward pass: what was allocated last is freed first, and something small stays.
TEST_F(ArenaLasting, LieTogetherWhateverIsFreedMeanwhile) {
  std::set<uint32_t> units;
  for (uint32_t unit = 8; unit-- > 0;) {
    Free(unit);
    const uint32_t id = Lasting();
    ASSERT_NE(id, kNoBlock);
    EXPECT_EQ(arena_.block(id).size, kSmall);
    EXPECT_EQ(arena_.block(id).slot, 1u);
    units.insert(UnitOf(id));
  }
  EXPECT_EQ(units.size(), 1u);
  EXPECT_EQ(arena_.free_units(), 7u);
}

// What they are kept from: each has the tightest place that there is then, in another unit.
TEST_F(ArenaLasting, OthersWouldEachHoldAUnit) {
  arena_.TakeTightest(true);
  std::vector<uint32_t> holes;
  for (uint32_t unit = 0; unit < 7; ++unit) {
    Free(unit);
    holes.push_back(arena_.Allocate(kSmall, 1, marks_));
    ASSERT_NE(arena_.Allocate(kUnit - kSmall, 1, marks_), kNoBlock);
  }
  Free(7);
  std::set<uint32_t> units;
  std::set<uint32_t> lasting;
  for (const uint32_t hole : holes) {
    arena_.FreeOnStream(hole, 1, ++mark_);
    lasting.insert(UnitOf(Lasting()));
    units.insert(UnitOf(arena_.Allocate(kSmall, 1, marks_)));
  }
  EXPECT_EQ(units.size(), 7u);
  EXPECT_EQ(lasting, (std::set<uint32_t>{7}));
}

TEST_F(ArenaLasting, TheNextUnitIsOpenedWhenOneIsFull) {
  for (uint32_t unit = 4; unit < 8; ++unit) Free(unit);
  std::multiset<uint32_t> units;
  for (int i = 0; i < 12; ++i) units.insert(UnitOf(Lasting()));
  EXPECT_EQ(std::set<uint32_t>(units.begin(), units.end()).size(), 2u);
  EXPECT_EQ(units.count(*units.begin()), 8u) << "the nearer one is full";
  EXPECT_EQ(units.count(*units.rbegin()), 4u);
}

TEST_F(ArenaLasting, AnotherIterationOpensUnitsOfItsOwn) {
  for (uint32_t unit = 4; unit < 8; ++unit) Free(unit);
  const uint32_t first = UnitOf(Lasting());
  arena_.CloseUnits();
  EXPECT_NE(UnitOf(Lasting()), first);
}

TEST_F(ArenaLasting, NearTheJobsEndWhicheverThatIs) {
  for (uint32_t unit = 2; unit < 6; ++unit) Free(unit);
  EXPECT_EQ(UnitOf(Lasting()), 2u);
  arena_.CloseUnits();
  arena_.FillFromHighEnd(true);
  EXPECT_EQ(UnitOf(Lasting()), 5u);
}

TEST_F(ArenaLasting, WithoutAFreeUnitAnyHoleDoes) {
  Free(3);
  const uint32_t half = arena_.Allocate(kUnit / 2, 1, marks_);
  ASSERT_NE(half, kNoBlock);
  EXPECT_EQ(arena_.free_units(), 0u);
  EXPECT_EQ(UnitOf(Lasting()), 3u);
  EXPECT_EQ(Lasting(kUnit), kNoBlock) << "there is no such hole";
}

TEST_F(ArenaLasting, WhatAnotherStreamFreedIsNotTaken) {
  Free(6, 2);
  EXPECT_EQ(Lasting(), kNoBlock);
  Free(5, 1);
  const uint32_t id = Lasting();
  EXPECT_EQ(UnitOf(id), 5u);
  // The rest of each is still the stream's that freed it.
  EXPECT_EQ(UnitOf(arena_.Allocate(kSmall, 2, marks_)), 6u);
  EXPECT_EQ(arena_.Allocate(kSmall, 3, marks_), kNoBlock);
}

TEST_F(ArenaLasting, OfNoStreamOrLargerThanAUnitAreAllocatedAsOthers) {
  Free(2);
  Free(3);
  Free(7);
  EXPECT_EQ(UnitOf(Lasting(kUnit + 1)), 2u);
  arena_.CollectThrough(1, arena_.FreeSeq());
  EXPECT_EQ(UnitOf(Lasting(kSmall, kNoSlot)), 3u);
  EXPECT_EQ(Lasting(0), kNoBlock);
}

TEST_F(ArenaLasting, AUnitThatWasGivenBackIsNotLookedAt) {
  Free(7);
  const uint32_t id = Lasting();
  ASSERT_EQ(UnitOf(id), 7u);
  arena_.FreeSynced(id);
  arena_.CollectThrough(1, arena_.FreeSeq());
  UnitRelease release;
  const uint64_t queued[protocol::kStreamSlots] = {};
  ASSERT_EQ(arena_.TakeFreeUnits(1, 0, queued, marks_, &release), 1u);
  EXPECT_EQ(Lasting(), kNoBlock);
}

}  // namespace
}  // namespace sluice
