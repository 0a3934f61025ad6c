// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace sluice::scheduler {

/// What is free between what lives now, in bytes from 0 up; the highest hole has no end. Every call
/// is a logarithm of the number of holes, whatever their sizes: a treap by offset whose nodes know
/// the largest hole below them, and a set by size.
class Holes {
 public:
  Holes() { Add(0, ~uint64_t{0}); }

  /// From the bottom of the lowest hole that is large enough.
  uint64_t TakeFirst(uint64_t size) { return TakeFrom(FirstOf(size), size); }
  /// From the bottom of the smallest that is large enough, of the lowest among equals.
  uint64_t TakeBest(uint64_t size) {
    return TakeFrom(by_size_.lower_bound({size, 0})->second, size);
  }
  /// Of what was taken.
  void Give(uint64_t start, uint64_t size);

  /// Nodes of the treap that were looked at so far.
  uint64_t looks() const { return looks_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Node {
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t largest = 0;  // of it and all below it
    uint32_t priority = 0;
    uint32_t left = kNone;
    uint32_t right = kNone;
  };

  uint64_t TakeFrom(uint64_t start, uint64_t size);
  void Add(uint64_t start, uint64_t end);
  /// Removes the hole that starts there and returns its end; nullopt: none does.
  std::optional<uint64_t> Remove(uint64_t start);
  uint64_t FirstOf(uint64_t size) const;
  /// Start of the hole that ends there.
  std::optional<uint64_t> StartOf(uint64_t end) const;

  uint64_t LargestOf(uint32_t at) const { return at == kNone ? 0 : nodes_[at].largest; }
  void Update(uint32_t at);
  /// Of `at` what starts before `start`, and the rest.
  std::pair<uint32_t, uint32_t> Split(uint32_t at, uint64_t start);
  uint32_t Join(uint32_t low, uint32_t high);
  uint32_t Insert(uint32_t at, uint32_t fresh);
  uint32_t Cut(uint32_t at, uint64_t start, uint32_t* removed);

  std::vector<Node> nodes_;
  std::vector<uint32_t> unused_;
  uint32_t root_ = kNone;
  uint32_t priority_ = 1;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
  mutable uint64_t looks_ = 0;
};

}  // namespace sluice::scheduler
