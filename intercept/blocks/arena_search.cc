// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/arena.h"

namespace sluice {

uint32_t Arena::Allocate(uint32_t granules, uint32_t slot, const protocol::MarkPage& marks) {
  if (granules == 0 || granules >= FreeIndex::kLimit || !Reserve()) return kNoBlock;
  uint32_t id = kNoBlock;
  if (slot < kNoSlot) id = TakeFreedHere(granules, slot);
  if (id == kNoBlock) id = Search(granules, slot, marks);
  if (id != kNoBlock) blocks_[id].slot = static_cast<uint16_t>(slot);
  return id;
}

// What the stream has not freed itself, or only in pieces.
uint32_t Arena::Search(uint32_t granules, uint32_t slot, const protocol::MarkPage& marks) {
  uint32_t id = TakeFrom(kSyncedTree, granules);
  if (id != kNoBlock) return id;
  // Before anything is touched that was never used: what is merged may be large enough.
  if (!recent_.empty()) {
    MergeRecent();
    if (!Reserve()) return kNoBlock;
    if (slot < kNoSlot) id = TakeFrom(slot, granules);
  }
  if (id == kNoBlock) id = TakeFrom(kUnusedTree, granules);
  if (id != kNoBlock) return id;
  // Its own it may use as it is, and that of one kind lies in larger pieces.
  if (CollectReached(marks, slot) > 0 && Reserve()) {
    id = TakeFrom(kSyncedTree, granules);
    if (id != kNoBlock) return id;
  }
  return Combine(granules, slot);
}

// A block that this stream freed: the last one of this size as it is. What is not small beside a
// unit goes to one nearer to the job's end, where there is room.
uint32_t Arena::TakeFreedHere(uint32_t granules, uint32_t slot) {
  RecentBlocks::Stack* const stack = recent_.Find(granules, slot);
  if (stack == nullptr) return TakeFrom(slot, granules);
  Block& block = blocks_[stack->top];
  FreeTree& tree = tree_[slot];
  FreePath path;
  if (granules > unit_granules() / kSmallPart &&
      index_.FindEdge(tree, granules, high_end_, &path)) {
    const uint32_t other = blocks_[index_.ValueAt(tree, path)].start >> unit_shift_;
    const uint32_t here = block.start >> unit_shift_;
    if (high_end_ ? other > here : other < here) {
      return high_end_ ? TakeHigh(tree, path, granules) : TakeLow(tree, path, granules);
    }
  }
  block.kind = BlockKind::kLive;
  live_granules_ += granules;
  return recent_.Pop(*stack, blocks_);
}

uint32_t Arena::TakeFrom(uint32_t tree, uint32_t granules) {
  FreePath path;
  if (!FindPlace(tree_[tree], granules, &path)) return kNoBlock;
  if (granules >= kLargeUnits << unit_shift_) return TakeLarge(tree_[tree], path, granules);
  return high_end_ ? TakeHigh(tree_[tree], path, granules) : TakeLow(tree_[tree], path, granules);
}

// Where a block stands in free space: at the job's end of it. A large one reaches to a unit bound
// on the other side, where there is room for that. What is less than a unit then lies before it,
// next to what is small; behind it, small blocks would outlive it and stand in the middle of what
// it leaves.
uint32_t Arena::StartIn(uint32_t from, uint32_t to, uint32_t granules) const {
  const uint32_t mask = unit_granules() - 1;
  const uint32_t near = high_end_ ? to - granules : from;
  if (granules < kLargeUnits << unit_shift_) return near;
  const uint32_t bound = high_end_ ? near & ~mask : ((from + granules + mask) & ~mask) - granules;
  return bound >= from && bound + granules <= to ? bound : near;
}

uint32_t Arena::TakeLarge(FreeTree& tree, FreePath& path, uint32_t granules) {
  const uint32_t id = index_.ValueAt(tree, path);
  const Block& block = blocks_[id];
  const uint32_t start = StartIn(block.start, block.end(), granules);
  if (start > block.start) SplitFree(id, start);
  index_.Find(tree, start, &path);
  return TakeLow(tree, path, granules);
}

// The low part of the free block becomes the live one; the rest keeps descriptor, list position and
// place in the tree.
uint32_t Arena::TakeLow(FreeTree& tree, const FreePath& path, uint32_t granules) {
  const uint32_t id = index_.ValueAt(tree, path);
  Block& rest = blocks_[id];
  if (rest.size == granules) {
    index_.Erase(tree, path);
    if (rest.kind == BlockKind::kUnsynced) Unlist(id);
    return MakeLive(id);
  }
  const uint32_t low = NewBlock(rest.start, granules);  // may not move blocks_: Reserve came first
  LinkBefore(low, id);
  rest.start += granules;
  rest.size -= granules;
  index_.Change(tree, path, rest.start, rest.size);
  CoverUnits(low, blocks_[low].start, rest.start);
  return MakeLive(low);
}

// The same from the other side: the rest keeps its address too.
uint32_t Arena::TakeHigh(FreeTree& tree, const FreePath& path, uint32_t granules) {
  const uint32_t id = index_.ValueAt(tree, path);
  Block& rest = blocks_[id];
  if (rest.size == granules) return TakeLow(tree, path, granules);
  const uint32_t high = NewBlock(rest.end() - granules, granules);
  Block& block = blocks_[high];
  block.prev = id;
  block.next = rest.next;
  if (block.next != kNoBlock) blocks_[block.next].prev = high;
  rest.next = high;
  rest.size -= granules;
  index_.Change(tree, path, rest.start, rest.size);
  CoverUnits(high, block.start, block.end());
  return MakeLive(high);
}

uint32_t Arena::MakeLive(uint32_t id) {
  Block& block = blocks_[id];
  block.kind = BlockKind::kLive;
  entered_.Insert(block.start, id);
  ++entered_count_;
  live_granules_ += block.size;
  CountLive(block, true);
  return id;
}

// The first run of adjacent pieces of different kinds, each of which this stream may use, with room
// for a block. Linear in the number of blocks.
Arena::Pieces Arena::FindPieces(uint32_t granules, uint32_t slot) const {
  Pieces found;
  uint64_t total = 0;
  uint32_t run = kNoBlock;
  ForEach([&](uint32_t id, const Block& block) {
    if (found.last != kNoBlock) return;
    if (!UsableBy(block, slot)) {
      run = kNoBlock;
      total = 0;
      return;
    }
    if (run == kNoBlock || block.prev == kNoBlock) {
      run = id;
      total = 0;
    }
    total += block.size;
    if (total >= granules) found = {run, id};
  });
  return found;
}

protocol::Extent Arena::PlaceFor(uint32_t granules, uint32_t slot) {
  MergeRecent();
  if (granules == 0 || granules >= FreeIndex::kLimit) return {0, 0};
  uint32_t from = 0;
  uint32_t to = 0;
  const uint32_t trees[] = {slot < kNoSlot ? slot : kSyncedTree, kSyncedTree, kUnusedTree};
  for (const uint32_t tree : trees) {
    FreePath path;
    if (to != 0 || !FindPlace(tree_[tree], granules, &path)) continue;
    const Block& block = blocks_[index_.ValueAt(tree_[tree], path)];
    from = block.start;
    to = block.end();
  }
  if (to == 0) {
    const Pieces pieces = FindPieces(granules, slot);
    if (pieces.last == kNoBlock) return {0, 0};
    from = blocks_[pieces.first].start;
    to = blocks_[pieces.last].end();
  }
  const uint32_t start = StartIn(from, to, granules);
  const uint32_t first = start >> unit_shift_;
  return {first, ((start + granules - 1) >> unit_shift_) + 1 - first};
}

// Space for a large block may be there in adjacent pieces of different kinds. Looked for only where
// the alternative is a round trip to the daemon or out-of-memory.
uint32_t Arena::Combine(uint32_t granules, uint32_t slot) {
  auto [first, last] = FindPieces(granules, slot);
  if (last == kNoBlock) return kNoBlock;
  const uint32_t start = StartIn(blocks_[first].start, blocks_[last].end(), granules);
  while (blocks_[first].end() <= start) first = blocks_[first].next;
  if (blocks_[first].start < start) {
    const bool only = first == last;
    SplitFree(first, start);
    first = blocks_[first].next;
    if (only) last = first;
  }
  if (first == last) {
    FreePath path;
    index_.Find(TreeOf(blocks_[first]), blocks_[first].start, &path);
    return TakeLow(TreeOf(blocks_[first]), path, granules);
  }
  // The last piece gives only what is missing, from its low end.
  while (true) {
    const uint32_t next = blocks_[first].next;
    const uint32_t missing = granules - blocks_[first].size;
    if (blocks_[first].kind != BlockKind::kLive) {
      RemoveFree(first);
      blocks_[first].kind = BlockKind::kLive;  // not counted yet; only keeps it out of the trees
    }
    Block& piece = blocks_[next];
    if (next == last && piece.size > missing) {
      FreePath path;
      FreeTree& tree = TreeOf(piece);
      index_.Find(tree, piece.start, &path);
      CoverUnits(first, piece.start, piece.start + missing);
      piece.start += missing;
      piece.size -= missing;
      index_.Change(tree, path, piece.start, piece.size);
      blocks_[first].size = granules;
      return MakeLive(first);
    }
    RemoveFree(next);
    CoverUnits(first, piece.start, piece.end());
    blocks_[first].size += piece.size;
    Unlink(next);
    DropBlock(next);
    if (next == last) return MakeLive(first);
  }
}

}  // namespace sluice
