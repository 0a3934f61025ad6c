// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice {
namespace {

constexpr uint32_t kUnit = 256;  // granules

class ArenaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(arena_.Init(16, kUnit));
    ASSERT_TRUE(arena_.Grant({2, 4}));
  }
  void TearDown() override { arena_.FreeMemory(); }

  uint32_t At(uint32_t id) const { return id == kNoBlock ? ~0u : arena_.block(id).start; }
  uint32_t Alloc(uint32_t granules, uint32_t slot) {
    return arena_.Allocate(granules, slot, marks_);
  }
  UnitRelease Take(uint32_t units) {
    UnitRelease release;
    arena_.TakeFreeUnits(units, protocol::kMaxFenceTerms, queued_, marks_, &release);
    return release;
  }

  static constexpr uint32_t kBase = 2 * kUnit;
  Arena arena_;
  protocol::MarkPage marks_{};
  uint64_t queued_[protocol::kStreamSlots] = {};
};

TEST_F(ArenaTest, KindsAreSearchedInOrder) {
  // Four equal holes in use by live blocks, then one of each kind, at descending addresses.
  const uint32_t other = Alloc(100, 1);
  const uint32_t fence1 = Alloc(1, 1);
  const uint32_t synced = Alloc(100, 1);
  const uint32_t fence2 = Alloc(1, 1);
  const uint32_t same = Alloc(100, 1);
  const uint32_t fence3 = Alloc(1, 1);
  ASSERT_NE(fence1 + fence2 + fence3, 3 * kNoBlock);
  const uint32_t at_other = At(other);
  const uint32_t at_synced = At(synced);
  const uint32_t at_same = At(same);
  arena_.FreeOnStream(other, 2, 1);
  arena_.FreeSynced(synced);
  arena_.FreeOnStream(same, 1, 1);
  marks_.mark[2] = 1;
  EXPECT_EQ(At(Alloc(100, 1)), at_same) << "same-stream comes first";
  EXPECT_EQ(At(Alloc(100, 1)), at_synced) << "then synced";
  EXPECT_EQ(At(Alloc(100, 1)), kBase + 303) << "then unused";
  uint32_t last = 0;
  for (uint32_t id = Alloc(100, 1); id != kNoBlock; id = Alloc(100, 1)) last = At(id);
  EXPECT_EQ(last, at_other) << "another stream's comes last";
}

TEST_F(ArenaTest, TheTightestPlaceIsTakenWhereThatIsWanted) {
  const uint32_t large = Alloc(40, 1);
  ASSERT_NE(Alloc(1, 1), kNoBlock);
  const uint32_t tight = Alloc(12, 1);
  ASSERT_NE(Alloc(1, 1), kNoBlock);
  const uint32_t at_large = At(large);
  const uint32_t at_tight = At(tight);
  arena_.FreeOnStream(large, 1, 1);
  arena_.FreeOnStream(tight, 1, 1);
  const uint32_t first = Alloc(10, 1);
  EXPECT_EQ(At(first), at_large) << "the first one else";
  arena_.FreeOnStream(first, 1, 1);
  arena_.TakeTightest(true);
  EXPECT_EQ(At(Alloc(10, 1)), at_tight) << "though the large place is nearer to the end";
  EXPECT_EQ(At(Alloc(40, 1)), at_large) << "and it is whole for whom only it does";
}

TEST_F(ArenaTest, OfEqualPlacesTheLowestIsTaken) {
  std::vector<uint32_t> ids;
  for (int i = 0; i < 6; ++i) ids.push_back(Alloc(i % 2 == 0 ? 10 : 5, 1));
  const uint32_t first = At(ids[0]);
  const uint32_t third = At(ids[2]);
  arena_.FreeOnStream(ids[4], 1, 1);
  arena_.FreeOnStream(ids[2], 1, 1);
  arena_.FreeOnStream(ids[0], 1, 1);
  EXPECT_EQ(At(Alloc(4, 1)), first);
  EXPECT_EQ(At(Alloc(7, 1)), third) << "the rest of the first is too small";
  EXPECT_EQ(At(Alloc(6, 1)), first + 4) << "splitting leaves the high part";
}

