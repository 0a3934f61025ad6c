// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

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
/// this size" in one descent: a B+ tree whose inner entries hold the largest size below them. A
/// node's 64 sizes or keys are compared at once, so the usual tree (one leaf) costs a few
/// nanoseconds, and a tree of a million entries four levels. All trees share one node store.
class FreeIndex {
 public:
  /// Keys and sizes are below this.
  static constexpr uint32_t kLimit = 0x7fffffff;

  constexpr FreeIndex() = default;

  /// Room for `insertions` more; false when the host is out of memory. Insert cannot fail after it.
  bool Reserve(uint32_t insertions);
  void FreeMemory();

  /// The entry with at least `size` at the lowest (or highest) address.
  bool FindEdge(const FreeTree& tree, uint32_t size, bool last, FreePath* path) const {
    if (tree.height == 0) return false;
    uint32_t id = tree.root;
    for (uint32_t level = 0;; ++level) {
      const Node& node = nodes_[id];
      const uint32_t at = EdgeAtLeast(node, size, last);
      if (at == kFanout) return false;  // only at the root: inner sizes are exact
      path->node[level] = id;
      path->at[level] = at;
      if (level + 1 == tree.height) return true;
      id = node.value[at];
    }
  }
  /// The smallest entry with at least `size` among those of the leaf (up to 64 neighbours) where
  /// FindEdge ends; of equal ones that at the lowest (or highest) address.
  bool FindFit(const FreeTree& tree, uint32_t size, bool last, FreePath* path) const {
    if (!FindEdge(tree, size, last, path)) return false;
    const uint32_t leaf = tree.height - 1;
    if (nodes_[path->node[leaf]].size[path->at[leaf]] == size) return true;
    path->at[leaf] = SmallestAtLeast(nodes_[path->node[leaf]], size, last);
    return true;
  }
  /// The entry with exactly this key, which must be there.
  void Find(const FreeTree& tree, uint32_t key, FreePath* path) const {
    uint32_t id = tree.root;
    for (uint32_t level = 0;; ++level) {
      const Node& node = nodes_[id];
      const uint32_t upto = CountUpTo(node, key);
      path->node[level] = id;
      path->at[level] = upto == 0 ? 0 : upto - 1;
      if (level + 1 == tree.height) return;
      id = node.value[path->at[level]];
    }
  }
  uint32_t ValueAt(const FreeTree& tree, const FreePath& path) const {
    const uint32_t leaf = tree.height - 1;
    return nodes_[path.node[leaf]].value[path.at[leaf]];
  }

  // The usual tree is one leaf; what is more is out of line.
  void Insert(FreeTree& tree, uint32_t key, uint32_t size, uint32_t value) {
    if (tree.height == 1 && nodes_[tree.root].count < kFanout) [[likely]] {
      Node& node = nodes_[tree.root];
      InsertAt(node, CountUpTo(node, key), key, size, value);
    } else {
      InsertInTree(tree, key, size, value);
    }
  }
  void Erase(FreeTree& tree, const FreePath& path) {
    if (tree.height == 1 && nodes_[tree.root].count > 1) [[likely]] {
      EraseAt(nodes_[tree.root], path.at[0]);
    } else {
      EraseInTree(tree, path);
    }
  }
  /// Erases the entry behind the one with `key`, whose key is `next_key`; `path` then leads to the
  /// former.
  void EraseNext(FreeTree& tree, uint32_t key, uint32_t next_key, FreePath* path) {
    if (tree.height == 1) [[likely]] {
      Find(tree, key, path);
      EraseAt(nodes_[tree.root], path->at[0] + 1);
    } else {
      Find(tree, next_key, path);
      EraseInTree(tree, *path);
      Find(tree, key, path);
    }
  }
  /// New address and size of an entry, with no other entry between its old and new address. May
  /// need the room of an insertion.
  void Change(FreeTree& tree, const FreePath& path, uint32_t key, uint32_t size) {
    if (tree.height == 1) [[likely]] {
      Node& node = nodes_[tree.root];
      node.key[path.at[0]] = key;
      node.size[path.at[0]] = size;
    } else {
      ChangeInTree(tree, path, key, size);
    }
  }

 private:
  static constexpr uint32_t kFanout = 64;
  // Entries are moved four at a time, and so up to three unused ones behind the last are moved
  // along.
  static constexpr uint32_t kRoom = kFanout + 4;
  struct alignas(64) Node {
    uint32_t key[kRoom];    // inner: a lower bound of the child's keys; unused: kLimit
    uint32_t size[kRoom];   // inner: the child's largest; unused: 0
    uint32_t value[kRoom];  // inner: the child
    uint32_t count;
  };

#if defined(__SSE2__)
  // Bits i .. i+15: values[i] > bound. Signed comparison is right because all is below kLimit.
  static uint32_t GreaterMask16(const uint32_t* values, __m128i bound) {
    const auto* at = reinterpret_cast<const __m128i*>(values);
    const __m128i a = _mm_cmpgt_epi32(_mm_load_si128(at), bound);
    const __m128i b = _mm_cmpgt_epi32(_mm_load_si128(at + 1), bound);
    const __m128i c = _mm_cmpgt_epi32(_mm_load_si128(at + 2), bound);
    const __m128i d = _mm_cmpgt_epi32(_mm_load_si128(at + 3), bound);
    return static_cast<uint32_t>(
        _mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d))));
  }
  static __m128i Bound(uint32_t value) { return _mm_set1_epi32(static_cast<int>(value)); }
