// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "intercept/blocks/arena.h"

// Random operations against a model that knows, granule by granule, who may use what.

namespace sluice {
namespace {

constexpr uint32_t kUnits = 24;
constexpr uint32_t kUnitGranules = 64;
constexpr uint32_t kGranules = kUnits * kUnitGranules;
constexpr uint32_t kSlots = 4;

enum class State { kAbsent, kUnused, kLive, kUnsynced, kSynced };

struct Granule {
  State state = State::kAbsent;
  uint32_t slot = 0;
  uint64_t mark = 0;
  uint32_t owner = 0;
};

class ArenaProperty : public ::testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override { ASSERT_TRUE(arena_.Init(kUnits, kUnitGranules)); }
  void TearDown() override { arena_.FreeMemory(); }

  bool UsableBy(const Granule& granule, uint32_t slot) const {
    switch (granule.state) {
      case State::kUnused:
      case State::kSynced:
        return true;
      case State::kUnsynced:
        return granule.slot == slot ||
               (granule.slot < kNoSlot &&
                protocol::MarkReached(marks_.mark[granule.slot].load(), granule.mark));
      default:
        return false;
    }
  }

  void Allocate(uint32_t granules, uint32_t slot, bool lasting) {
    const uint32_t id = lasting ? arena_.AllocateLasting(granules, slot, marks_)
                                : arena_.Allocate(granules, slot, marks_);
    if (id == kNoBlock) {
      // Nothing that this stream may use outright was overlooked. What another stream freed may be
      // part of a larger free block that waits for a later mark.
      uint32_t run = 0;
      for (const Granule& granule : model_) {
        const bool own = granule.state == State::kUnsynced && granule.slot == slot;
        const bool plain = granule.state == State::kUnused || granule.state == State::kSynced;
        run = plain || (own && slot < kNoSlot) ? run + 1 : 0;
        ASSERT_LT(run, granules) << "free space was not found";
      }
      return;
    }
    const Block block = arena_.block(id);
    ASSERT_GE(block.size, granules);
    ASSERT_LE(block.end(), kGranules);
    ASSERT_EQ(arena_.FindLive(block.start), id);
    for (uint32_t g = block.start; g < block.end(); ++g) {
      ASSERT_TRUE(UsableBy(model_[g], slot))
          << "granule " << g << " state " << static_cast<int>(model_[g].state) << " slot "
          << model_[g].slot << " for " << slot;
      model_[g] = {State::kLive, 0, 0, id};
    }
    live_[id] = block;
  }

  void AllocateUnit() {
    const uint32_t id = arena_.AllocateUnit(marks_);
    if (id == kNoBlock) {
      for (uint32_t unit = 0; unit < kUnits; ++unit) {
        const auto from = model_.begin() + unit * kUnitGranules;
        ASSERT_FALSE(std::all_of(from, from + kUnitGranules,
                                 [](const Granule& granule) {
                                   return granule.state == State::kUnused ||
                                          granule.state == State::kSynced;
                                 }))
            << "unit " << unit << " was not found";
      }
      return;
    }
    const Block block = arena_.block(id);
    ASSERT_EQ(block.start % kUnitGranules, 0u);
    ASSERT_EQ(block.size, kUnitGranules);
    ASSERT_EQ(arena_.FindLive(block.start), id);
    for (uint32_t g = block.start; g < block.end(); ++g) {
      ASSERT_TRUE(UsableBy(model_[g], kNoSlot)) << "granule " << g;
      model_[g] = {State::kLive, 0, 0, id};
    }
    live_[id] = block;
  }

  void Free(uint32_t id, uint32_t slot, bool synced, bool for_reuse) {
    const Block block = live_[id];
    live_.erase(id);
    if (synced) {
      arena_.FreeSynced(id);
    } else if (for_reuse) {
      arena_.FreeForReuse(id, slot, slot < kNoSlot ? issued_[slot] + 1 : 0);
    } else {
      arena_.FreeOnStream(id, slot, slot < kNoSlot ? issued_[slot] + 1 : 0);
    }
    for (uint32_t g = block.start; g < block.end(); ++g) {
      model_[g] = {synced ? State::kSynced : State::kUnsynced, slot,
                   slot < kNoSlot ? issued_[slot] + 1 : 0, 0};
    }
  }