TEST_F(ArenaTest, WhatWasFreedLastGoesToTheNextOfItsSize) {
  const uint32_t low = Alloc(kUnit / 16, 1);
  const uint32_t high = Alloc(kUnit / 16, 1);
  const uint32_t at_low = At(low);
  const uint32_t at_high = At(high);
  arena_.FreeForReuse(low, 1, 1);
  arena_.FreeForReuse(high, 1, 1);
  EXPECT_EQ(arena_.FindLive(at_high), kNoBlock);
  EXPECT_EQ(arena_.live_granules(), 0u);
  EXPECT_EQ(Alloc(kUnit / 16, 1), high) << "the block itself, not cut out of anything";
  EXPECT_EQ(arena_.FindLive(at_high), high);
  EXPECT_EQ(At(Alloc(kUnit / 16, 2)), kBase + kUnit / 8) << "only to the stream that freed it";
  EXPECT_EQ(At(Alloc(kUnit / 16, 1)), at_low);
}

TEST_F(ArenaTest, WhatIsNotSmallGoesToTheNearerUnit) {
  std::vector<uint32_t> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(Alloc(kUnit / 2, 1));
  const uint32_t nearer = At(ids[0]);
  arena_.FreeForReuse(ids[0], 1, 1);
  EXPECT_EQ(arena_.free_units(), 2u) << "has it merged";
  arena_.FreeForReuse(ids[3], 1, 1);
  EXPECT_EQ(At(Alloc(kUnit / 2, 1)), nearer);
}

TEST_F(ArenaTest, FreeBlocksThatAreOneWaitForTheLaterMark) {
  const uint32_t first = Alloc(100, 1);
  const uint32_t second = Alloc(100, 1);
  const uint32_t start = At(first);
  arena_.FreeOnStream(first, 1, 4);
  arena_.FreeOnStream(second, 1, 5);
  const Block& whole = arena_.block(arena_.FindContaining(start));
  EXPECT_EQ(whole.size, 200u);
  EXPECT_EQ(whole.mark, 5u);
  marks_.mark[1] = 4;
  EXPECT_EQ(arena_.CollectReached(marks_, kNoSlot), 0u);
  marks_.mark[1] = 5;
  EXPECT_EQ(arena_.CollectReached(marks_, kNoSlot), 1u);
}

TEST_F(ArenaTest, ABlockFreedOnAnotherStreamIsNotSetAside) {
  const uint32_t first = Alloc(10, 1);
  const uint32_t start = At(first);
  Alloc(10, 1);
  arena_.FreeForReuse(first, 2, 1);
  const uint32_t found = arena_.FindContaining(start);
  EXPECT_EQ(arena_.block(found).kind, BlockKind::kUnsynced);
}

TEST_F(ArenaTest, ManySmallBlocksAreSetAsideAndAFewThatAreNot) {
  constexpr uint32_t kSmall = kUnit / 16;
  for (const uint32_t size : {kSmall, kSmall + 1}) {
    std::vector<uint32_t> ids;
    for (int i = 0; i < 3; ++i) {
      ids.push_back(Alloc(size, 1));
      Alloc(1, 2);
    }
    for (const uint32_t id : ids) arena_.FreeForReuse(id, 1, 1);
    EXPECT_EQ(arena_.block(ids[1]).kind, BlockKind::kRecent);
    EXPECT_EQ(arena_.block(ids[2]).kind,
              size == kSmall ? BlockKind::kRecent : BlockKind::kUnsynced);
  }
}

TEST_F(ArenaTest, WhatIsSetAsideMakesRoomForAnotherSize) {
  // Three sizes of one place in the table.
  std::vector<uint32_t> sizes = {1};
  for (uint32_t size = 2; sizes.size() < 3; ++size) {
    RecentBlocks table;
    if (&table.Place(size, 1) == &table.Place(1, 1)) sizes.push_back(size);
  }
  std::vector<uint32_t> ids;
  for (const uint32_t size : sizes) {
    ids.push_back(Alloc(size, 1));
    Alloc(1, 2);
  }
  for (const uint32_t id : ids) arena_.FreeForReuse(id, 1, 1);
  EXPECT_EQ(arena_.block(ids[0]).kind, BlockKind::kUnsynced) << "it was set aside first";
  EXPECT_EQ(arena_.block(ids[1]).kind, BlockKind::kRecent);
  EXPECT_EQ(arena_.block(ids[2]).kind, BlockKind::kRecent);
}

