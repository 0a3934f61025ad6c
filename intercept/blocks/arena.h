// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/blocks/address_map.h"
#include "intercept/blocks/block.h"
#include "intercept/blocks/free_index.h"
#include "intercept/blocks/recent_blocks.h"
#include "intercept/protocol/pages.h"
#include "intercept/protocol/wire.h"

namespace sluice {

/// Wholly free units chosen for a release, with the fence that covers them.
struct UnitRelease {
  uint32_t units;
  uint32_t terms;
  uint32_t extents;
  protocol::FenceTerm fence[protocol::kMaxFenceTerms];
  protocol::Extent extent[protocol::kMaxExtentsPerFrame];
};

/// Blocks inside leased units. Knows nothing of CUDA, sockets or threads: the caller holds a lock,
/// names streams by slot, and says which mark will cover a free. Addresses and sizes are in
/// granules, address 0 is the start of the pool.
class Arena {
 public:
  constexpr Arena() = default;

  /// The pool has `units` of `unit_granules` (a power of two) each; nothing is leased yet. Behind
  /// them is room for `windows` more, in which units can be shown side by side.
  bool Init(uint32_t units, uint32_t unit_granules, uint32_t windows = 0);
  void FreeMemory();

  /// The extent is leased from now on. False: host out of memory, or already (partly) leased.
  bool Grant(const protocol::Extent& extent);

  /// Which end of the pool the job fills from: live blocks gather there, and the units at the other
  /// end of what it holds become free as a whole. May change between allocations.
  void FillFromHighEnd(bool high_end) { high_end_ = high_end; }

  /// Which of the free places with room a block gets: the first from the job's end, or the tightest
  /// of those nearest to it (docs/adr/0035). A job that leases anew in each iteration holds less
  /// with the latter. In one that keeps what it holds, the former gathers what lives where the
  /// latter would scatter it from one iteration to the next. May change between allocations.
  void TakeTightest(bool tightest) { tightest_ = tightest; }

  /// A live block, or kNoBlock. `slot` kNoSlot: for any stream at once (cuMemAlloc). Search order:
  /// same-stream, synced, unused (in each the first or the tightest place: TakeTightest), what
  /// other streams freed and the GPU has passed (synced from then on), then a run of adjacent
  /// usable blocks.
  uint32_t Allocate(uint32_t granules, uint32_t slot, const protocol::MarkPage& marks);

  /// One unit by itself, from its bound, for any stream at once: the wholly free one nearest the
  /// job's end. A live block, or kNoBlock.
  uint32_t AllocateUnit(const protocol::MarkPage& marks);

  /// For a block that is expected to live at the next trough: in a unit that holds others of this
  /// iteration's, else in a wholly free one, else as Allocate. Of slots only, and not for more than
  /// a unit.
  uint32_t AllocateLasting(uint32_t granules, uint32_t slot, const protocol::MarkPage& marks);
  /// An iteration begins: what lasted of the one before is freed soon, and others lie there then.
  void CloseUnits() { open_units_ = 0; }

  // arena_windows.cc: one block of units that lie apart (docs/adr/0031)

  /// Wholly free units that this stream may use as they are.
  uint32_t UsableUnits(uint32_t slot, const protocol::MarkPage& marks);
  struct Window {
    uint32_t start;  // a unit behind the pool's
    uint32_t units;
    bool mapped;  // it shows the very units that it showed before
    bool vacant;  // when NoteVacant looked
  };
  /// How many units a window for this block, of more than a unit, takes: it may begin or end in
  /// what is free beside the window. After UsableUnits, which merges what is free.
  uint32_t UnitsToStitch(uint32_t granules, uint32_t slot) const;
  /// Takes so many of the usable units out of the arena, to be shown in a window; they stay held.
  /// One window at a time: FinishWindow or CancelWindow comes before the next. False: there is no
  /// room for a window (TakeVacant), or the host has no memory.
  bool BeginWindow(uint32_t granules, uint32_t slot, uint64_t mark, Window* window);
  /// The unit of the pool that is shown there.
  uint32_t Shown(uint32_t window_unit) const { return shown_[window_unit - pool_units_]; }
  /// It is mapped now, and its units were freed there with `mark`, where a block of the stream is
  /// put that finds room now. kNoBlock: what was free beside the window is somebody else's by now,
  /// or the host has no memory.
  uint32_t FinishWindow(const Window& window, uint32_t granules, uint32_t slot, uint64_t mark,
                        const protocol::MarkPage& marks);
  /// Nothing came of it: the units are where they were, freed on the stream with `mark`. `window`
  /// says whether it is mapped all the same.
  void CancelWindow(const Window& window, uint32_t slot, uint64_t mark);
  /// Forgets a window in which nothing was held when NoteVacant looked, for its place; the caller
  /// unmaps it, and has waited for the GPU since. False: there is none.
  bool TakeVacant(Window* window);
  /// Those in which nothing is held now; the others are not taken before the next call.
  void NoteVacant();

