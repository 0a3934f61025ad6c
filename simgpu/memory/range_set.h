// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace sluice::simgpu {

/// A set of numbers as ranges [start, end). Pure.
class RangeSet {
 public:
  void Add(uint64_t start, uint64_t end) {
    if (start >= end) return;
    auto next = ranges_.lower_bound(start);
    if (next != ranges_.begin() && std::prev(next)->second >= start) {
      --next;
      start = next->first;
    }
    while (next != ranges_.end() && next->first <= end) {
      if (next->second > end) end = next->second;
      next = ranges_.erase(next);
    }
    ranges_[start] = end;
  }

  void Remove(uint64_t start, uint64_t end) {
    if (start >= end) return;
    auto next = ranges_.lower_bound(start);
    if (next != ranges_.begin() && std::prev(next)->second > start) --next;
    while (next != ranges_.end() && next->first < end) {
      const auto [first, last] = *next;
      next = ranges_.erase(next);
      if (first < start) ranges_[first] = start;
      if (last > end) ranges_[end] = last;
    }
  }

  /// By start; the values are the ends.
  const std::map<uint64_t, uint64_t>& ranges() const { return ranges_; }

 private:
  std::map<uint64_t, uint64_t> ranges_;
};

}  // namespace sluice::simgpu