TEST_F(ArenaTest, WhatIsMergedStaysInTheOrderOfItsMarks) {
  std::vector<uint32_t> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(Alloc(i % 2 == 0 ? 10 : 1, 1));
  arena_.FreeForReuse(ids[0], 1, 1);
  arena_.FreeForReuse(ids[2], 1, 2);
  ASSERT_TRUE(arena_.HasUnsynced(1)) << "has them merged";
  EXPECT_EQ(arena_.LatestMark(1), 2u);
  marks_.mark[1] = 1;
  EXPECT_EQ(arena_.CollectReached(marks_), 1u) << "the one that was freed first";
}

TEST_F(ArenaTest, WhatIsMergedLateWaitsForTheMarkOfWhatWasFreedBefore) {
  // Freed first and set aside; something large is freed and listed; then the first is merged. It
  // must not stand behind the large one with an earlier mark: the list is read up to the first that
  // is not reached.
  const uint32_t small = Alloc(10, 1);
  const uint32_t between = Alloc(1, 1);
  const uint32_t large = Alloc(kUnit, 1);
  ASSERT_NE(between, kNoBlock);
  arena_.FreeForReuse(small, 1, 1);
  arena_.FreeOnStream(large, 1, 2);
  ASSERT_TRUE(arena_.HasUnsynced(1));
  EXPECT_EQ(arena_.LatestMark(1), 2u);
  marks_.mark[1] = 1;
  EXPECT_EQ(arena_.CollectReached(marks_), 0u);
  marks_.mark[1] = 2;
  EXPECT_EQ(arena_.CollectReached(marks_), 2u);
  EXPECT_FALSE(arena_.HasUnsynced(1));
}

TEST(ArenaGrowthTest, TheBooksMayGrowWhileAFreeMergesWhatWasSetAsideBefore) {
  // More sizes than there are stacks, so that frees merge what is in their way, with as many blocks
  // as fill the books, one fewer each time: in some of these the room for one more is made there.
  constexpr uint32_t kSizes = 220;
  for (uint32_t others = 400; others < 600; ++others) {
    Arena arena;
    protocol::MarkPage marks{};
    ASSERT_TRUE(arena.Init(1, 1u << 20));
    ASSERT_TRUE(arena.Grant({0, 1}));
    for (uint32_t i = 0; i < others; ++i) ASSERT_NE(arena.Allocate(1, 1, marks), kNoBlock);
    std::vector<uint32_t> ids;
    for (uint32_t size = 1; size <= kSizes; ++size) {
      ids.push_back(arena.Allocate(size, 1, marks));
      ASSERT_NE(arena.Allocate(1, 1, marks), kNoBlock);
    }
    for (const uint32_t id : ids) arena.FreeForReuse(id, 1, 1);
    EXPECT_EQ(arena.live_granules(), others + kSizes);
    uint64_t freed = 0;
    ASSERT_TRUE(arena.HasUnsynced(1));
    arena.ForEach([&](uint32_t, const Block& block) {
      if (block.kind == BlockKind::kUnsynced) freed += block.size;
    });
    EXPECT_EQ(freed, kSizes * (kSizes + 1) / 2);
    arena.FreeMemory();
  }
}

TEST_F(ArenaTest, WhatAnotherStreamFreedIsTakenWhenTheGpuHasPassedIt) {
  Alloc(4 * kUnit - 100, 1);
  const uint32_t tail = Alloc(100, 1);
  const uint32_t start = At(tail);
  arena_.FreeOnStream(tail, 1, 1);
  EXPECT_EQ(Alloc(60, 2), kNoBlock) << "the mark is not reached";
  marks_.mark[1] = 1;
  const uint32_t taken = Alloc(60, 2);
  ASSERT_NE(taken, kNoBlock);
  EXPECT_EQ(At(taken), start);
  EXPECT_EQ(arena_.block(taken).size, 60u) << "the rest is left for others";
  EXPECT_EQ(At(Alloc(40, 3)), start + 60);
}

