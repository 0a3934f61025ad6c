// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/base/paged_array.h"

namespace sluice {

/// Free blocks of one kind, ordered by address. Empty when height is 0.
struct FreeTree {
  uint32_t root;
  uint32_t height;
};

/// Where an entry is: a node and a position per level, the root first.
struct FreePath {
  uint32_t node[8];
  uint32_t at[8];
};

/// Trees of (key = address, size, value) that answer "the lowest (or highest) address with at least
/// this size" in one descent: a B+ tree whose inner entries hold the largest size below them. A node's
/// 32 sizes or keys are compared at once, so the usual tree (one leaf) costs a few nanoseconds, and a
/// tree of a million entries five levels. Nodes are not rebalanced on erasure, only freed when empty:
/// free blocks come and go at the same places. All trees share one node store.
class FreeIndex {
 public:
  /// Keys and sizes are below this.
  static constexpr uint32_t kLimit = 0x7fffffff;

  constexpr FreeIndex() = default;

  /// Room for `insertions` more; false when the host is out of memory. Insert cannot fail after it.
  bool Reserve(uint32_t insertions);
  void FreeMemory();

  bool FindFirst(const FreeTree& tree, uint32_t size, FreePath* path) const {
    return FindEdge(tree, size, false, path);
  }
  bool FindLast(const FreeTree& tree, uint32_t size, FreePath* path) const {
    return FindEdge(tree, size, true, path);
  }
  /// The entry with exactly this key, which must be there.
  void Find(const FreeTree& tree, uint32_t key, FreePath* path) const;
  uint32_t ValueAt(const FreeTree& tree, const FreePath& path) const;

  void Insert(FreeTree& tree, uint32_t key, uint32_t size, uint32_t value);
  void Erase(FreeTree& tree, const FreePath& path);
  /// New address and size of an entry, with no other entry between its old and new address. May need
  /// the room of an insertion.
  void Change(FreeTree& tree, const FreePath& path, uint32_t key, uint32_t size);

 private:
  static constexpr uint32_t kFanout = 32;
  struct alignas(64) Node {
    uint32_t key[kFanout];   // inner: a lower bound of the child's keys; unused: kLimit
    uint32_t size[kFanout];  // inner: the child's largest; unused: 0
    uint32_t value[kFanout];  // inner: the child
    uint32_t count;
  };

  static uint32_t EdgeAtLeast(const Node& node, uint32_t size, bool last);
  static uint32_t CountUpTo(const Node& node, uint32_t key);
  static uint32_t Largest(const Node& node);

  bool FindEdge(const FreeTree& tree, uint32_t size, bool last, FreePath* path) const;
  uint32_t NewNode();
  void FreeNode(uint32_t id);
  void Place(FreeTree& tree, const FreePath& path, uint32_t level, uint32_t at, uint32_t key,
             uint32_t size, uint32_t value);
  void RefreshAbove(const FreePath& path, uint32_t level);

  PagedArray<Node> nodes_;
  uint32_t used_ = 0;        // nodes ever taken from the array
  uint32_t free_head_ = 0;   // index + 1 of the first free node, chained through value[0]
  uint32_t free_count_ = 0;
};

}  // namespace sluice
