// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "intercept/blocks/arena.h"

namespace sluice {
namespace {

constexpr uint32_t kUnit = 64;  // granules
constexpr uint32_t kPool = 16;
constexpr uint32_t kWindows = 32;

class ArenaWindows : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(arena_.Init(kPool, kUnit, kWindows));
    ASSERT_TRUE(arena_.Grant({0, 8}));
    for (uint32_t unit = 0; unit < 8; ++unit) ids_.push_back(arena_.Allocate(kUnit, 1, marks_));
  }
  void TearDown() override { arena_.FreeMemory(); }

  /// Units 1, 3, 5 and 7 are free on the stream.
  void FreeOdd() {
    for (uint32_t unit = 1; unit < 8; unit += 2) arena_.FreeOnStream(ids_[unit], 1, ++mark_);
  }
  uint32_t Stitch(uint32_t units, uint32_t slot, Arena::Window* window) {
    return StitchGranules(units * kUnit, slot, window);
  }
  uint32_t StitchGranules(uint32_t granules, uint32_t slot, Arena::Window* window) {
    if (!arena_.BeginWindow(granules, slot, mark_ + 1, window)) return kNoBlock;
    return arena_.FinishWindow(*window, granules, slot, mark_ + 1, marks_);
  }
  std::vector<uint32_t> Shown(const Arena::Window& window) {
    std::vector<uint32_t> units;
    for (uint32_t i = 0; i < window.units; ++i) units.push_back(arena_.Shown(window.start + i));
    std::sort(units.begin(), units.end());
    return units;
  }
  UnitRelease Release(uint32_t most) {
    UnitRelease release;
    arena_.TakeFreeUnits(most, protocol::kMaxFenceTerms, queued_, marks_, &release);
    return release;
  }

  Arena arena_;
  protocol::MarkPage marks_{};
  uint64_t queued_[protocol::kStreamSlots] = {};
  std::vector<uint32_t> ids_;
  uint64_t mark_ = 0;
};

TEST_F(ArenaWindows, UnitsThatLieApartBecomeOneBlock) {
  FreeOdd();
  EXPECT_EQ(arena_.Allocate(2 * kUnit, 1, marks_), kNoBlock);
  EXPECT_EQ(arena_.UsableUnits(1, marks_), 4u);
  Arena::Window window{};
  const uint32_t id = Stitch(4, 1, &window);
  ASSERT_NE(id, kNoBlock);
  EXPECT_FALSE(window.mapped);
  EXPECT_EQ(Shown(window), (std::vector<uint32_t>{1, 3, 5, 7}));
  EXPECT_EQ(arena_.block(id).start, window.start * kUnit);
  EXPECT_EQ(arena_.block(id).size, 4 * kUnit);
  EXPECT_GE(window.start, kPool);
  EXPECT_EQ(arena_.held_units(), 8u);
  EXPECT_EQ(arena_.free_units(), 0u);
  for (uint32_t unit = 0; unit < 8; ++unit) EXPECT_TRUE(arena_.Holds(unit)) << unit;
  EXPECT_FALSE(arena_.Grant({3, 1})) << "it is held, if elsewhere";
}

TEST_F(ArenaWindows, WhatAnotherStreamFreedIsNotUsedBeforeItsMark) {
  FreeOdd();
  EXPECT_EQ(arena_.UsableUnits(2, marks_), 0u);
  EXPECT_EQ(arena_.UsableUnits(kNoSlot, marks_), 0u);
  Arena::Window window{};
  EXPECT_FALSE(arena_.BeginWindow(2 * kUnit, 2, 1, &window));
  EXPECT_EQ(arena_.held_units(), 8u);
  marks_.mark[1] = 2;
  EXPECT_EQ(arena_.UsableUnits(2, marks_), 2u);
  EXPECT_NE(Stitch(2, 2, &window), kNoBlock);
  EXPECT_EQ(Shown(window), (std::vector<uint32_t>{1, 3}));
}

TEST_F(ArenaWindows, AreGivenBackUnderTheNumbersOfThePool) {
  FreeOdd();
  Arena::Window window{};
  const uint32_t id = Stitch(3, 1, &window);
  const std::vector<uint32_t> shown = Shown(window);
  EXPECT_EQ(Release(8).units, 0u) << "the one that is free was freed with a mark to come";
  arena_.FreeSynced(id);
  std::vector<uint32_t> given;
  const UnitRelease release = Release(8);
  for (uint32_t i = 0; i < release.extents; ++i) {
    for (uint32_t j = 0; j < release.extent[i].length; ++j)
      given.push_back(release.extent[i].offset + j);
  }
  std::sort(given.begin(), given.end());
  EXPECT_EQ(given, shown);
  for (const uint32_t unit : shown) EXPECT_FALSE(arena_.Holds(unit));
  // They come back to their own places.
  for (const uint32_t unit : shown) EXPECT_TRUE(arena_.Grant({unit, 1}));
}