  /// The live block that starts here, or kNoBlock.
  uint32_t FindLive(uint32_t start) const {
    const uint32_t id = entered_.Find(start);
    return id != kNoBlock && blocks_[id].kind == BlockKind::kLive ? id : kNoBlock;
  }
  /// The block that contains this granule, of any kind, or kNoBlock.
  uint32_t FindContaining(uint32_t granule) const;

  /// Frees a live block for the stream in `slot`; `mark` is the next one that will be issued there.
  void FreeOnStream(uint32_t id, uint32_t slot, uint64_t mark);
  /// The same, for as long as nobody else wants memory: a block below a unit that was allocated for
  /// that stream is set aside for the next of its size (RecentBlocks). It is handed out wherever it
  /// is then, and the units that it touches count as in use until somebody looks at units or marks,
  /// who has it merged.
  void FreeForReuse(uint32_t id, uint32_t slot, uint64_t mark);
  /// Frees a live block that the GPU is known to be done with.
  void FreeSynced(uint32_t id);

  /// Turns every free whose mark is reached into synced free space, but for those of `but_slot`.
  /// Returns how many.
  uint32_t CollectReached(const protocol::MarkPage& marks, uint32_t but_slot = kNoSlot);
  /// The same for the frees of a slot up to `free_seq` (from FreeSeq() before a synchronisation).
  uint32_t CollectThrough(uint32_t slot, uint64_t free_seq);
  uint64_t FreeSeq() {
    MergeRecent();
    return free_seq_;
  }

  /// Gives up to `max_units` wholly free units back, the farthest from the job's end first, as far
  /// as their frees are reached or covered by a mark that was issued (`queued[slot]`), in one frame
  /// and one fence of at most `max_terms` terms (0: only what is reached).
  /// `spared`: the units of a place that a block will be put into soon; they are not given back.
  uint32_t TakeFreeUnits(uint32_t max_units, uint32_t max_terms, const uint64_t* queued,
                         const protocol::MarkPage& marks, UnitRelease* out,
                         const protocol::Extent& spared = {0, 0});
  /// The units that a block of this size would touch if it were allocated for this stream now, with
  /// no other's frees: where a release should leave them alone, so that there is room for it (which
  /// may be tighter elsewhere after the release). Length 0: it has no place.
  protocol::Extent PlaceFor(uint32_t granules, uint32_t slot);
  /// The context is gone: all blocks, live ones too, become synced free space.
  void Abandon();

  const Block& block(uint32_t id) const { return blocks_[id]; }
  void SetSync(uint32_t id, uint16_t owner) {
    blocks_[id].sync = true;
    blocks_[id].owner = owner;
  }
  void SetBirth(uint32_t id, const Lifetimes::Birth& birth) { blocks_[id].birth = birth; }
  /// Whether this descriptor, of those below descriptors(), is a live block of that owner.
  bool Owned(uint32_t id, uint32_t owner) const {
    const Block& block = blocks_[id];
    return block.kind == BlockKind::kLive && block.sync && block.owner == owner;
  }
  uint32_t descriptors() const { return blocks_used_; }
  bool HasUnsynced(uint32_t slot) {
    MergeRecent();
    return Listed(slot);
  }
  /// Units that this stream freed are on their way into a window: the slot has to stay its own.
  bool MovesFor(uint32_t slot) const { return moving_units_ > 0 && moving_slot_ == slot; }
  /// The mark that covers the slot's latest free; only with HasUnsynced.
  uint64_t LatestMark(uint32_t slot) const { return blocks_[list_[slot].newest].mark; }

  /// Whether the unit of the pool is leased, wherever it is shown.
  bool Holds(uint32_t unit) const { return Leased(unit) || window_of_[unit] != 0; }

