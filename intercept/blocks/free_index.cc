// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/free_index.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace sluice {
namespace {

constexpr uint32_t kLanes = 32;

// Bit i: values[i] > bound. Signed comparison is right because everything is below kLimit.
uint32_t GreaterMask(const uint32_t* values, uint32_t bound) {
#if defined(__SSE2__)
  const __m128i limit = _mm_set1_epi32(static_cast<int>(bound));
  uint32_t mask = 0;
  for (uint32_t i = 0; i < kLanes; i += 8) {
    const auto* at = reinterpret_cast<const __m128i*>(values + i);
    const __m128i low = _mm_cmpgt_epi32(_mm_load_si128(at), limit);
    const __m128i high = _mm_cmpgt_epi32(_mm_load_si128(at + 1), limit);
    const __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
    mask |= static_cast<uint32_t>(_mm_movemask_epi8(bytes)) << i;
  }
  return mask;
#else
  uint32_t mask = 0;
  for (uint32_t i = 0; i < kLanes; ++i) mask |= static_cast<uint32_t>(values[i] > bound) << i;
  return mask;
#endif
}

void Shift(uint32_t* values, uint32_t to, uint32_t from, uint32_t count) {
  memmove(values + to, values + from, size_t{count} * sizeof(uint32_t));
}

}  // namespace

uint32_t FreeIndex::EdgeAtLeast(const Node& node, uint32_t size, bool last) {
  const uint32_t mask = GreaterMask(node.size, size - 1);
  if (mask == 0) return kFanout;
  return static_cast<uint32_t>(last ? 31 - __builtin_clz(mask) : __builtin_ctz(mask));
}

uint32_t FreeIndex::CountUpTo(const Node& node, uint32_t key) {
  const uint32_t mask = GreaterMask(node.key, key);  // unused entries are above every key
  return mask == 0 ? kFanout : static_cast<uint32_t>(__builtin_ctz(mask));
}

uint32_t FreeIndex::Largest(const Node& node) {
  uint32_t largest = 0;
  for (uint32_t i = 0; i < node.count; ++i) largest = node.size[i] > largest ? node.size[i] : largest;
  return largest;
}

bool FreeIndex::Reserve(uint32_t insertions) {
  // An insertion splits at most one node per level and adds a root.
  const uint32_t wanted = insertions * 8;
  if (free_count_ + (nodes_.capacity() - used_) >= wanted) return true;
  return nodes_.Reserve(used_ + wanted);
}

void FreeIndex::FreeMemory() {
  nodes_.Free();
  used_ = free_head_ = free_count_ = 0;
}

uint32_t FreeIndex::NewNode() {
  uint32_t id = 0;
  if (free_head_ != 0) {
    id = free_head_ - 1;
    free_head_ = nodes_[id].value[0];
    --free_count_;
  } else {
    id = used_++;
  }
  Node& node = nodes_[id];
  for (uint32_t i = 0; i < kFanout; ++i) {
    node.key[i] = kLimit;
    node.size[i] = 0;
  }
  node.count = 0;
  return id;
}

void FreeIndex::FreeNode(uint32_t id) {
  nodes_[id].value[0] = free_head_;
  free_head_ = id + 1;
  ++free_count_;
}

bool FreeIndex::FindEdge(const FreeTree& tree, uint32_t size, bool last, FreePath* path) const {
  if (tree.height == 0) return false;
  uint32_t id = tree.root;
  for (uint32_t level = 0; level < tree.height; ++level) {
    const Node& node = nodes_[id];
    const uint32_t at = EdgeAtLeast(node, size, last);
    if (at == kFanout) return false;  // only at the root: inner sizes are exact
    path->node[level] = id;
    path->at[level] = at;
    id = node.value[at];
  }
  return true;
}

void FreeIndex::Find(const FreeTree& tree, uint32_t key, FreePath* path) const {
  uint32_t id = tree.root;
  for (uint32_t level = 0; level < tree.height; ++level) {
    const Node& node = nodes_[id];
    const uint32_t upto = CountUpTo(node, key);
    path->node[level] = id;
    path->at[level] = upto == 0 ? 0 : upto - 1;
    id = node.value[path->at[level]];
  }
}

uint32_t FreeIndex::ValueAt(const FreeTree& tree, const FreePath& path) const {
  const uint32_t leaf = tree.height - 1;
  return nodes_[path.node[leaf]].value[path.at[leaf]];
}