TEST_F(ArenaTest, WhatAStreamMayUseAnywayStaysOfOneKind) {
  const uint32_t first = Alloc(kUnit, 1);
  const uint32_t second = Alloc(kUnit, 2);
  arena_.FreeOnStream(first, 1, 1);
  arena_.FreeOnStream(second, 2, 1);
  marks_.mark[1] = marks_.mark[2] = 1;
  EXPECT_EQ(Alloc(8 * kUnit, 1), kNoBlock);
  EXPECT_EQ(arena_.block(arena_.FindContaining(kBase)).kind, BlockKind::kUnsynced);
  EXPECT_EQ(arena_.block(arena_.FindContaining(kBase + kUnit)).kind, BlockKind::kSynced);
}

TEST_F(ArenaTest, FreesOfSeveralStreamsTogetherHoldALargeBlock) {
  std::vector<uint32_t> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(Alloc(kUnit, 1));
  arena_.FreeOnStream(ids[1], 2, 1);
  arena_.FreeOnStream(ids[2], 3, 1);
  marks_.mark[2] = 1;
  EXPECT_EQ(Alloc(2 * kUnit, 1), kNoBlock) << "one of them is not reached";
  marks_.mark[3] = 1;
  EXPECT_EQ(At(Alloc(2 * kUnit, 1)), At(ids[0]) + kUnit);
}

// A program that allocates on one stream and frees on another must not end up with holes that only
// ever fit the block they were cut for.
TEST_F(ArenaTest, FreeingOnAnotherStreamDoesNotScatterTheSpace) {
  for (uint32_t round = 1; round <= 50; ++round) {
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < 8; ++i) {
      ids.push_back(Alloc(kUnit / 4 + (round * 7 + i * 5) % (kUnit / 8), 1));
      ASSERT_NE(ids.back(), kNoBlock) << "round " << round;
    }
    for (const uint32_t id : ids) arena_.FreeOnStream(id, 2, round);
    marks_.mark[2] = round;
  }
  EXPECT_NE(Alloc(4 * kUnit, 1), kNoBlock);
}

TEST_F(ArenaTest, PiecesOfSeveralKindsTogetherHoldALargeBlock) {
  const uint32_t a = Alloc(kUnit, 1);
  const uint32_t b = Alloc(kUnit, 1);
  arena_.FreeSynced(a);
  arena_.FreeOnStream(b, 1, 1);
  EXPECT_EQ(Alloc(4 * kUnit, 2), kNoBlock) << "a piece is another stream's";
  EXPECT_EQ(At(Alloc(4 * kUnit, 1)), kBase);
}

TEST_F(ArenaTest, OnlyWhollyFreeUnitsGoBackHighestFirst) {
  const uint32_t low = Alloc(kUnit / 2, 1);
  const uint32_t high = Alloc(kUnit, 1);  // covers half of units 2 and 3
  arena_.FreeOnStream(low, 1, 5);
  queued_[1] = 5;
  UnitRelease release = Take(1);
  ASSERT_EQ(release.units, 1u);
  EXPECT_EQ(release.extent[0].offset, 5u);
  release = Take(9);
  EXPECT_EQ(release.units, 1u);
  EXPECT_EQ(release.extent[0].offset, 4u);
  EXPECT_EQ(release.terms, 0u) << "never used";
  arena_.FreeOnStream(high, 1, 6);
  EXPECT_EQ(Take(9).units, 0u) << "mark 6 was not issued, so no fence can name it";
  queued_[1] = 6;
  release = Take(9);
  EXPECT_EQ(release.units, 2u);
  ASSERT_EQ(release.terms, 1u);
  EXPECT_EQ(release.fence[0].value, 6u);
  EXPECT_EQ(arena_.held_units(), 0u);
}

