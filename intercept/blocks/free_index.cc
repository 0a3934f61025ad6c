// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/free_index.h"

#include <string.h>

namespace sluice {

uint32_t FreeIndex::Largest(const Node& node) {
  // All of them, four side by side: unused ones are 0.
  uint32_t largest[4] = {};
  for (uint32_t i = 0; i < kFanout; i += 4) {
    for (uint32_t k = 0; k < 4; ++k) {
      largest[k] = node.size[i + k] > largest[k] ? node.size[i + k] : largest[k];
    }
  }
  const uint32_t a = largest[0] > largest[1] ? largest[0] : largest[1];
  const uint32_t b = largest[2] > largest[3] ? largest[2] : largest[3];
  return a > b ? a : b;
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
  for (uint32_t i = 0; i < kRoom; ++i) {
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

// An entry of the node at `level` went from `old_size` to `new_size` (0: it was or is not there),
// or got a lower key: makes the bounds above right again.
void FreeIndex::RefreshAbove(const FreePath& path, uint32_t level, uint32_t old_size,
                             uint32_t new_size) {
  for (; level > 0; --level) {
    const Node& child = nodes_[path.node[level]];
    Node& parent = nodes_[path.node[level - 1]];
    const uint32_t at = path.at[level - 1];
    const uint32_t stored = parent.size[at];
    const uint32_t lowest = child.key[0] < parent.key[at] ? child.key[0] : parent.key[at];
    uint32_t largest = stored;
    if (new_size > stored) {
      largest = new_size;
    } else if (old_size == stored && new_size < stored) {
      largest = Largest(child);
    }
    if (largest == stored && parent.key[at] == lowest) return;
    parent.size[at] = largest;
    parent.key[at] = lowest;
    old_size = stored;
    new_size = largest;
  }
}

// Moves a nearly empty node's entries to a neighbour below the same parent, if they fit with room
// to spare; the caller then removes the empty node at path.at[level - 1]. Trees get low again that
// way: most of the time there are few free blocks.
bool FreeIndex::MergeWithSibling(const FreePath& path, uint32_t level) {
  if (level == 0) return false;
  Node& node = nodes_[path.node[level]];
  if (node.count > kFanout / 4) return false;
  Node& parent = nodes_[path.node[level - 1]];
  const uint32_t at = path.at[level - 1];
  const bool to_left = at > 0;
  if (!to_left && parent.count == 1) return false;
  const uint32_t sibling_at = to_left ? at - 1 : at + 1;
  Node& sibling = nodes_[parent.value[sibling_at]];
  if (sibling.count + node.count > kFanout * 3 / 4) return false;
  for (uint32_t i = 0; i < node.count; ++i) {
    const uint32_t place = to_left ? sibling.count : i;
    InsertAt(sibling, place, node.key[i], node.size[i], node.value[i]);
  }
  if (parent.size[at] > parent.size[sibling_at]) parent.size[sibling_at] = parent.size[at];
  if (!to_left) parent.key[sibling_at] = parent.key[at];
  node.count = 0;
  return true;
}

void FreeIndex::InsertInTree(FreeTree& tree, uint32_t key, uint32_t size, uint32_t value) {
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
    InsertAt(nodes_[path.node[level]], at, key, size, value);
    RefreshAbove(path, level, 0, size);
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
  InsertAt(at <= kHalf ? left : right, at <= kHalf ? at : at - kHalf, key, size, value);
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
  // The left half may have become smaller, or have a lower first key.
  const uint32_t whole = nodes_[path.node[level - 1]].size[path.at[level - 1]];
  RefreshAbove(path, level, whole, Largest(left) < whole ? 0 : Largest(left));
  Place(tree, path, level - 1, path.at[level - 1] + 1, right.key[0], Largest(right), right_id);
}

void FreeIndex::EraseInTree(FreeTree& tree, const FreePath& path) {
  uint32_t level = tree.height - 1;
  while (true) {
    Node& node = nodes_[path.node[level]];
    const uint32_t at = path.at[level];
    const uint32_t size = node.size[at];
    EraseAt(node, at);
    if (node.count > 0) {
      RefreshAbove(path, level, size, 0);
      if (!MergeWithSibling(path, level)) break;
    }
    FreeNode(path.node[level]);
    if (level == 0) {
      tree.height = 0;
      return;
    }
    --level;
  }
  while (tree.height > 1 && nodes_[tree.root].count == 1) {
    const uint32_t only = nodes_[tree.root].value[0];
    FreeNode(tree.root);
    tree.root = only;
    --tree.height;
  }
}

void FreeIndex::ChangeInTree(FreeTree& tree, const FreePath& path, uint32_t key, uint32_t size) {
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
  const uint32_t old_size = node.size[at];
  node.key[at] = key;
  node.size[at] = size;
  RefreshAbove(path, leaf, old_size, size);
}

}  // namespace sluice
