// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/arena.h"

namespace sluice {

uint32_t Arena::FindContaining(uint32_t granule) const {
  const uint32_t unit = granule >> unit_shift_;
  if (unit >= units_ || !Leased(unit)) return kNoBlock;
  uint32_t id = first_in_unit_[unit];
  while (id != kNoBlock && blocks_[id].end() <= granule) id = blocks_[id].next;
  return id;
}

uint32_t Arena::NextFreeUnit(uint32_t beyond, bool upwards) const {
  const uint32_t words = (units_ + 63) / 64;
  if (upwards) {
    const uint32_t from = beyond + 1;  // kNoBlock + 1 is 0
    uint64_t mask = ~uint64_t{0} << (from % 64);
    for (uint32_t word = from / 64; word < words; ++word, mask = ~uint64_t{0}) {
      const uint64_t bits = free_bits_[word] & mask;
      if (bits != 0) return word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
    }
    return kNoBlock;
  }
  const uint32_t below = beyond == kNoBlock ? words * 64 : beyond;
  uint64_t mask = below % 64 == 0 ? 0 : ~uint64_t{0} >> (64 - below % 64);
  for (uint32_t word = below / 64 + 1; word-- > 0; mask = ~uint64_t{0}) {
    const uint64_t bits = mask == 0 ? 0 : free_bits_[word] & mask;
    if (bits != 0) return word * 64 + 63 - static_cast<uint32_t>(__builtin_clzll(bits));
  }
  return kNoBlock;
}

uint32_t Arena::AllocateUnit(const protocol::MarkPage& marks) {
  if (free_units() == 0) return kNoBlock;
  CollectReached(marks);
  for (uint32_t unit = NextFreeUnit(kNoBlock, !high_end_); unit != kNoBlock;
       unit = NextFreeUnit(unit, !high_end_)) {
    if (!MayUse(unit, kNoSlot)) continue;
    // One operation each: taken out of the tiling, entered as new, cut off on either side, taken.
    if (!Reserve() || !Reserve() || !Reserve() || !Reserve()) return kNoBlock;
    RemoveUnit(unit);
    AddUnits({unit, 1});
    return TakeAt(unit << unit_shift_, unit_granules());
  }
  return kNoBlock;
}

// A live block at this very place, which lies in one free block. Room for two operations is
// reserved.
uint32_t Arena::TakeAt(uint32_t start, uint32_t granules) {
  return TakePart(FindContaining(start), start, granules);
}

// The same of this free block.
uint32_t Arena::TakePart(uint32_t id, uint32_t start, uint32_t granules) {
  if (blocks_[id].start < start) {
    SplitFree(id, start);
    id = blocks_[id].next;
  }
  FreePath path;
  FreeTree& tree = TreeOf(blocks_[id]);
  index_.Find(tree, start, &path);
  return TakeLow(tree, path, granules);
}

// Adds what the unit's free blocks still wait for to the fence. False, with the fence as it was,
// when a free is not covered by an issued mark or the terms do not suffice.
bool Arena::FenceUnit(uint32_t unit, uint32_t max_terms, const uint64_t* queued,
                      const protocol::MarkPage& marks, UnitRelease* out) const {
  protocol::FenceTerm fence[protocol::kMaxFenceTerms];
  uint32_t terms = out->terms;
  for (uint32_t i = 0; i < terms; ++i) fence[i] = out->fence[i];
  // False: not covered, or one term too many.
  const auto wait_for = [&](uint32_t slot, uint64_t mark) {
    if (slot >= kNoSlot) return false;
    if (protocol::MarkReached(marks.mark[slot].load(std::memory_order_acquire), mark)) return true;
    if (!protocol::MarkReached(queued[slot], mark)) return false;
    uint32_t i = 0;
    while (i < terms && fence[i].slot != slot) ++i;
    if (i == terms) {
      if (terms >= max_terms) return false;
      fence[terms++] = {slot, 0, mark};
    } else if (protocol::MarkReached(mark, fence[i].value)) {
      fence[i].value = mark;
    }
    return true;
  };
  const UnitFree& last = last_free_[unit];
  const uint32_t end = (unit + 1) << unit_shift_;
  for (uint32_t id = first_in_unit_[unit]; id != kNoBlock && blocks_[id].start < end;
       id = blocks_[id].next) {
    const Block& block = blocks_[id];
    if (block.kind != BlockKind::kUnsynced) continue;
    const bool own = last.slot == block.slot && block.slot < kNoSlot;
    if (!wait_for(block.slot, own ? last.mark : block.mark)) return false;
  }
  for (uint32_t i = 0; i < terms; ++i) out->fence[i] = fence[i];
  out->terms = terms;
  return true;
}

uint32_t Arena::TakeFreeUnits(uint32_t max_units, uint32_t max_terms, const uint64_t* queued,
                              const protocol::MarkPage& marks, UnitRelease* out,
                              const protocol::Extent& spared) {
  MergeRecent();
  out->units = out->terms = out->extents = 0;
  for (uint32_t unit = NextFreeUnit(kNoBlock, high_end_);
       unit != kNoBlock && out->units < max_units; unit = NextFreeUnit(unit, high_end_)) {
    if (unit - spared.offset < spared.length) continue;  // wraps below it
    const protocol::Extent* last = out->extents > 0 ? &out->extent[out->extents - 1] : nullptr;
    const uint32_t pooled = PoolUnit(unit);
    const bool adjacent = last != nullptr && (high_end_ ? last->offset + last->length == pooled
                                                        : last->offset == pooled + 1);
    if (!adjacent && out->extents == protocol::kMaxExtentsPerFrame) break;
    if (!Reserve() || !FenceUnit(unit, max_terms, queued, marks, out)) continue;
    RemoveUnit(unit);
    window_of_[pooled] = 0;
    if (adjacent) {
      if (!high_end_) --out->extent[out->extents - 1].offset;
      ++out->extent[out->extents - 1].length;
    } else {
      out->extent[out->extents++] = {pooled, 1};
    }
    ++out->units;
  }
  return out->units;
}

// Cuts the unit out of the tiling. Its free blocks are trimmed at the unit's bounds; what lies
// beyond stays free with the same kind, mark and age.
void Arena::RemoveUnit(uint32_t unit) {
  const uint32_t from = unit << unit_shift_;
  const uint32_t to = from + unit_granules();
  uint32_t id = first_in_unit_[unit];
  while (id != kNoBlock && blocks_[id].start < to) {
    Block& block = blocks_[id];
    const uint32_t next = block.next;
    if (block.start < from && block.end() > to) {
      SplitFree(id, to);
      const uint32_t right = blocks_[id].next;
      blocks_[right].prev = kNoBlock;
      Block& left = blocks_[id];
      FreePath path;
      index_.Find(TreeOf(left), left.start, &path);
      left.size = from - left.start;
      left.next = kNoBlock;
      index_.Change(TreeOf(left), path, left.start, left.size);
      break;
    }
    FreePath path;
    if (block.start < from) {
      index_.Find(TreeOf(block), block.start, &path);
      block.size = from - block.start;
      block.next = kNoBlock;
      index_.Change(TreeOf(block), path, block.start, block.size);
      if (next != kNoBlock) blocks_[next].prev = kNoBlock;
    } else if (block.end() > to) {
      index_.Find(TreeOf(block), block.start, &path);
      block.size = block.end() - to;
      block.start = to;
      if (block.prev != kNoBlock) blocks_[block.prev].next = kNoBlock;
      block.prev = kNoBlock;
      index_.Change(TreeOf(block), path, block.start, block.size);
    } else {
      RemoveFree(id);
      if (block.prev != kNoBlock) blocks_[block.prev].next = kNoBlock;
      if (next != kNoBlock) blocks_[next].prev = kNoBlock;
      DropBlock(id);
    }
    id = next;
  }
  first_in_unit_[unit] = kNoBlock;
  live_in_unit_[unit] = kNotLeased;
  MarkFree(unit, false);
  --held_units_;
  --free_units_;
}

void Arena::Abandon() {
  for (uint32_t id = 0; id < blocks_used_; ++id) {
    if (blocks_[id].kind == BlockKind::kLive) FreeSynced(id);
  }
  for (uint32_t slot = 0; slot <= kNoSlot; ++slot) CollectThrough(slot, free_seq_);
}

}  // namespace sluice