TEST_F(ArenaTest, AJobAtTheHighEndFillsDownwardsAndGivesBackTheLowest) {
  arena_.FillFromHighEnd(true);
  const uint32_t first = Alloc(kUnit, 1);
  const uint32_t second = Alloc(kUnit, 1);
  EXPECT_EQ(At(first), 5 * kUnit);
  EXPECT_EQ(At(second), 4 * kUnit);
  arena_.FreeSynced(first);
  EXPECT_EQ(At(Alloc(kUnit / 2, 1)), 5 * kUnit + kUnit / 2) << "the hole nearest its end";
  arena_.FreeSynced(second);
  const UnitRelease release = Take(2);
  ASSERT_EQ(release.extents, 1u);
  EXPECT_EQ(release.extent[0].offset, 2u);
  EXPECT_EQ(release.extent[0].length, 2u);
}

TEST_F(ArenaTest, AFenceHasAtMostEightTerms) {
  ASSERT_TRUE(arena_.Grant({6, 8}));
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 12; ++i) ids.push_back(Alloc(kUnit, 1));
  for (uint32_t i = 0; i < 12; ++i) {
    arena_.FreeOnStream(ids[i], 10 + i, 1);
    queued_[10 + i] = 1;
  }
  const UnitRelease release = Take(12);
  EXPECT_EQ(release.units, 8u);
  EXPECT_EQ(release.terms, 8u);
  for (uint32_t i = 0; i < 12; ++i) marks_.mark[10 + i] = 1;
  EXPECT_EQ(Take(12).units, 4u);
}

TEST_F(ArenaTest, FreesOnStreamsWithoutASlotNeedADrain) {
  const uint32_t id = Alloc(kUnit, kNoSlot);
  arena_.FreeOnStream(id, kNoSlot, 0);
  EXPECT_EQ(Take(9).units, 3u);
  EXPECT_EQ(Alloc(kUnit, 1), kNoBlock);
  EXPECT_EQ(arena_.CollectThrough(kNoSlot, arena_.FreeSeq()), 1u);
  EXPECT_NE(Alloc(kUnit, 1), kNoBlock);
}

TEST_F(ArenaTest, WhatIsLeasedIsNotLeasedAgain) {
  EXPECT_FALSE(arena_.Grant({5, 1}));
  EXPECT_FALSE(arena_.Grant({0, 3}));
  EXPECT_TRUE(arena_.Grant({0, 2}));
  EXPECT_EQ(At(Alloc(6 * kUnit, 1)), 0u) << "neighbouring leases are contiguous";
}

TEST_F(ArenaTest, AbandonFreesEverything) {
  Alloc(100, 1);
  arena_.FreeOnStream(Alloc(100, 1), 1, 1);
  arena_.FreeOnStream(Alloc(100, 1), kNoSlot, 0);
  arena_.Abandon();
  EXPECT_EQ(arena_.live_granules(), 0u);
  EXPECT_EQ(Take(9).units, 4u);
}

TEST_F(ArenaTest, TenThousandBlocksOfOneGranule) {
  ASSERT_TRUE(arena_.Grant({6, 10}));
  ASSERT_TRUE(arena_.Grant({0, 2}));
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 16 * kUnit; ++i) {
    ids.push_back(Alloc(1, 1));
    ASSERT_NE(ids.back(), kNoBlock);
  }
  EXPECT_EQ(Alloc(1, 1), kNoBlock);
  for (uint32_t i = 0; i < ids.size(); i += 2) arena_.FreeOnStream(ids[i], 1, 1);
  EXPECT_EQ(Alloc(2, 1), kNoBlock);
  for (uint32_t i = 1; i < ids.size(); i += 2) arena_.FreeOnStream(ids[i], 1, 1);
  EXPECT_EQ(At(Alloc(16 * kUnit, 1)), 0u);
}

