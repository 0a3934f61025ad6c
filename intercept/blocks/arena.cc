// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/arena.h"

namespace sluice {

// Descriptors, lists and the tiling of leased units. Searching is in arena_search.cc, giving units
// back in arena_units.cc.

bool Arena::Init(uint32_t units, uint32_t unit_granules, uint32_t windows) {
  pool_units_ = units;
  units_ = units += windows;
  unit_shift_ = static_cast<uint32_t>(__builtin_ctz(unit_granules));
  const uint32_t words = (units + 63) / 64;
  if (!first_in_unit_.Reserve(units) || !live_in_unit_.Reserve(units) ||
      !last_free_.Reserve(units) || !free_bits_.Reserve(words) ||
      !window_of_.Reserve(pool_units_) || !shown_.Reserve(windows) ||
      !windows_.Reserve(windows > 0 ? kMaxWindows : 0)) {
    return false;
  }
  for (uint32_t unit = 0; unit < pool_units_; ++unit) window_of_[unit] = 0;
  for (uint32_t word = 0; word < words; ++word) free_bits_[word] = 0;
  for (uint32_t unit = 0; unit < units; ++unit) {
    first_in_unit_[unit] = kNoBlock;
    live_in_unit_[unit] = kNotLeased;
  }
  for (FreeTree& tree : tree_) tree = {};
  for (FreeList& list : list_) list = {kNoBlock, kNoBlock};
  for (uint64_t& word : listed_) word = 0;
  return Reserve();
}

void Arena::FreeMemory() {
  blocks_.Free();
  first_in_unit_.Free();
  live_in_unit_.Free();
  last_free_.Free();
  free_bits_.Free();
  shown_.Free();
  window_of_.Free();
  windows_.Free();
  entered_.FreeMemory();
  index_.FreeMemory();
  units_ = pool_units_ = held_units_ = free_units_ = moving_units_ = windows_used_ = open_units_ =
      0;
  blocks_used_ = vacant_head_ = vacant_count_ = entered_count_ = reserved_ = 0;
  recent_ = {};
  for (FreeTree& tree : tree_) tree = {};
  for (FreeList& list : list_) list = {kNoBlock, kNoBlock};
  for (uint64_t& word : listed_) word = 0;
  live_granules_ = 0;
}

bool Arena::ReserveMore() {
  constexpr uint32_t kOperations = 64;
  constexpr uint32_t kBlocks = 2 * kOperations;
  if (vacant_count_ + (blocks_.capacity() - blocks_used_) < kBlocks &&
      !blocks_.Reserve(blocks_used_ + kBlocks)) {
    return false;
  }
  if (!entered_.Reserve(entered_count_ + kOperations) || !index_.Reserve(4 * kOperations))
    return false;
  reserved_ = kOperations - 1;
  return true;
}

uint32_t Arena::NewBlock(uint32_t start, uint32_t size) {
  uint32_t id = 0;
  if (vacant_head_ != 0) {
    id = vacant_head_ - 1;
    vacant_head_ = blocks_[id].next;
    --vacant_count_;
  } else {
    id = blocks_used_++;
  }
  Block& block = blocks_[id];
  block = {};
  block.start = start;
  block.size = size;
  block.prev = block.next = block.older = block.newer = kNoBlock;
  return id;
}

void Arena::DropBlock(uint32_t id) {
  blocks_[id].kind = BlockKind::kVacant;
  blocks_[id].next = vacant_head_;
  vacant_head_ = id + 1;
  ++vacant_count_;
}

FreeTree& Arena::TreeOf(const Block& block) {
  if (block.kind == BlockKind::kSynced) return tree_[kSyncedTree];
  if (block.kind == BlockKind::kUnused) return tree_[kUnusedTree];
  return tree_[block.slot];
}

void Arena::LinkBefore(uint32_t id, uint32_t next) {
  const uint32_t prev = blocks_[next].prev;
  blocks_[id].prev = prev;
  blocks_[id].next = next;
  blocks_[next].prev = id;
  if (prev != kNoBlock) blocks_[prev].next = id;
}

void Arena::Unlink(uint32_t id) {
  const Block& block = blocks_[id];
  if (block.prev != kNoBlock) blocks_[block.prev].next = block.next;
  if (block.next != kNoBlock) blocks_[block.next].prev = block.prev;
}

// Units whose first granule lies in [from, to) start in block `id` from now on.
void Arena::CoverUnits(uint32_t id, uint32_t from, uint32_t to) {
  const uint32_t mask = unit_granules() - 1;
  const uint32_t end = (to + mask) >> unit_shift_;
  for (uint32_t unit = (from + mask) >> unit_shift_; unit < end; ++unit) first_in_unit_[unit] = id;
}

void Arena::CountLive(const Block& block, bool alive) {
  const uint32_t last = (block.end() - 1) >> unit_shift_;
  uint32_t changed = 0;  // units that went from free to used, or back
  if (alive) {
    for (uint32_t unit = block.start >> unit_shift_; unit <= last; ++unit) {
      if (live_in_unit_[unit]++ != 0) continue;
      MarkFree(unit, false);
      ++changed;
    }
    free_units_ -= changed;
  } else {
    for (uint32_t unit = block.start >> unit_shift_; unit <= last; ++unit) {
      if (--live_in_unit_[unit] != 0) continue;
      MarkFree(unit, true);
      ++changed;
    }
    free_units_ += changed;
  }
}

bool Arena::Grant(const protocol::Extent& extent) {
  for (uint32_t unit = extent.offset; unit < extent.offset + extent.length; ++unit) {
    if (Holds(unit)) return false;
  }
  if (!Reserve()) return false;
  AddUnits(extent);
  return true;
}

// Room for it is reserved.
void Arena::AddUnits(const protocol::Extent& extent) {
  const uint32_t start = extent.offset << unit_shift_;
  const uint32_t id = NewBlock(start, extent.length << unit_shift_);
  Block& block = blocks_[id];
  block.kind = BlockKind::kUnused;
  if (extent.offset > 0 && Leased(extent.offset - 1)) {
    uint32_t left = first_in_unit_[extent.offset - 1];
    while (blocks_[left].next != kNoBlock) left = blocks_[left].next;
    block.prev = left;
    blocks_[left].next = id;
  }
  const uint32_t behind = extent.offset + extent.length;
  if (behind < units_ && Leased(behind)) {
    block.next = first_in_unit_[behind];
    blocks_[block.next].prev = id;
  }
  for (uint32_t unit = extent.offset; unit < behind; ++unit) {
    live_in_unit_[unit] = 0;
    last_free_[unit] = {0, kNoFree};
    MarkFree(unit, true);
  }
  CoverUnits(id, block.start, block.end());
  held_units_ += extent.length;
  free_units_ += extent.length;
  InsertFree(id);
}

void Arena::Enlist(uint32_t id) {
  Block& block = blocks_[id];
  FreeList& list = list_[block.slot];
  block.older = list.newest;
  block.newer = kNoBlock;
  if (list.newest != kNoBlock) {
    blocks_[list.newest].newer = id;
  } else {
    list.oldest = id;
    listed_[block.slot / 64] |= uint64_t{1} << (block.slot % 64);
  }
  list.newest = id;
}

void Arena::Unlist(uint32_t id) {
  const Block& block = blocks_[id];
  FreeList& list = list_[block.slot];
  (block.older != kNoBlock ? blocks_[block.older].newer : list.oldest) = block.newer;
  (block.newer != kNoBlock ? blocks_[block.newer].older : list.newest) = block.older;
  if (list.oldest == kNoBlock) listed_[block.slot / 64] &= ~(uint64_t{1} << (block.slot % 64));
}

bool Arena::Mergeable(const Block& a, const Block& b) {
  return a.kind == b.kind && (a.kind != BlockKind::kUnsynced || a.slot == b.slot);
}

// Enters a block of a free kind into its tree and list, merged with its neighbours of the same
// kind. A merged unsynced block carries the newest mark and so the last place in the list: within a
// slot the list stays ordered by mark. The neighbour is extended in place where possible, which
// costs one descent instead of two.
void Arena::InsertFree(uint32_t id) {
  Block& block = blocks_[id];
  FreeTree& tree = TreeOf(block);
  const bool listed = block.kind == BlockKind::kUnsynced;
  const uint32_t left = block.prev;
  const uint32_t right = block.next;
  const bool join_left = left != kNoBlock && Mergeable(blocks_[left], block);
  const bool join_right = right != kNoBlock && Mergeable(blocks_[right], block);
  if (!join_left && !join_right) {
    index_.Insert(tree, block.start, block.size, id);
    if (listed) Enlist(id);
    return;
  }
  const uint32_t kept = join_left ? left : right;
  const bool join_both = join_left && join_right;
  if (listed) {
    if (join_both) Unlist(right);
    if (list_[block.slot].newest != kept) {
      Unlist(kept);
      Enlist(kept);
    }
    blocks_[kept].mark = block.mark;
    blocks_[kept].free_seq = block.free_seq;
  }
  Block& whole = blocks_[kept];
  FreePath path;
  if (join_both) {
    const Block& gone = blocks_[right];
    index_.EraseNext(tree, whole.start, gone.start, &path);
    whole.size += gone.size;
    CoverUnits(left, gone.start, gone.end());
    Unlink(right);
    DropBlock(right);
  } else {
    index_.Find(tree, whole.start, &path);
  }
  if (!join_left) whole.start = block.start;
  whole.size += block.size;
  index_.Change(tree, path, whole.start, whole.size);
  CoverUnits(kept, block.start, block.end());
  Unlink(id);
  DropBlock(id);
}

void Arena::RemoveFree(uint32_t id) {
  const Block& block = blocks_[id];
  FreePath path;
  FreeTree& tree = TreeOf(block);
  index_.Find(tree, block.start, &path);
  index_.Erase(tree, path);
  if (block.kind == BlockKind::kUnsynced) Unlist(id);
}

// The free block ends at `at` from now on; the rest is a new one behind it in tree and list, with
// the same kind, mark and age. Neighbours of one kind must not stay so: the caller takes one of
// them.
void Arena::SplitFree(uint32_t id, uint32_t at) {
  const uint32_t right = NewBlock(at, blocks_[id].end() - at);  // may not move blocks_
  Block& left = blocks_[id];
  Block& piece = blocks_[right];
  piece.kind = left.kind;
  piece.slot = left.slot;
  piece.mark = left.mark;
  piece.free_seq = left.free_seq;
  piece.prev = id;
  piece.next = left.next;
  if (piece.next != kNoBlock) blocks_[piece.next].prev = right;
  left.next = right;
  CoverUnits(right, at, piece.end());
  FreePath path;
  FreeTree& tree = TreeOf(left);
  index_.Find(tree, left.start, &path);
  left.size = at - left.start;
  index_.Change(tree, path, left.start, left.size);
  index_.Insert(tree, piece.start, piece.size, right);
  if (left.kind != BlockKind::kUnsynced) return;
  piece.older = id;
  piece.newer = left.newer;
  (left.newer != kNoBlock ? blocks_[left.newer].older : list_[left.slot].newest) = right;
  left.newer = right;
}

// The block is nobody's any more.
void Arena::Leave(Block& block) {
  entered_.Take(block.start);
  --entered_count_;
  CountLive(block, false);
}

void Arena::FreeOnStream(uint32_t id, uint32_t slot, uint64_t mark) {
  if (!Reserve()) return;  // the block leaks: better than half-entered
  Block& block = blocks_[id];
  live_granules_ -= block.size;
  Leave(block);
  SetFreed(block, BlockKind::kUnsynced, slot, mark);
  NoteFree(block);
  InsertFree(id);
}

void Arena::NoteFree(const Block& block) {
  const uint32_t last = (block.end() - 1) >> unit_shift_;
  for (uint32_t unit = block.start >> unit_shift_; unit <= last; ++unit) {
    last_free_[unit] = {block.mark, block.slot};
  }
}

void Arena::FreeForReuse(uint32_t id, uint32_t slot, uint64_t mark) {
  const uint32_t size = blocks_[id].size;
  if (slot >= kNoSlot || blocks_[id].slot != slot || size >= unit_granules()) {
    return FreeOnStream(id, slot, mark);
  }
  RecentBlocks::Stack& stack = recent_.Place(size, slot);
  if (RecentBlocks::HoldsOthers(stack, size, slot)) [[unlikely]]
    Merge(stack);  // may move blocks_
  const bool small = size <= unit_granules() / kSmallPart;
  if (RecentBlocks::HoldsOthers(stack, size, slot) || !RecentBlocks::HasRoom(stack, small)) {
    return FreeOnStream(id, slot, mark);
  }
  live_granules_ -= size;
  SetFreed(blocks_[id], BlockKind::kRecent, slot, mark);
  recent_.Push(stack, blocks_, id);
}

void Arena::SetFreed(Block& block, BlockKind kind, uint32_t slot, uint64_t mark) {
  block.kind = kind;
  block.slot = static_cast<uint16_t>(slot);
  block.mark = mark;
  block.free_seq = ++free_seq_;
  block.sync = false;
}

// Recent blocks become ordinary free space, those that were freed first before the others; without
// memory of the host's they stay. Others that were freed after them may be in the list already:
// they go behind those, with their mark, to keep the list in the order of marks, and that is never
// too early.
void Arena::Merge(RecentBlocks::Stack& stack) {
  RecentBlocks::Reverse(stack, blocks_);
  while (stack.count > 0 && Reserve()) {
    const uint32_t id = recent_.Pop(stack, blocks_);
    Block& block = blocks_[id];
    Leave(block);
    block.kind = BlockKind::kUnsynced;
    if (Listed(block.slot)) {
      const Block& newest = blocks_[list_[block.slot].newest];
      if (newest.free_seq > block.free_seq) {
        block.free_seq = newest.free_seq;
        block.mark = newest.mark;
      }
    }
    NoteFree(block);
    InsertFree(id);
  }
}

void Arena::MergeAllRecent() {
  recent_.ForEach([this](RecentBlocks::Stack& stack) { Merge(stack); });
}

void Arena::FreeSynced(uint32_t id) {
  if (!Reserve()) return;
  Block& block = blocks_[id];
  live_granules_ -= block.size;
  Leave(block);
  ++free_seq_;
  block.kind = BlockKind::kSynced;
  block.sync = false;
  InsertFree(id);
}

void Arena::MakeSynced(uint32_t id) {
  RemoveFree(id);
  blocks_[id].kind = BlockKind::kSynced;
  InsertFree(id);
}

uint32_t Arena::CollectReached(const protocol::MarkPage& marks, uint32_t but_slot) {
  uint32_t collected = 0;
  for (uint32_t word = 0; word * 64 < kNoSlot; ++word) {
    for (uint64_t bits = listed_[word]; bits != 0; bits &= bits - 1) {
      const uint32_t slot = word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
      if (slot == but_slot) continue;
      const uint64_t reached = marks.mark[slot].load(std::memory_order_acquire);
      while (Listed(slot) && protocol::MarkReached(reached, blocks_[list_[slot].oldest].mark) &&
             Reserve()) {
        MakeSynced(list_[slot].oldest);
        ++collected;
      }
    }
  }
  return collected;
}

uint32_t Arena::CollectThrough(uint32_t slot, uint64_t free_seq) {
  uint32_t collected = 0;
  MergeRecent();
  while (Listed(slot) && blocks_[list_[slot].oldest].free_seq <= free_seq && Reserve()) {
    MakeSynced(list_[slot].oldest);
    ++collected;
  }
  return collected;
}

}  // namespace sluice