void FreeIndex::RefreshAbove(const FreePath& path, uint32_t level) {
  for (; level > 0; --level) {
    const Node& child = nodes_[path.node[level]];
    Node& parent = nodes_[path.node[level - 1]];
    const uint32_t at = path.at[level - 1];
    const uint32_t largest = Largest(child);
    const uint32_t lowest = child.key[0] < parent.key[at] ? child.key[0] : parent.key[at];
    if (parent.size[at] == largest && parent.key[at] == lowest) return;
    parent.size[at] = largest;
    parent.key[at] = lowest;
  }
}

void FreeIndex::Insert(FreeTree& tree, uint32_t key, uint32_t size, uint32_t value) {
  if (tree.height == 0) {
    tree.root = NewNode();
    tree.height = 1;
  }
  FreePath path;
  Find(tree, key, &path);
  const uint32_t leaf = tree.height - 1;
  Place(tree, path, leaf, CountUpTo(nodes_[path.node[leaf]], key), key, size, value);
}

void FreeIndex::Place(FreeTree& tree, const FreePath& path, uint32_t level, uint32_t at,
                      uint32_t key, uint32_t size, uint32_t value) {
  if (nodes_[path.node[level]].count < kFanout) {
    Node& node = nodes_[path.node[level]];
    Shift(node.key, at + 1, at, node.count - at);
    Shift(node.size, at + 1, at, node.count - at);
    Shift(node.value, at + 1, at, node.count - at);
    node.key[at] = key;
    node.size[at] = size;
    node.value[at] = value;
    ++node.count;
    RefreshAbove(path, level);
    return;
  }
  const uint32_t left_id = path.node[level];
  const uint32_t right_id = NewNode();
  Node& left = nodes_[left_id];
  Node& right = nodes_[right_id];
  constexpr uint32_t kHalf = kFanout / 2;
  memcpy(right.key, left.key + kHalf, kHalf * sizeof(uint32_t));
  memcpy(right.size, left.size + kHalf, kHalf * sizeof(uint32_t));
  memcpy(right.value, left.value + kHalf, kHalf * sizeof(uint32_t));
  for (uint32_t i = kHalf; i < kFanout; ++i) {
    left.key[i] = kLimit;
    left.size[i] = 0;
  }
  left.count = right.count = kHalf;
  Node& target = at <= kHalf ? left : right;
  const uint32_t place = at <= kHalf ? at : at - kHalf;
  Shift(target.key, place + 1, place, target.count - place);
  Shift(target.size, place + 1, place, target.count - place);
  Shift(target.value, place + 1, place, target.count - place);
  target.key[place] = key;
  target.size[place] = size;
  target.value[place] = value;
  ++target.count;
  if (level == 0) {
    const uint32_t root = NewNode();
    Node& top = nodes_[root];
    top.key[0] = left.key[0];
    top.size[0] = Largest(left);
    top.value[0] = left_id;
    top.key[1] = right.key[0];
    top.size[1] = Largest(right);
    top.value[1] = right_id;
    top.count = 2;
    tree.root = root;
    ++tree.height;
    return;
  }
  RefreshAbove(path, level);  // the left half may have become smaller, or have a lower first key
  Place(tree, path, level - 1, path.at[level - 1] + 1, right.key[0], Largest(right), right_id);
}

void FreeIndex::Erase(FreeTree& tree, const FreePath& path) {
  uint32_t level = tree.height - 1;
  while (true) {
    Node& node = nodes_[path.node[level]];
    const uint32_t at = path.at[level];
    const uint32_t after = node.count - at - 1;
    Shift(node.key, at, at + 1, after);
    Shift(node.size, at, at + 1, after);
    Shift(node.value, at, at + 1, after);
    --node.count;
    node.key[node.count] = kLimit;
    node.size[node.count] = 0;
    if (node.count > 0) break;
    FreeNode(path.node[level]);
    if (level == 0) {
      tree.height = 0;
      return;
    }
    --level;
  }
  RefreshAbove(path, level);
  while (tree.height > 1 && nodes_[tree.root].count == 1) {
    const uint32_t only = nodes_[tree.root].value[0];
    FreeNode(tree.root);
    tree.root = only;
    --tree.height;
  }
}

void FreeIndex::Change(FreeTree& tree, const FreePath& path, uint32_t key, uint32_t size) {
  const uint32_t leaf = tree.height - 1;
  Node& node = nodes_[path.node[leaf]];
  const uint32_t at = path.at[leaf];
  if (leaf > 0 && at + 1 == node.count && key > node.key[at]) {
    // The next leaf's bound may be lower than its first key: the entry may belong there now.
    const uint32_t value = node.value[at];
    Erase(tree, path);
    Insert(tree, key, size, value);
    return;
  }
  node.key[at] = key;
  node.size[at] = size;
  RefreshAbove(path, leaf);
}

}  // namespace sluice