  uint32_t units() const { return pool_units_; }
  uint32_t unit_granules() const { return 1u << unit_shift_; }
  uint32_t held_units() const { return held_units_ + moving_units_; }
  uint32_t free_units() {  // held, without a live block
    MergeRecent();
    return free_units_;
  }
  uint64_t live_granules() const { return live_granules_; }

  /// Calls f(id, block) for every block in address order.
  template <class F>
  void ForEach(F f) const {
    for (uint32_t unit = 0; unit < units_; ++unit) {
      if (!Leased(unit) || (unit > 0 && Leased(unit - 1))) continue;
      for (uint32_t id = first_in_unit_[unit]; id != kNoBlock; id = blocks_[id].next) {
        f(id, blocks_[id]);
      }
    }
  }

 private:
  static constexpr uint32_t kSyncedTree = kNoSlot + 1;
  static constexpr uint32_t kUnusedTree = kNoSlot + 2;
  static constexpr uint32_t kTrees = kNoSlot + 3;
  static constexpr uint32_t kNotLeased = 0xffffffff;
  /// From this many units a block is large: a unit is then little beside it.
  static constexpr uint32_t kLargeUnits = 8;
  /// Up to this part of a unit a block is small: many of one size may be set aside, and it does not
  /// matter in which unit it lies.
  static constexpr uint32_t kSmallPart = 16;

  static constexpr uint32_t kMaxWindows = 4096;
  /// Units that are looked through for a lasting block; the fullest are the oldest.
  static constexpr uint32_t kMaxOpenUnits = 32;

  struct FreeList {
    uint32_t oldest;
    uint32_t newest;
  };
  /// The latest free of a block that touches a unit, and so the latest of its slot, whose marks
  /// only grow. A free block that was merged carries the mark of its newest part, which may lie
  /// units away.
  struct UnitFree {
    uint64_t mark;
    uint32_t slot;  // kNoFree: there was none
  };
  static constexpr uint32_t kNoFree = kNoSlot + 1;

  bool Listed(uint32_t slot) const { return list_[slot].oldest != kNoBlock; }
  void MergeRecent() {
    if (!recent_.empty()) [[unlikely]]
      MergeAllRecent();
  }
  void MergeAllRecent();
  void Merge(RecentBlocks::Stack& stack);
  void Leave(Block& block);
  void SetFreed(Block& block, BlockKind kind, uint32_t slot, uint64_t mark);
  void NoteFree(const Block& block);

  bool Leased(uint32_t unit) const { return live_in_unit_[unit] != kNotLeased; }
  // Room for one operation, so that it cannot fail half-way: at most two descriptors and four
  // insertions into the trees. Looked at in earnest only now and then.
  bool Reserve() {
    if (reserved_ == 0) [[unlikely]]
      return ReserveMore();
    --reserved_;
    return true;
  }
  bool ReserveMore();
  uint32_t NewBlock(uint32_t start, uint32_t size);
  void DropBlock(uint32_t id);
  FreeTree& TreeOf(const Block& block);
  void LinkBefore(uint32_t id, uint32_t next);
  void Unlink(uint32_t id);
  void CoverUnits(uint32_t id, uint32_t from, uint32_t to);
  void CountLive(const Block& block, bool alive);
  void MarkFree(uint32_t unit, bool free) {
    const uint64_t bit = uint64_t{1} << (unit % 64);
    if (free) {
      free_bits_[unit / 64] |= bit;
    } else {
      free_bits_[unit / 64] &= ~bit;
    }
  }
  /// The wholly free unit next to `beyond`, upwards or downwards; kNoBlock when there is none.
  /// `beyond` kNoBlock: the first in that direction.
  uint32_t NextFreeUnit(uint32_t beyond, bool upwards) const;

  void Enlist(uint32_t id);
  void Unlist(uint32_t id);
  static bool Mergeable(const Block& a, const Block& b);
  void InsertFree(uint32_t id);
  void RemoveFree(uint32_t id);
  void MakeSynced(uint32_t id);
  void SplitFree(uint32_t id, uint32_t at);