TEST_F(ArenaWindows, OneThatShowsTheSameIsUsedAgain) {
  FreeOdd();
  Arena::Window first{};
  arena_.FreeSynced(Stitch(4, 1, &first));
  ASSERT_EQ(Release(8).units, 4u);
  for (uint32_t unit = 1; unit < 8; unit += 2) ASSERT_TRUE(arena_.Grant({unit, 1}));
  Arena::Window again{};
  ASSERT_NE(Stitch(4, 1, &again), kNoBlock);
  EXPECT_TRUE(again.mapped);
  EXPECT_EQ(again.start, first.start);
}

TEST_F(ArenaWindows, WhatDidNotComeAboutLeavesAllAsItWas) {
  FreeOdd();
  Arena::Window window{};
  ASSERT_TRUE(arena_.BeginWindow(4 * kUnit, 1, mark_ + 1, &window));
  EXPECT_EQ(arena_.held_units(), 8u) << "held, and in no place";
  EXPECT_EQ(arena_.free_units(), 0u);
  EXPECT_TRUE(arena_.Holds(3));
  EXPECT_TRUE(arena_.MovesFor(1)) << "or another stream is given the slot of those frees";
  EXPECT_FALSE(arena_.HasUnsynced(1));
  arena_.CancelWindow(window, 1, mark_ + 1);
  EXPECT_EQ(arena_.free_units(), 4u);
  EXPECT_EQ(arena_.UsableUnits(1, marks_), 4u);
  EXPECT_FALSE(arena_.MovesFor(1));
  EXPECT_EQ(arena_.UsableUnits(2, marks_), 0u) << "they wait for the mark that was said";
  arena_.NoteVacant();
  EXPECT_FALSE(arena_.TakeVacant(&window)) << "it was forgotten";
}

TEST_F(ArenaWindows, RoomIsMadeByForgettingThoseThatShowNothing) {
  FreeOdd();
  Arena::Window window{};
  // Each is given back and comes again in another order, so that none shows the same.
  uint32_t made = 0;
  for (; made < 100; ++made) {
    const uint32_t units = 2 + made % 3;
    const uint32_t id = Stitch(units, 1, &window);
    if (id == kNoBlock) break;
    arena_.FreeSynced(id);
    const UnitRelease release = Release(made % 2 == 0 ? 1 : 4);
    for (uint32_t i = 0; i < release.extents; ++i) ASSERT_TRUE(arena_.Grant(release.extent[i]));
  }
  ASSERT_LT(made, 100u) << "there was room for all";
  uint32_t vacant = 0;
  EXPECT_FALSE(arena_.TakeVacant(&window)) << "nobody looked which ones are";
  arena_.NoteVacant();
  while (arena_.TakeVacant(&window)) ++vacant;
  EXPECT_GT(vacant, 0u);
  EXPECT_NE(Stitch(4, 1, &window), kNoBlock);
}

TEST_F(ArenaWindows, ABlockTakesNoMoreOfItsWindowThanItNeeds) {
  FreeOdd();
  arena_.TakeTightest(true);
  Arena::Window window{};
  const uint32_t id = StitchGranules(kUnit + 24, 1, &window);
  ASSERT_NE(id, kNoBlock);
  EXPECT_EQ(window.units, 2u);
  EXPECT_EQ(arena_.block(id).size, kUnit + 24);
  EXPECT_EQ(arena_.free_units(), 2u);
  // What is left of it was freed on the stream, and waits for the mark to come.
  EXPECT_EQ(arena_.Allocate(kUnit - 24, 2, marks_), kNoBlock);
  const uint32_t rest = arena_.Allocate(kUnit - 24, 1, marks_);
  ASSERT_NE(rest, kNoBlock);
  EXPECT_EQ(arena_.free_units(), 2u) << "it took a unit by itself";
}

/// Where the job fills from the low end the second begins in the unit of the first, else it ends
/// there.
TEST_F(ArenaWindows, TwoOfOneAndAHalfAreInThree) {
  FreeOdd();
  for (const bool high_end : {false, true}) {
    arena_.FillFromHighEnd(high_end);
    Arena::Window first{};
    Arena::Window second{};
    const uint32_t one = StitchGranules(kUnit + kUnit / 2, 1, &first);
    ASSERT_NE(one, kNoBlock);
    EXPECT_EQ(arena_.UnitsToStitch(kUnit + kUnit / 2, 1), 1u);
    EXPECT_EQ(arena_.UnitsToStitch(kUnit + kUnit / 2, 2), 2u) << "that is not its own yet";
    EXPECT_EQ(arena_.UnitsToStitch(2 * kUnit, 1), 2u);
    const uint32_t other = StitchGranules(kUnit + kUnit / 2, 1, &second);
    ASSERT_NE(other, kNoBlock);
    EXPECT_EQ(second.units, 1u);
    EXPECT_EQ(arena_.free_units(), 1u);
    const Block& low = arena_.block(high_end ? other : one);
    const Block& high = arena_.block(high_end ? one : other);
    EXPECT_EQ(low.end(), high.start);
    arena_.FreeOnStream(one, 1, mark_);
    arena_.FreeOnStream(other, 1, mark_);
    EXPECT_EQ(arena_.free_units(), 4u);
  }
}

