// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/base/paged_array.h"
#include "intercept/blocks/block.h"

namespace sluice {

/// The blocks that each stream freed last, by size: most of what a training step allocates is of
/// the size of something that it has just freed, and what is handed out again as it is needs
/// neither to be merged with its neighbours nor to be cut out of them again. (Lea, "A Memory
/// Allocator", calls this deferred coalescing.) Stacks, one for each size and stream, in a small
/// table without searching. Blocks are chained through Block::older while they are here; sizes are
/// in granules.
class RecentBlocks {
 public:
  struct Stack {
    uint64_t key = 0;  // 0: none, because no size is 0
    uint32_t top = kNoBlock;
    uint32_t count = 0;
  };

  /// Bounds the time that it takes to merge one stack, and all of them.
  static constexpr uint32_t kMostInStack = 192;

  constexpr RecentBlocks() = default;

  bool empty() const { return count_ == 0; }

  /// The blocks of exactly this size that this stream freed, the last one on top; null when there
  /// is none.
  Stack* Find(uint32_t size, uint32_t slot) {
    Stack* set = set_[SetOf(size)];
    const uint64_t key = KeyOf(size, slot);
    if (set[0].key == key) return &set[0];
    return set[1].key == key ? &set[1] : nullptr;
  }

  /// Where such a block goes: to its like, to an empty stack, or in place of those that were used
  /// longest ago, which the caller takes out first (HoldsOthers).
  Stack& Place(uint32_t size, uint32_t slot) {
    Stack* set = set_[SetOf(size)];
    const uint64_t key = KeyOf(size, slot);
    if (set[1].key == key || (set[0].key != key && set[0].count > 0)) {
      const Stack front = set[0];
      set[0] = set[1];
      set[1] = front;
    }
    return set[0];
  }
  /// Whether the stack holds blocks of another size or stream.
  static bool HoldsOthers(const Stack& stack, uint32_t size, uint32_t slot) {
    return stack.count > 0 && stack.key != KeyOf(size, slot);
  }

  /// Whether one more may stand in the stack: two of each size may, and many `small` ones, which
  /// take little space from the others.
  static bool HasRoom(const Stack& stack, bool small) {
    return stack.count < (small ? kMostInStack : kFew);
  }

  void Push(Stack& stack, PagedArray<Block>& blocks, uint32_t id) {
    Block& block = blocks[id];
    stack.key = KeyOf(block.size, block.slot);
    block.older = stack.top;
    stack.top = id;
    ++stack.count;
    ++count_;
  }
  /// The stack is not empty. An empty one has no key and is nobody's.
  uint32_t Pop(Stack& stack, PagedArray<Block>& blocks) {
    const uint32_t id = stack.top;
    --count_;
    stack.top = blocks[id].older;
    if (--stack.count == 0) stack = {};
    return id;
  }

  /// The oldest is on top now.
  static void Reverse(Stack& stack, PagedArray<Block>& blocks) {
    uint32_t top = kNoBlock;
    for (uint32_t id = stack.top; id != kNoBlock;) {
      const uint32_t older = blocks[id].older;
      blocks[id].older = top;
      top = id;
      id = older;
    }
    stack.top = top;
  }

  /// Calls f(stack) for each that is not empty.
  template <class F>
  void ForEach(F f) {
    for (Stack(&set)[kWays] : set_) {
      for (Stack& stack : set) {
        if (stack.count > 0) f(stack);
      }
    }
  }

 private:
  static constexpr uint32_t kSetBits = 6;
  static constexpr uint32_t kSets = 1u << kSetBits;
  static constexpr uint32_t kWays = 2;
  static constexpr uint32_t kFew = 2;

  static uint32_t SetOf(uint32_t size) { return (size * 0x9e3779b1u) >> (32 - kSetBits); }
  static uint64_t KeyOf(uint32_t size, uint32_t slot) { return uint64_t{slot} << 32 | size; }

  Stack set_[kSets][kWays] = {};
  uint32_t count_ = 0;
};

}  // namespace sluice
