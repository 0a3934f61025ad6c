// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "intercept/blocks/arena.h"

// Random operations with windows, against a model of the pool's memory itself, which does not know
// where it is shown: who may use each granule, wherever a block says that it lies.

namespace sluice {
namespace {

constexpr uint32_t kUnits = 24;
constexpr uint32_t kUnitGranules = 16;
constexpr uint32_t kWindows = 48;
constexpr uint32_t kSlots = 3;

struct Granule {
  bool held = false;
  bool live = false;
  uint32_t slot = kNoSlot;  // whose mark it waits for; kNoSlot: none
  uint64_t mark = 0;
};

class ArenaWindowsProperty : public ::testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override { ASSERT_TRUE(arena_.Init(kUnits, kUnitGranules, kWindows)); }
  void TearDown() override { arena_.FreeMemory(); }

  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  uint64_t NextMark(uint32_t slot) const { return slot < kNoSlot ? issued_[slot] + 1 : 0; }

  bool Reached(const Granule& granule) const {
    return granule.slot == kNoSlot ||
           protocol::MarkReached(marks_.mark[granule.slot].load(), granule.mark);
  }

  /// Where a granule of the arena's addresses is in the pool.
  Granule& At(uint32_t granule) {
    const uint32_t unit = granule / kUnitGranules;
    const uint32_t pooled = unit < kUnits ? unit : arena_.Shown(unit);
    return pool_[pooled * kUnitGranules + granule % kUnitGranules];
  }

  void Take(uint32_t id, uint32_t granules, uint32_t slot) {
    const Block block = arena_.block(id);
    ASSERT_EQ(block.size, granules);
    ASSERT_EQ(arena_.FindLive(block.start), id);
    for (uint32_t g = block.start; g < block.end(); ++g) {
      Granule& granule = At(g);
      ASSERT_TRUE(granule.held) << "not the job's";
      ASSERT_FALSE(granule.live) << "shown twice, and given twice";
      const bool own = slot < kNoSlot && granule.slot == slot;
      ASSERT_TRUE(own || Reached(granule)) << "the GPU may not be done with it";
      granule.live = true;
    }
    live_[id] = block;
  }

  void Free(uint32_t id, uint32_t slot) {
    const Block block = live_[id];
    live_.erase(id);
    if (slot < kNoSlot) {
      arena_.FreeOnStream(id, slot, NextMark(slot));
    } else {
      arena_.FreeSynced(id);
    }
    for (uint32_t g = block.start; g < block.end(); ++g)
      At(g) = {true, false, slot, NextMark(slot)};
  }

  void Allocate(uint32_t granules, uint32_t slot) {
    const uint32_t id = arena_.Allocate(granules, slot, marks_);
    if (id != kNoBlock) Take(id, granules, slot);
  }

  /// As a client does it, but for what it asks of the driver and the daemon.
  void Stitch(uint32_t granules, uint32_t slot) {
    const uint32_t usable = arena_.UsableUnits(slot, marks_);
    const uint32_t units = arena_.UnitsToStitch(granules, slot);
    ASSERT_GT(units, 0u);
    ASSERT_LE(units, (granules + kUnitGranules - 1) / kUnitGranules);
    const uint32_t held = arena_.held_units();
    Arena::Window window{};
    if (usable < units || !arena_.BeginWindow(granules, slot, NextMark(slot), &window)) {
      arena_.NoteVacant();
      while (arena_.TakeVacant(&window)) continue;
      return;
    }
    ASSERT_EQ(window.units, units);
    ASSERT_EQ(arena_.held_units(), held);
    ASSERT_EQ(arena_.MovesFor(slot), true);
    for (uint32_t u = 0; u < units; ++u) {
      for (uint32_t g = 0; g < kUnitGranules; ++g) {
        Granule& granule = At((window.start + u) * kUnitGranules + g);
        ASSERT_TRUE(granule.held && !granule.live) << "moved from under a block";
        ASSERT_TRUE((slot < kNoSlot && granule.slot == slot) || Reached(granule));
        granule.slot = slot;
        granule.mark = NextMark(slot);
      }
    }
    // Meanwhile others allocate and free, and the driver may refuse.
    const bool others = Below(4) == 0;
    if (others) Allocate(1 + Below(kUnitGranules), Below(2) == 0 ? slot : Below(kSlots));
    if (Below(4) == 0 && !live_.empty()) Free(live_.begin()->first, Below(kSlots));
    if (Below(8) == 0) return arena_.CancelWindow(window, slot, NextMark(slot));
    const uint32_t id = arena_.FinishWindow(window, granules, slot, NextMark(slot), marks_);
    ASSERT_EQ(arena_.held_units(), held);
    ASSERT_FALSE(arena_.MovesFor(slot));
    if (id == kNoBlock) {
      ASSERT_TRUE(others) << "nobody took what was free beside it";
      return;
    }
    ++stitched_;
    if (units * kUnitGranules < granules) ++beside_;
    Take(id, granules, slot);
  }