/// Begun in what is left of the first, a block of two units would touch three, and these would not
/// be free together when the first goes.
TEST_F(ArenaWindows, WholeUnitsStayWhole) {
  FreeOdd();
  for (const bool high_end : {false, true}) {
    arena_.FillFromHighEnd(high_end);
    Arena::Window window{};
    const uint32_t first = StitchGranules(kUnit + kUnit / 2, 1, &window);
    const uint32_t whole = Stitch(2, 1, &window);
    ASSERT_NE(whole, kNoBlock);
    EXPECT_EQ(arena_.block(whole).start % kUnit, 0u);
    arena_.FreeOnStream(first, 1, mark_);
    EXPECT_EQ(arena_.free_units(), 2u);
    arena_.FreeOnStream(whole, 1, mark_);
  }
}

/// The job fills from the low end now, but what it left at the other side of a gap does as well.
TEST_F(ArenaWindows, BesideMayBeEitherSide) {
  FreeOdd();
  Arena::Window low{};
  Arena::Window high{};
  const uint32_t first = Stitch(2, 1, &low);
  arena_.FillFromHighEnd(true);
  ASSERT_NE(StitchGranules(kUnit + kUnit / 2, 1, &high), kNoBlock);
  ASSERT_GT(high.start, low.start);
  arena_.FillFromHighEnd(false);
  arena_.FreeOnStream(first, 1, mark_);
  EXPECT_EQ(arena_.UnitsToStitch(2 * kUnit + kUnit / 4, 1), 2u);
}

TEST_F(ArenaWindows, WhatIsFreeBesideOneMayBeGoneWhenItIsMapped) {
  FreeOdd();
  arena_.TakeTightest(true);
  Arena::Window window{};
  ASSERT_NE(StitchGranules(kUnit + kUnit / 2, 1, &window), kNoBlock);
  ASSERT_TRUE(arena_.BeginWindow(kUnit + kUnit / 2, 1, mark_ + 1, &window));
  EXPECT_EQ(window.units, 1u);
  const uint32_t faster = arena_.Allocate(kUnit / 2, 1, marks_);
  ASSERT_NE(faster, kNoBlock);
  EXPECT_EQ(arena_.FinishWindow(window, kUnit + kUnit / 2, 1, mark_ + 1, marks_), kNoBlock);
  EXPECT_EQ(arena_.held_units(), 8u);
  EXPECT_EQ(arena_.free_units(), 2u) << "it is there, for the next attempt";
  EXPECT_EQ(arena_.UnitsToStitch(kUnit + kUnit / 2, 1), 2u);
  EXPECT_NE(StitchGranules(kUnit + kUnit / 2, 1, &window), kNoBlock);
}

/// One unit would do beside the first, but the second is in the way there.
TEST_F(ArenaWindows, OneThatIsMappedIsUsedWhereNoneOfFewerUnitsHasRoom) {
  FreeOdd();
  Arena::Window first{};
  Arena::Window second{};
  const uint32_t one = Stitch(2, 1, &first);
  const uint32_t other = Stitch(2, 1, &second);
  ASSERT_EQ(second.start, first.start + 2);
  for (const uint32_t id : {one, other}) arena_.FreeSynced(id);
  ASSERT_EQ(Release(8).units, 4u);
  for (uint32_t unit = 1; unit < 8; unit += 2) ASSERT_TRUE(arena_.Grant({unit, 1}));
  Arena::Window window{};
  ASSERT_NE(StitchGranules(kUnit + kUnit / 2, 1, &window), kNoBlock);
  ASSERT_EQ(window.start, first.start);
  ASSERT_NE(StitchGranules(kUnit + kUnit / 2, 1, &window), kNoBlock);
  EXPECT_EQ(window.start, second.start);
  EXPECT_TRUE(window.mapped);
}

TEST(ArenaManyWindows, AreNoMoreThanTheirTableHolds) {
  constexpr uint32_t kMost = 4096;
  Arena arena;
  const protocol::MarkPage marks{};
  ASSERT_TRUE(arena.Init(4 * kMost + 8, 4, 4 * kMost));
  ASSERT_TRUE(arena.Grant({0, 4 * kMost + 8}));
  std::vector<uint32_t> ids;
  for (uint32_t unit = 0; unit < 4 * kMost + 8; ++unit) ids.push_back(arena.Allocate(4, 1, marks));
  for (uint32_t unit = 1; unit < ids.size(); unit += 2) arena.FreeSynced(ids[unit]);
  Arena::Window window{};
  for (uint32_t made = 0; made < kMost; ++made) {
    ASSERT_TRUE(arena.BeginWindow(8, 1, 1, &window)) << made;
    ASSERT_NE(arena.FinishWindow(window, 8, 1, 1, marks), kNoBlock) << made;
  }
  EXPECT_EQ(arena.free_units(), 4u);
  EXPECT_FALSE(arena.BeginWindow(8, 1, 1, &window)) << "there are units, and addresses";
  EXPECT_EQ(arena.free_units(), 4u);
  arena.FreeMemory();
}

}  // namespace
}  // namespace sluice
