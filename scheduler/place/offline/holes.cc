// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/holes.h"

#include <algorithm>
#include <tuple>

namespace sluice::scheduler {

uint64_t Holes::TakeFrom(uint64_t start, uint64_t size) {
  const uint64_t end = *Remove(start);
  if (end - start > size) Add(start + size, end);
  return start;
}

void Holes::Give(uint64_t start, uint64_t size) {
  uint64_t end = start + size;
  if (const auto above = Remove(end)) end = *above;
  if (const auto below = StartOf(start)) {
    Remove(*below);
    start = *below;
  }
  Add(start, end);
}

void Holes::Add(uint64_t start, uint64_t end) {
  by_size_.emplace(end - start, start);
  uint32_t fresh = static_cast<uint32_t>(nodes_.size());
  if (unused_.empty()) {
    nodes_.emplace_back();
  } else {
    fresh = unused_.back();
    unused_.pop_back();
  }
  // xorshift32 (Marsaglia, 2003): equal inputs have equal trees, and no order of offsets a deep
  // one.
  priority_ ^= priority_ << 13U;
  priority_ ^= priority_ >> 17U;
  priority_ ^= priority_ << 5U;
  nodes_[fresh] = {start, end, end - start, priority_};
  root_ = Insert(root_, fresh);
}

std::optional<uint64_t> Holes::Remove(uint64_t start) {
  uint32_t removed = kNone;
  root_ = Cut(root_, start, &removed);
  if (removed == kNone) return std::nullopt;
  const uint64_t end = nodes_[removed].end;
  by_size_.erase({end - start, start});
  unused_.push_back(removed);
  return end;
}

// There is always one: the last hole has no end.
uint64_t Holes::FirstOf(uint64_t size) const {
  for (uint32_t at = root_;;) {
    ++looks_;
    const Node& node = nodes_[at];
    if (LargestOf(node.left) >= size) {
      at = node.left;
    } else if (node.end - node.start >= size) {
      return node.start;
    } else {
      at = node.right;
    }
  }
}

std::optional<uint64_t> Holes::StartOf(uint64_t end) const {
  for (uint32_t at = root_; at != kNone;) {
    ++looks_;
    const Node& node = nodes_[at];
    if (node.end == end) return node.start;
    at = node.end < end ? node.right : node.left;
  }
  return std::nullopt;
}

void Holes::Update(uint32_t at) {
  Node& node = nodes_[at];
  node.largest = std::max({node.end - node.start, LargestOf(node.left), LargestOf(node.right)});
}

std::pair<uint32_t, uint32_t> Holes::Split(uint32_t at, uint64_t start) {
  if (at == kNone) return {kNone, kNone};
  ++looks_;
  Node& node = nodes_[at];
  std::pair<uint32_t, uint32_t> parts;
  if (node.start < start) {
    parts = Split(node.right, start);
    node.right = std::exchange(parts.first, at);
  } else {
    parts = Split(node.left, start);
    node.left = std::exchange(parts.second, at);
  }
  Update(at);
  return parts;
}

uint32_t Holes::Join(uint32_t low, uint32_t high) {
  if (low == kNone) return high;
  if (high == kNone) return low;
  ++looks_;
  const bool low_is_above = nodes_[low].priority > nodes_[high].priority;
  const uint32_t top = low_is_above ? low : high;
  if (low_is_above) {
    nodes_[low].right = Join(nodes_[low].right, high);
  } else {
    nodes_[high].left = Join(low, nodes_[high].left);
  }
  Update(top);
  return top;
}

uint32_t Holes::Insert(uint32_t at, uint32_t fresh) {
  Node& node = nodes_[fresh];
  if (at == kNone || nodes_[at].priority < node.priority) {
    std::tie(node.left, node.right) = Split(at, node.start);
    Update(fresh);
    return fresh;
  }
  ++looks_;
  uint32_t& side = node.start < nodes_[at].start ? nodes_[at].left : nodes_[at].right;
  side = Insert(side, fresh);
  Update(at);
  return at;
}

uint32_t Holes::Cut(uint32_t at, uint64_t start, uint32_t* removed) {
  if (at == kNone) return kNone;
  ++looks_;
  Node& node = nodes_[at];
  if (node.start == start) {
    *removed = at;
    return Join(node.left, node.right);
  }
  uint32_t& side = start < node.start ? node.left : node.right;
  side = Cut(side, start, removed);
  Update(at);
  return at;
}

}  // namespace sluice::scheduler