  void Release(uint32_t max_units) {
    UnitRelease release;
    const uint32_t before = arena_.held_units();
    const uint32_t units = arena_.TakeFreeUnits(
        max_units, max_units % 3 == 0 ? 0 : protocol::kMaxFenceTerms, issued_, marks_, &release);
    ASSERT_LE(units, max_units);
    ASSERT_EQ(arena_.held_units(), before - units);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < release.extents; ++i) {
      sum += release.extent[i].length;
      for (uint32_t u = 0; u < release.extent[i].length; ++u) {
        const uint32_t from = (release.extent[i].offset + u) * kUnitGranules;
        for (uint32_t g = from; g < from + kUnitGranules; ++g) {
          Granule& granule = model_[g];
          ASSERT_NE(granule.state, State::kAbsent);
          ASSERT_NE(granule.state, State::kLive);
          if (granule.state == State::kUnsynced &&
              !protocol::MarkReached(marks_.mark[granule.slot].load(), granule.mark)) {
            bool covered = false;
            for (uint32_t t = 0; t < release.terms; ++t) {
              covered |= release.fence[t].slot == granule.slot &&
                         protocol::MarkReached(release.fence[t].value, granule.mark);
            }
            ASSERT_TRUE(covered) << "released without a fence";
          }
          granule = {};
        }
      }
    }
    ASSERT_EQ(sum, units);
    for (uint32_t t = 0; t < release.terms; ++t) {
      ASSERT_TRUE(protocol::MarkReached(issued_[release.fence[t].slot], release.fence[t].value))
          << "a fence on a mark that was never issued";
    }
  }

  // The tiling is exact, neighbours that could be merged are, and all counters agree. To count the
  // free units has what was set aside merged, so that is done now and then only.
  void Check(bool count_free_units) {
    std::vector<bool> tiled(kGranules, false);
    Block last{};
    bool have_last = false;
    arena_.ForEach([&](uint32_t id, const Block& block) {
      for (uint32_t g = block.start; g < block.end(); ++g) {
        ASSERT_FALSE(tiled[g]) << "overlap";
        tiled[g] = true;
        const Granule& granule = model_[g];
        switch (block.kind) {
          case BlockKind::kLive:
            ASSERT_EQ(granule.state, State::kLive);
            ASSERT_EQ(granule.owner, id);
            break;
          case BlockKind::kUnsynced:
          case BlockKind::kRecent:
            ASSERT_EQ(granule.state, State::kUnsynced);
            ASSERT_EQ(granule.slot, block.slot);
            ASSERT_TRUE(protocol::MarkReached(block.mark, granule.mark)) << "covered too early";
            break;
          case BlockKind::kUnused:
            ASSERT_EQ(granule.state, State::kUnused);
            break;
          case BlockKind::kSynced:
            // Collecting changes the arena's view alone: allowed exactly when the mark is reached.
            if (granule.state == State::kUnsynced) {
              ASSERT_TRUE(protocol::MarkReached(marks_.mark[granule.slot].load(), granule.mark));
            } else {
              ASSERT_EQ(granule.state, State::kSynced);
            }
            break;
          case BlockKind::kVacant:
            FAIL();
        }
      }
      if (have_last && last.end() == block.start) {
        const bool same = last.kind == block.kind && last.kind != BlockKind::kLive &&
                          last.kind != BlockKind::kRecent &&
                          (last.kind != BlockKind::kUnsynced || last.slot == block.slot);
        ASSERT_FALSE(same) << "two neighbours were not merged";
        ASSERT_EQ(block.prev == kNoBlock, false);
      }
      last = block;
      have_last = true;
    });
    uint32_t held = 0;
    uint32_t free_units = 0;
    uint64_t live = 0;
    for (uint32_t u = 0; u < kUnits; ++u) {
      const auto from = model_.begin() + u * kUnitGranules;
      const auto to = from + kUnitGranules;
      const auto here =
          std::count_if(from, to, [](const Granule& g) { return g.state != State::kAbsent; });
      ASSERT_TRUE(here == 0 || here == kUnitGranules);
      held += here != 0;
      const auto busy =
          std::count_if(from, to, [](const Granule& g) { return g.state == State::kLive; });
      live += static_cast<uint64_t>(busy);
      free_units += here != 0 && busy == 0;
    }
    for (uint32_t g = 0; g < kGranules; ++g) {
      ASSERT_EQ(tiled[g], model_[g].state != State::kAbsent) << "granule " << g;
    }
    ASSERT_EQ(arena_.held_units(), held);
    if (count_free_units) {
      ASSERT_EQ(arena_.free_units(), free_units);
    }
    ASSERT_EQ(arena_.live_granules(), live);
  }