#else
  static uint32_t GreaterMask16(const uint32_t* values, uint32_t bound) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < 16; ++i) mask |= static_cast<uint32_t>(values[i] > bound) << i;
    return mask;
  }
  static uint32_t Bound(uint32_t value) { return value; }
#endif

  static uint32_t FirstGreater(const uint32_t* values, uint32_t bound) {
    const auto limit = Bound(bound);
    for (uint32_t i = 0; i < kFanout; i += 16) {
      const uint32_t mask = GreaterMask16(values + i, limit);
      if (mask != 0) return i + static_cast<uint32_t>(__builtin_ctz(mask));
    }
    return kFanout;
  }
  static uint32_t EdgeAtLeast(const Node& node, uint32_t size, bool last) {
    if (!last) [[likely]]
      return FirstGreater(node.size, size - 1);
    const auto limit = Bound(size - 1);
    for (uint32_t i = kFanout; i > 0; i -= 16) {
      const uint32_t mask = GreaterMask16(node.size + i - 16, limit);
      if (mask != 0) return i - 16 + 31 - static_cast<uint32_t>(__builtin_clz(mask));
    }
    return kFanout;
  }
  /// Of the entries with at least `size`, of which there is one: the smallest, and of equal ones
  /// the first or the last.
  static uint32_t SmallestAtLeast(const Node& node, uint32_t size, bool last) {
    const uint32_t smallest = size + LeastOver(node, size);
    const auto at_least = Bound(smallest - 1);
    const auto above = Bound(smallest);
    uint32_t at = kFanout;
    for (uint32_t i = 0; i < node.count && (last || at == kFanout); i += 16) {
      const uint32_t equal =
          GreaterMask16(node.size + i, at_least) & ~GreaterMask16(node.size + i, above);
      if (equal == 0) continue;
      at = i + static_cast<uint32_t>(last ? 31 - __builtin_clz(equal) : __builtin_ctz(equal));
    }
    return at;
  }
  /// How much the smallest of them is larger. Below `size` the difference wraps around, and an
  /// unused entry's does, too.
#if defined(__SSE2__)
  static uint32_t LeastOver(const Node& node, uint32_t size) {
    const auto* const sizes = reinterpret_cast<const __m128i*>(node.size);
    // Only signed numbers can be compared: with the other sign bit they are in the unsigned order.
    const __m128i sign = _mm_set1_epi32(INT32_MIN);
    const __m128i from = _mm_xor_si128(Bound(size), sign);
    const auto smaller = [](__m128i a, __m128i b) {
      const __m128i greater = _mm_cmpgt_epi32(a, b);
      return _mm_or_si128(_mm_and_si128(greater, b), _mm_andnot_si128(greater, a));
    };
    __m128i least = _mm_set1_epi32(INT32_MAX);
    for (uint32_t i = 0; i * 4 < node.count; ++i) {
      least = smaller(least, _mm_sub_epi32(_mm_load_si128(sizes + i), from));
    }
    least = smaller(least, _mm_shuffle_epi32(least, _MM_SHUFFLE(1, 0, 3, 2)));
    least = smaller(least, _mm_shuffle_epi32(least, _MM_SHUFFLE(2, 3, 0, 1)));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_xor_si128(least, sign)));
  }
#else
  static uint32_t LeastOver(const Node& node, uint32_t size) {
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < node.count; ++i) {
      if (node.size[i] - size < least) least = node.size[i] - size;
    }
    return least;
  }
#endif
  static uint32_t CountUpTo(const Node& node, uint32_t key) {
    return FirstGreater(node.key, key);  // unused entries are above every key
  }

  // The generic memmove costs more than the few cache lines that are moved here.
  static void MoveFour(uint32_t* values, uint32_t from, uint32_t to) {
    uint32_t four[4];
    __builtin_memcpy(four, values + from, sizeof four);
    __builtin_memcpy(values + to, four, sizeof four);
  }
  static void MoveFour(Node& node, uint32_t from, uint32_t to) {
    MoveFour(node.key, from, to);
    MoveFour(node.size, from, to);
    MoveFour(node.value, from, to);
  }
  static void InsertAt(Node& node, uint32_t at, uint32_t key, uint32_t size, uint32_t value) {
    for (uint32_t i = (node.count - at + 3) & ~3u; i > 0; i -= 4) {
      MoveFour(node, at + i - 4, at + i - 3);
    }
    node.key[at] = key;
    node.size[at] = size;
    node.value[at] = value;
    ++node.count;
  }
  // The unused entry behind the last one comes along.
  static void EraseAt(Node& node, uint32_t at) {
    for (uint32_t i = at; i < node.count; i += 4) MoveFour(node, i + 1, i);
    --node.count;
  }
  static uint32_t Largest(const Node& node);

  uint32_t NewNode();
  void FreeNode(uint32_t id);
  void InsertInTree(FreeTree& tree, uint32_t key, uint32_t size, uint32_t value);
  void EraseInTree(FreeTree& tree, const FreePath& path);
  void ChangeInTree(FreeTree& tree, const FreePath& path, uint32_t key, uint32_t size);
  void Place(FreeTree& tree, const FreePath& path, uint32_t level, uint32_t at, uint32_t key,
             uint32_t size, uint32_t value);
  void RefreshAbove(const FreePath& path, uint32_t level, uint32_t old_size, uint32_t new_size);
  bool MergeWithSibling(const FreePath& path, uint32_t level);

  PagedArray<Node> nodes_;
  uint32_t used_ = 0;       // nodes ever taken from the array
  uint32_t free_head_ = 0;  // index + 1 of the first free node, chained through value[0]
  uint32_t free_count_ = 0;
};

}  // namespace sluice
