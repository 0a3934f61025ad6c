// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/arena.h"

namespace sluice {

// Blocks that outlive their iteration lie together (docs/adr/0033). Wherever one lies at the trough
// its unit is held there. They come one by one while most of what is held is being freed, and each
// would find its place in another unit.

uint32_t Arena::AllocateLasting(uint32_t granules, uint32_t slot, const protocol::MarkPage& marks) {
  if (slot >= kNoSlot) return Allocate(granules, slot, marks);
  uint32_t id = kNoBlock;
  // Both splits of TakePart.
  if (granules > 0 && granules <= unit_granules() && Reserve() && Reserve()) {
    for (uint32_t i = 0; i < open_units_ && id == kNoBlock; ++i) {
      Opened& open = open_unit_[i];
      // Behind it nearly all is free, before it nearly nothing.
      const Block& latest = blocks_[open.latest];
      const bool there =
          latest.kind == BlockKind::kLive && latest.start >> unit_shift_ == open.unit;
      id = TakeIn(open.unit, there ? open.latest : kNoBlock, granules, slot);
      if (id != kNoBlock) open.latest = id;
    }
    if (id == kNoBlock) id = OpenUnit(granules, slot);
  }
  if (id == kNoBlock) return Allocate(granules, slot, marks);
  blocks_[id].slot = static_cast<uint16_t>(slot);
  return id;
}

// The first hole there that this stream may use, from the block `first` on (kNoBlock: from all).
uint32_t Arena::TakeIn(uint32_t unit, uint32_t first, uint32_t granules, uint32_t slot) {
  if (!Leased(unit)) return kNoBlock;
  if (first == kNoBlock) first = first_in_unit_[unit];
  const uint32_t from = unit << unit_shift_;
  const uint32_t to = from + unit_granules();
  for (uint32_t id = first; id != kNoBlock && blocks_[id].start < to; id = blocks_[id].next) {
    const Block& block = blocks_[id];
    const uint32_t start = block.start < from ? from : block.start;
    const uint32_t end = block.end() > to ? to : block.end();
    if (end - start >= granules && UsableBy(block, slot)) return TakePart(id, start, granules);
  }
  return kNoBlock;
}

// In a wholly free unit, the nearest to the job's end, where all that lasts gathers. Its other
// holes go on waiting for what they wait for, and so stay with the stream that freed them.
uint32_t Arena::OpenUnit(uint32_t granules, uint32_t slot) {
  for (uint32_t unit = NextFreeUnit(high_end_ ? pool_units_ : kNoBlock, !high_end_);
       unit != kNoBlock; unit = NextFreeUnit(unit, !high_end_)) {
    const uint32_t id = TakeIn(unit, kNoBlock, granules, slot);
    if (id == kNoBlock) continue;
    if (open_units_ == kMaxOpenUnits) {
      for (uint32_t i = 1; i < kMaxOpenUnits; ++i) open_unit_[i - 1] = open_unit_[i];
      --open_units_;
    }
    open_unit_[open_units_++] = {unit, id};
    return id;
  }
  return kNoBlock;
}

}  // namespace sluice