// More units than a word of the map of free ones has bits, and scattered.
TEST_F(ArenaTest, FreeUnitsAreFoundInOrderFromEitherEnd) {
  const std::vector<uint32_t> held = {0, 1, 62, 63, 64, 127, 128, 191, 199};
  for (const bool high : {false, true}) {
    arena_.FreeMemory();
    ASSERT_TRUE(arena_.Init(200, kUnit));
    arena_.FillFromHighEnd(high);
    for (const uint32_t unit : held) ASSERT_TRUE(arena_.Grant({unit, 1}));
    std::vector<uint32_t> expected = held;
    if (high) std::reverse(expected.begin(), expected.end());
    // The last two stay free, and are given back farthest first.
    for (size_t i = 0; i + 2 < expected.size(); ++i) {
      EXPECT_EQ(At(arena_.AllocateUnit(marks_)), expected[i] * kUnit);
    }
    for (size_t i = expected.size(); i-- > expected.size() - 2;) {
      const UnitRelease release = Take(1);
      ASSERT_EQ(release.units, 1u);
      EXPECT_EQ(release.extent[0].offset, expected[i]);
    }
    EXPECT_EQ(Take(1).units, 0u);
    EXPECT_EQ(arena_.AllocateUnit(marks_), kNoBlock);
  }
}

/// A job that fills from either end of what it leases.
class LargeBlocks : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr uint32_t kUnits = 14;
  static constexpr uint32_t kLarge = 10 * kUnit + 100;  // no whole number of units

  void SetUp() override {
    ASSERT_TRUE(arena_.Init(kUnits, kUnit));
    ASSERT_TRUE(arena_.Grant({0, kUnits}));
    arena_.FillFromHighEnd(GetParam());
  }
  void TearDown() override { arena_.FreeMemory(); }

  uint32_t Alloc(uint32_t granules, uint32_t slot) {
    return arena_.Allocate(granules, slot, marks_);
  }

  Arena arena_;
  protocol::MarkPage marks_{};
};

// A program that keeps a little of what it makes beside a large block, and whose next large block
// is a little larger, must not need a second place for it.
TEST_P(LargeBlocks, WhatIsSmallDoesNotStandBehindThem) {
  Alloc(kUnit / 4, kNoSlot);
  uint32_t large = Alloc(kLarge, kNoSlot);
  for (uint32_t round = 1; round <= 8; ++round) {
    ASSERT_NE(Alloc(20, kNoSlot), kNoBlock);
    arena_.FreeSynced(large);
    large = Alloc(kLarge + round, kNoSlot);
    ASSERT_NE(large, kNoBlock) << "round " << round;
  }
}

TEST_P(LargeBlocks, AreCutFromWhatTheStreamFreedToo) {
  const uint32_t whole = Alloc(kUnits * kUnit - 30, 3);
  const uint32_t fence = Alloc(30, 3);
  ASSERT_NE(whole, kNoBlock);
  ASSERT_NE(fence, kNoBlock);
  arena_.FreeOnStream(whole, 3, 7);
  ASSERT_NE(Alloc(kLarge, 3), kNoBlock);
  EXPECT_EQ(Alloc(kUnit, 4), kNoBlock) << "the rest still waits for its mark";
  marks_.mark[3] = 7;
  EXPECT_NE(Alloc(2 * kUnit, 4), kNoBlock);
}

INSTANTIATE_TEST_SUITE_P(FromBothEnds, LargeBlocks, ::testing::Bool());

// A free block that was merged waits for its newest part; the units of its older parts do not.
TEST_F(ArenaTest, AUnitWaitsForWhatWasFreedInIt) {
  const uint32_t first = Alloc(2 * kUnit, 1);
  const uint32_t second = Alloc(2 * kUnit, 1);
  arena_.FreeOnStream(first, 1, 1);
  arena_.FreeOnStream(second, 1, 2);
  marks_.mark[1] = 1;
  UnitRelease release;
  EXPECT_EQ(arena_.TakeFreeUnits(4, 0, queued_, marks_, &release), 2u);
  ASSERT_EQ(release.extents, 1u);
  EXPECT_EQ(release.extent[0].offset, 2u);
  queued_[1] = 2;
  const UnitRelease fenced = Take(4);
  EXPECT_EQ(fenced.units, 2u);
  ASSERT_EQ(fenced.terms, 1u);
  EXPECT_EQ(fenced.fence[0].value, 2u);
}