  void Release() {
    UnitRelease release;
    arena_.TakeFreeUnits(1 + Below(6), 0, issued_, marks_, &release);
    for (uint32_t i = 0; i < release.extents; ++i) {
      const protocol::Extent extent = release.extent[i];
      for (uint32_t g = extent.offset * kUnitGranules;
           g < (extent.offset + extent.length) * kUnitGranules; ++g) {
        ASSERT_TRUE(pool_[g].held && !pool_[g].live && Reached(pool_[g])) << "granule " << g;
        pool_[g] = {};
      }
    }
  }

  void Grant() {
    const uint32_t unit = Below(kUnits);
    Granule* const first = &pool_[unit * kUnitGranules];
    ASSERT_EQ(arena_.Grant({unit, 1}), !first->held);
    if (first->held) return;
    for (uint32_t g = 0; g < kUnitGranules; ++g) first[g] = {.held = true};
  }

  void Check() {
    uint64_t live = 0;
    uint32_t held = 0;
    for (uint32_t g = 0; g < kUnits * kUnitGranules; ++g) live += pool_[g].live ? 1u : 0u;
    for (uint32_t unit = 0; unit < kUnits; ++unit) {
      ASSERT_EQ(arena_.Holds(unit), pool_[unit * kUnitGranules].held) << unit;
      held += pool_[unit * kUnitGranules].held ? 1u : 0u;
    }
    ASSERT_EQ(arena_.live_granules(), live);
    ASSERT_EQ(arena_.held_units(), held);
  }

  Arena arena_;
  protocol::MarkPage marks_{};
  uint64_t issued_[protocol::kStreamSlots] = {};
  std::vector<Granule> pool_{kUnits * kUnitGranules};
  std::map<uint32_t, Block> live_;
  std::mt19937 random_{GetParam()};
  uint32_t stitched_ = 0;
  uint32_t beside_ = 0;
};

TEST_P(ArenaWindowsProperty, NoMemoryIsGivenTwiceOrBeforeItsTime) {
  arena_.FillFromHighEnd(GetParam() % 2 == 0);
  for (int step = 0; step < 4000; ++step) {
    const uint32_t slot = Below(kSlots + 1) == 0 ? kNoSlot : Below(kSlots);
    if (Below(16) == 0) arena_.TakeTightest(Below(2) == 0);
    if (Below(200) == 0) arena_.FillFromHighEnd(Below(2) == 0);
    switch (Below(8)) {
      case 0:
      case 1:
        Grant();
        break;
      case 2:
        Allocate(1 + Below(2 * kUnitGranules), slot);
        break;
      case 3: {
        const uint32_t granules = kUnitGranules + 1 + Below(3 * kUnitGranules);
        const uint32_t id = arena_.Allocate(granules, slot, marks_);
        if (id != kNoBlock) {
          Take(id, granules, slot);
        } else {
          Stitch(granules, slot);
        }
        break;
      }
      case 4:
        if (Below(2) == 0) Release();
        break;
      case 5: {
        const uint32_t of = Below(kSlots);
        if (Below(3) > 0) ++issued_[of];
        if (Below(3) > 0) marks_.mark[of] = issued_[of];
        break;
      }
      default:
        if (live_.empty()) break;
        Free(std::next(live_.begin(), Below(static_cast<uint32_t>(live_.size())))->first, slot);
    }
    ASSERT_NO_FATAL_FAILURE(Check()) << "step " << step;
    if (HasFatalFailure()) FAIL() << "step " << step;
  }
  EXPECT_GT(stitched_, 50u);
  EXPECT_GT(beside_, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ArenaWindowsProperty, ::testing::Range(0u, 40u));

}  // namespace
}  // namespace sluice
