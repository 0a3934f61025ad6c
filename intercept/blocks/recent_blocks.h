// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/blocks/block.h"

namespace sluice {

/// The blocks that each stream freed last, by size: most of what a training step allocates is a
/// temporary of the size of one that it has just freed, and what is handed out again as it is needs
/// neither to be merged with its neighbours nor to be cut out of them again. (Lea, "A Memory
/// Allocator", calls this deferred coalescing.) A small table without searching: two blocks for
/// each of 64 classes of sizes.
class RecentBlocks {
 public:
  constexpr RecentBlocks() = default;

  /// Keeps the block. Returns the one that has to go for it, or kNoBlock.
  uint32_t Put(uint32_t size, uint32_t slot, uint32_t id) {
    Entry* set = set_[SetOf(size)];
    const uint32_t gone = set[1].id;
    if (gone == kNoBlock) ++count_;
    set[1] = set[0];
    set[0] = {KeyOf(size, slot), id};
    return gone;
  }

  /// The one of exactly this size that this stream freed last, or kNoBlock.
  uint32_t Find(uint32_t size, uint32_t slot) const {
    const Entry* set = set_[SetOf(size)];
    const uint64_t key = KeyOf(size, slot);
    if (set[0].key == key) return set[0].id;
    return set[1].key == key ? set[1].id : kNoBlock;
  }
  /// Takes out what Find has found.
  void Take(uint32_t size, uint32_t id) {
    Entry* set = set_[SetOf(size)];
    TakeOut(set, set[0].id == id ? 0 : 1);
  }

  bool empty() const { return count_ == 0; }

  /// Asks f(id) for every block; true: it is taken out, false: it stays.
  template <class F>
  void TakeEach(F f) {
    for (Entry(&set)[kWays] : set_) {
      for (uint32_t way = kWays; way-- > 0;) {
        const uint32_t id = set[way].id;
        if (id != kNoBlock && f(id)) TakeOut(set, way);
      }
    }
  }

 private:
  static constexpr uint32_t kSetBits = 6;
  static constexpr uint32_t kSets = 1u << kSetBits;
  static constexpr uint32_t kWays = 2;

  struct Entry {
    uint64_t key = 0;  // 0: none, because no size is 0
    uint32_t id = kNoBlock;
  };

  void TakeOut(Entry* set, uint32_t way) {
    if (way == 0) set[0] = set[1];
    set[1] = {};
    --count_;
  }
  static uint32_t SetOf(uint32_t size) { return (size * 0x9e3779b1u) >> (32 - kSetBits); }
  static uint64_t KeyOf(uint32_t size, uint32_t slot) { return uint64_t{slot} << 32 | size; }

  Entry set_[kSets][kWays] = {};
  uint32_t count_ = 0;
};

}  // namespace sluice