  Arena arena_;
  protocol::MarkPage marks_{};
  uint64_t issued_[protocol::kStreamSlots] = {};
  std::vector<Granule> model_{kGranules};
  std::map<uint32_t, Block> live_;
};

TEST_P(ArenaProperty, MatchesTheModel) {
  std::mt19937 random(GetParam());
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  // A third of the runs start close to the wrap of the counters' sign.
  if (GetParam() % 3 == 0) {
    for (uint32_t s = 0; s < kSlots; ++s) {
      issued_[s] = 0x7ffffffffffffff0u;
      marks_.mark[s] = issued_[s];
    }
  }
  for (int step = 0; step < 3000; ++step) {
    const uint32_t slot = below(kSlots + 1) == 0 ? kNoSlot : below(kSlots);
    if (below(16) == 0) arena_.FillFromHighEnd(below(2) == 0);
    if (below(16) == 0) arena_.TakeTightest(below(2) == 0);
    if (below(64) == 0) arena_.CloseUnits();
    switch (below(11)) {
      case 10:
        AllocateUnit();
        break;
      case 0: {
        const protocol::Extent extent{below(kUnits), 1 + below(4)};
        bool possible = extent.offset + extent.length <= kUnits;
        for (uint32_t u = extent.offset; possible && u < extent.offset + extent.length; ++u) {
          possible = model_[u * kUnitGranules].state == State::kAbsent;
        }
        if (extent.offset + extent.length > kUnits) break;
        ASSERT_EQ(arena_.Grant(extent), possible);
        for (uint32_t g = 0; possible && g < extent.length * kUnitGranules; ++g) {
          model_[extent.offset * kUnitGranules + g].state = State::kUnused;
        }
        break;
      }
      case 1:
      case 2:
      case 3:
      case 4:
        // From 8 units on a block is large; few are so that the rest finds room.
        Allocate(1 + (below(30) == 0  ? below(12 * kUnitGranules)
                      : below(4) == 0 ? below(200)
                                      : below(24)),
                 slot, below(4) == 0);
        break;
      case 5:
      case 6:
      case 7:
        if (!live_.empty()) {
          auto it = live_.begin();
          std::advance(it, below(static_cast<uint32_t>(live_.size())));
          const uint32_t own = it->second.slot;
          Free(it->first, below(2) == 0 ? own : slot, below(5) == 0, below(2) == 0);
        }
        break;
      case 8: {
        const uint32_t s = below(kSlots);
        if (below(2) == 0) {
          ++issued_[s];
        } else if (marks_.mark[s] != issued_[s]) {
          marks_.mark[s] = marks_.mark[s] + 1;
        }
        break;
      }
      default:
        if (below(4) == 0) {
          arena_.CollectReached(marks_);
        } else if (below(4) == 0) {
          // A full drain: everything freed so far is done, streams without a slot included.
          for (uint32_t s = 0; s < kSlots; ++s) marks_.mark[s] = ++issued_[s];
          for (uint32_t s = 0; s <= kNoSlot; ++s) arena_.CollectThrough(s, arena_.FreeSeq());
          for (Granule& g : model_) {
            if (g.state == State::kUnsynced) g.state = State::kSynced;
          }
        } else {
          Release(1 + below(kUnits));
        }
    }
    if (HasFatalFailure()) FAIL() << "step " << step;
    Check(below(16) == 0);
    if (HasFatalFailure()) FAIL() << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ArenaProperty, ::testing::Range(0u, 24u));

}  // namespace
}  // namespace sluice