  uint32_t Search(uint32_t granules, uint32_t slot, const protocol::MarkPage& marks);
  bool FindPlace(const FreeTree& tree, uint32_t granules, FreePath* path) const {
    return tightest_ ? index_.FindFit(tree, granules, high_end_, path)
                     : index_.FindEdge(tree, granules, high_end_, path);
  }
  uint32_t TakeFrom(uint32_t tree, uint32_t granules);
  uint32_t TakeFreedHere(uint32_t granules, uint32_t slot);
  uint32_t TakeLow(FreeTree& tree, const FreePath& path, uint32_t granules);
  uint32_t TakeHigh(FreeTree& tree, const FreePath& path, uint32_t granules);
  uint32_t StartIn(uint32_t from, uint32_t to, uint32_t granules) const;
  uint32_t TakeLarge(FreeTree& tree, FreePath& path, uint32_t granules);
  uint32_t MakeLive(uint32_t id);
  struct Pieces {  // adjacent free blocks, the last one included
    uint32_t first = kNoBlock;
    uint32_t last = kNoBlock;
  };
  Pieces FindPieces(uint32_t granules, uint32_t slot) const;
  uint32_t Combine(uint32_t granules, uint32_t slot);
  void AddUnits(const protocol::Extent& extent);
  uint32_t TakeAt(uint32_t start, uint32_t granules);
  uint32_t TakePart(uint32_t id, uint32_t start, uint32_t granules);

  /// A free block of any kind that this stream may use as it is.
  static bool UsableBy(const Block& block, uint32_t slot) {
    return block.kind == BlockKind::kSynced || block.kind == BlockKind::kUnused ||
           (block.kind == BlockKind::kUnsynced && block.slot == slot && slot < kNoSlot);
  }
  uint32_t TakeIn(uint32_t unit, uint32_t first, uint32_t granules, uint32_t slot);
  uint32_t OpenUnit(uint32_t granules, uint32_t slot);

  bool MayUse(uint32_t unit, uint32_t slot) const;
  bool IsVacant(const Window& window) const;
  uint32_t RoomIn(uint32_t unit, bool at_top, uint32_t slot) const;
  uint32_t UnitsBeside(uint32_t granules, uint32_t room) const;
  bool ShowsUsable(const Window& window, uint32_t slot) const;
  bool FindPlaceFor(uint32_t granules, uint32_t slot, Window* window) const;
  void AddWindow(const Window& window);
  void DropWindow(uint32_t start);
  void FreeUnder(uint32_t id, uint32_t slot, uint64_t mark);
  void NoteMapped(uint32_t start);
  uint32_t PoolUnit(uint32_t unit) const {
    return unit < pool_units_ ? unit : shown_[unit - pool_units_];
  }

  bool FenceUnit(uint32_t unit, uint32_t max_terms, const uint64_t* queued,
                 const protocol::MarkPage& marks, UnitRelease* out) const;
  void RemoveUnit(uint32_t unit);

  uint32_t units_ = 0;  // windows included
  uint32_t pool_units_ = 0;
  uint32_t unit_shift_ = 0;
  bool high_end_ = false;
  bool tightest_ = false;
  uint32_t held_units_ = 0;
  uint32_t free_units_ = 0;
  uint32_t moving_units_ = 0;  // between BeginWindow and what follows: held, and nowhere
  uint32_t moving_slot_ = kNoSlot;
  uint64_t live_granules_ = 0;
  uint64_t free_seq_ = 0;

  PagedArray<Block> blocks_;
  uint32_t blocks_used_ = 0;
  uint32_t vacant_head_ = 0;  // index + 1, chained through next
  uint32_t vacant_count_ = 0;
  uint32_t reserved_ = 0;  // operations there is room for
  uint32_t entered_count_ = 0;

  PagedArray<uint32_t> first_in_unit_;  // the block that contains the unit's first granule
  PagedArray<uint32_t> live_in_unit_;   // live and recent blocks that touch the unit, or kNotLeased
  PagedArray<UnitFree> last_free_;      // of each leased unit
  PagedArray<uint64_t> free_bits_;      // of each unit: it is leased, and no live block touches it
  PagedArray<uint32_t> shown_;          // by window unit: the unit of the pool
  PagedArray<uint32_t> window_of_;      // by unit of the pool: the window unit that shows it, or 0
  PagedArray<Window> windows_;          // by start
  uint32_t windows_used_ = 0;
  struct Opened {
    uint32_t unit;
    uint32_t latest;  // the block that was put there last
  };
  Opened open_unit_[kMaxOpenUnits] = {};
  uint32_t open_units_ = 0;
  AddressMap entered_;  // live blocks and recent ones
  RecentBlocks recent_;
  FreeIndex index_;
  FreeTree tree_[kTrees] = {};
  FreeList list_[kNoSlot + 1] = {};
  uint64_t listed_[(kNoSlot + 64) / 64] = {};  // slots whose list is not empty
};

}  // namespace sluice