// Only what was freed up to then is waited for, though it lies in the same list.
TEST_F(ArenaTest, WhatIsFreedAfterASynchronisationBeganIsNotCollectedByIt) {
  const uint32_t before = Alloc(100, 1);
  ASSERT_NE(Alloc(1, 1), kNoBlock);  // so that the two are not merged
  const uint32_t after = Alloc(100, 1);
  ASSERT_NE(Alloc(1, 1), kNoBlock);
  arena_.FreeOnStream(before, 1, 1);
  const uint64_t seq = arena_.FreeSeq();
  arena_.FreeOnStream(after, 1, 1);
  EXPECT_EQ(arena_.CollectThrough(1, seq), 1u);
  EXPECT_TRUE(arena_.HasUnsynced(1));
  EXPECT_EQ(arena_.CollectThrough(1, arena_.FreeSeq()), 1u);
  EXPECT_FALSE(arena_.HasUnsynced(1));
}

// Also where another stream freed in it before: of its own one a unit knows the last free.
TEST_F(ArenaTest, AUnitOfSeveralStreamsWaitsForWhatWasFreedInIt) {
  const uint32_t other = Alloc(kUnit / 2, 2);
  const uint32_t own = Alloc(kUnit / 2, 1);
  const uint32_t beside = Alloc(kUnit, 1);
  arena_.FreeOnStream(other, 2, 1);
  arena_.FreeOnStream(own, 1, 1);
  arena_.FreeOnStream(beside, 1, 2);  // one block with the one before
  marks_.mark[1] = marks_.mark[2] = 1;
  UnitRelease release;
  EXPECT_EQ(arena_.TakeFreeUnits(4, 0, queued_, marks_, &release), 3u);
  queued_[1] = 2;
  const UnitRelease fenced = Take(1);
  ASSERT_EQ(fenced.units, 1u);
  ASSERT_EQ(fenced.terms, 1u);
  EXPECT_EQ(fenced.fence[0].value, 2u) << "the second unit waits for its own";
}

// Two streams freed in one unit: it waits for both, whichever was the last.
TEST_F(ArenaTest, AUnitOfTwoStreamsWaitsForBoth) {
  const uint32_t first = Alloc(kUnit / 2, 1);
  const uint32_t second = Alloc(kUnit / 2, 2);
  arena_.FreeOnStream(first, 1, 7);
  arena_.FreeOnStream(second, 2, 1);
  marks_.mark[2] = 1;
  queued_[1] = queued_[2] = 7;
  UnitRelease release;
  EXPECT_EQ(arena_.TakeFreeUnits(4, 0, queued_, marks_, &release), 3u);
  const UnitRelease fenced = Take(1);
  ASSERT_EQ(fenced.terms, 1u);
  EXPECT_EQ(fenced.fence[0].slot, 1u);
  EXPECT_EQ(fenced.fence[0].value, 7u);
}

TEST_F(ArenaTest, ThePlaceOfTheNextLargeBlockIsNotGivenBack) {
  const uint32_t low = Alloc(2 * kUnit, 1);
  const uint32_t between = Alloc(kUnit / 2, 1);
  arena_.FreeOnStream(low, 1, 1);
  marks_.mark[1] = 1;
  ASSERT_NE(between, kNoBlock);
  const protocol::Extent place = arena_.PlaceFor(2 * kUnit, 1);
  EXPECT_EQ(place.offset, 2u);
  EXPECT_EQ(place.length, 2u);
  UnitRelease release;
  arena_.TakeFreeUnits(4, 0, queued_, marks_, &release, place);
  EXPECT_EQ(release.units, 1u) << "the one behind the live block";
  EXPECT_EQ(At(Alloc(2 * kUnit, 1)), kBase);
  EXPECT_EQ(arena_.PlaceFor(2 * kUnit, 1).length, 0u) << "there is none any more";
}

// A stream's own frees beside what was never used: together they have room.
TEST_F(ArenaTest, APlaceMaySpanSeveralKinds) {
  const uint32_t low = Alloc(kUnit, 1);
  arena_.FreeOnStream(low, 1, 1);
  const protocol::Extent place = arena_.PlaceFor(7 * kUnit / 2, 1);
  EXPECT_EQ(place.offset, 2u);
  EXPECT_EQ(place.length, 4u);
  EXPECT_EQ(arena_.PlaceFor(7 * kUnit / 2, 2).length, 0u) << "another stream has to wait";
}

}  // namespace
}  // namespace sluice
