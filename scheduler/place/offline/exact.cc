// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/exact.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

#include "scheduler/place/offline/sections.h"

namespace sluice::scheduler {
namespace {

constexpr uint64_t kFirstPatience = 20'000;  // nodes
constexpr uint64_t kPatienceGrowth = 10;

// What decides between buffers that can be placed at the same height.
enum class Key : uint8_t { kArea, kWidth, kLoad };  // the most first; load: of its fullest section
using Keys = std::array<Key, 3>;
constexpr std::array<Keys, kExactOrders> kOrders = {{{Key::kArea, Key::kWidth, Key::kLoad},
                                                     {Key::kLoad, Key::kArea, Key::kWidth},
                                                     {Key::kLoad, Key::kWidth, Key::kArea},
                                                     {Key::kWidth, Key::kArea, Key::kLoad}}};

std::vector<uint32_t> Ranked(std::span<const Buffer> buffers, const Sections& sections,
                             const Keys& keys) {
  std::vector<std::array<long double, 3>> value(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto width = static_cast<long double>(buffers[i].upper - buffers[i].lower);
    const auto range = sections.of[i];
    const uint64_t load =
        *std::max_element(sections.load.begin() + range.first, sections.load.begin() + range.last);
    for (size_t k = 0; k < keys.size(); ++k) {
      value[i][k] = keys[k] == Key::kArea    ? width * static_cast<long double>(buffers[i].size)
                    : keys[k] == Key::kWidth ? width
                                             : static_cast<long double>(load);
    }
  }
  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return value[a] > value[b]; });
  return order;
}

// One search in one order. `Height`: 32 bits where they suffice; most of the time goes into a loop
// over them that compilers do four at a time. An item is a buffer by its rank, so that of two the
// one with the lower number is tried first.
template <class Height>
class Search {
 public:
  Search(const Sections& sections, std::vector<uint32_t> order, std::span<const Height> sizes,
         std::vector<Height> room)
      : room_(std::move(room)), order_(std::move(order)), rest_(sections.load.size(), 0) {
    const auto count = static_cast<uint32_t>(order_.size());
    for (const uint32_t buffer : order_) {
      ranges_.push_back(sections.of[buffer]);
      sizes_.push_back(sizes[buffer]);
      for (uint32_t s = ranges_.back().first; s < ranges_.back().last; ++s) {
        rest_[s] += sizes_.back();
      }
    }
    meets_.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      for (uint32_t j = 0; j < count; ++j) {
        if (i != j && ranges_[i].first < ranges_[j].last && ranges_[j].first < ranges_[i].last) {
          meets_[i].push_back(j);
        }
      }
    }
    offsets_.assign(count, 0);
    placed_.assign(count, false);
    lowest_.assign(rest_.size(), 0);
  }

  enum class End : uint8_t { kPlaced, kImpossible, kOutOfPatience };
  End Run(uint64_t patience, const std::function<bool()>& go_on, uint64_t* nodes) {
    patience_ = patience;
    go_on_ = &go_on;
    items_.resize(order_.size());
    std::iota(items_.begin(), items_.end(), 0u);
    std::stable_sort(items_.begin(), items_.end(), [this](uint32_t a, uint32_t b) {
      return ranges_[a].first < ranges_[b].first;
    });
    const bool placed = items_.empty() || PlaceGroups(0, items_.size(), {0, 0});
    *nodes += nodes_;
    return placed ? End::kPlaced : stopped_ ? End::kOutOfPatience : End::kImpossible;
  }
  bool told_to_stop() const { return told_to_stop_; }
  /// Of each buffer.
  std::vector<Height> Heights() const {
    std::vector<Height> heights(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) heights[order_[i]] = offsets_[i];
    return heights;
  }

 private:
  // What was placed last. What comes next is higher, or as high and of a higher number: of the
  // orders in which one placement can come about, only this one is looked at.
  struct Last {
    Height offset;
    uint32_t item;
  };
  struct Undo {
    uint32_t item;
    Height offset;  // kWasPlaced: it was placed; else what its offset was
  };
  static constexpr Height kNone = std::numeric_limits<Height>::max();
  static constexpr Height kWasPlaced = -1;

  // Items [begin, end) of items_, in the order of their first sections; those that do not meet
  // through others are placed by themselves. On failure everything is as before.
  bool PlaceGroups(size_t begin, size_t end, Last last) {
    const size_t before = undo_.size();
    size_t from = begin;
    uint32_t reach = ranges_[items_[begin]].last;
    for (size_t k = begin + 1; k <= end; ++k) {
      if (k < end && ranges_[items_[k]].first < reach) {
        reach = std::max(reach, ranges_[items_[k]].last);
        continue;
      }
      if (!PlaceGroup(from, k, reach, last, end)) {
        Restore(before);
        return false;
      }
      if (k == end) break;
      from = k;
      reach = ranges_[items_[k]].last;
    }
    return true;
  }

  // `reach`: behind the last section of theirs. From `unused` on items_ is free.
  bool PlaceGroup(size_t begin, size_t end, uint32_t reach, Last last, size_t unused) {
    if (Stop()) return false;
    if (items_.size() < unused + 2 * (end - begin)) items_.resize(2 * (unused + 2 * (end - begin)));
    const uint32_t from = ranges_[items_[begin]].first;
    std::fill(lowest_.begin() + from, lowest_.begin() + reach, kNone);
    Height ceiling = kNone;  // what is not placed below this leaves room for one below itself
    for (size_t k = begin; k < end; ++k) {
      const uint32_t i = items_[k];
      const Height offset = offsets_[i];
      Height* const lowest = lowest_.data() + ranges_[i].first;
      const uint32_t width = ranges_[i].last - ranges_[i].first;
      for (uint32_t s = 0; s < width; ++s) lowest[s] = lowest[s] < offset ? lowest[s] : offset;
      ceiling = std::min(ceiling, std::max(offset, last.offset) + sizes_[i]);
    }
    for (uint32_t s = from; s < reach; ++s) {
      if (lowest_[s] != kNone && std::max(lowest_[s], last.offset) + rest_[s] > room_[s]) {
        return false;
      }
    }
    // All that is left lies as high as the next one or higher, in each section.
    Height highest = kNone;
    for (uint32_t s = from; s < reach; ++s) highest = std::min(highest, room_[s] - rest_[s]);
    size_t next = unused;
    for (size_t k = begin; k < end; ++k) {
      const uint32_t i = items_[k];
      const Height offset = offsets_[i];
      if (offset < last.offset || offset >= ceiling || offset > highest) continue;
      if (offset == last.offset && i < last.item) continue;
      items_[next++] = i;
    }
    std::sort(items_.begin() + static_cast<ptrdiff_t>(unused),
              items_.begin() + static_cast<ptrdiff_t>(next), [this](uint32_t a, uint32_t b) {
                return std::tie(offsets_[a], a) < std::tie(offsets_[b], b);
              });
    for (size_t candidate = unused; candidate < next; ++candidate) {
      const uint32_t i = items_[candidate];
      const size_t before = undo_.size();
      Place(i);
      if (end - begin == 1) return true;
      size_t to = next;
      for (size_t k = begin; k < end; ++k) {
        if (items_[k] != i) items_[to++] = items_[k];
      }
      if (PlaceGroups(next, to, {offsets_[i], i})) return true;
      Restore(before);
      if (stopped_) return false;
    }
    return false;
  }

  void Place(uint32_t i) {
    placed_[i] = true;
    undo_.push_back({i, kWasPlaced});
    for (uint32_t s = ranges_[i].first; s < ranges_[i].last; ++s) rest_[s] -= sizes_[i];
    const Height top = offsets_[i] + sizes_[i];
    for (const uint32_t j : meets_[i]) {
      if (placed_[j] || offsets_[j] >= top) continue;
      undo_.push_back({j, offsets_[j]});
      offsets_[j] = top;
    }
  }

  void Restore(size_t before) {
    for (; undo_.size() > before; undo_.pop_back()) {
      const Undo& undo = undo_.back();
      if (undo.offset != kWasPlaced) {
        offsets_[undo.item] = undo.offset;
        continue;
      }
      placed_[undo.item] = false;
      const auto range = ranges_[undo.item];
      for (uint32_t s = range.first; s < range.last; ++s) rest_[s] += sizes_[undo.item];
    }
  }

  bool Stop() {
    ++nodes_;
    if (nodes_ % kNodesPerQuestion == 0 && !(*go_on_)()) stopped_ = told_to_stop_ = true;
    if (nodes_ > patience_) stopped_ = true;
    return stopped_;
  }

  std::vector<Height> room_;     // of each section: how high it may be filled
  std::vector<uint32_t> order_;  // the buffer of each item
  std::vector<Sections::Range> ranges_;
  std::vector<Height> sizes_;
  std::vector<std::vector<uint32_t>> meets_;
  std::vector<Height> offsets_;  // placed, or the least that what is placed leaves
  std::vector<char> placed_;
  std::vector<Height> rest_;    // of each section: what is still to be placed
  std::vector<Height> lowest_;  // scratch: of each section, the least offset of any of those
  std::vector<uint32_t> items_;
  std::vector<Undo> undo_;
  uint64_t nodes_ = 0;
  uint64_t patience_ = 0;
  const std::function<bool()>* go_on_ = nullptr;
  bool stopped_ = false;
  bool told_to_stop_ = false;
};

template <class Height>
ExactResult SearchAll(std::span<const Buffer> buffers, const Sections& sections,
                      std::span<const uint64_t> room, uint64_t grain, uint64_t patience,
                      const std::function<bool()>& go_on) {
  using Outcome = ExactResult::Outcome;
  std::vector<Height> heights;
  for (const uint64_t height : room) heights.push_back(static_cast<Height>(height / grain));
  std::vector<Height> sizes;
  for (const Buffer& buffer : buffers) sizes.push_back(static_cast<Height>(buffer.size / grain));
  ExactResult result;
  for (;; patience *= kPatienceGrowth) {
    for (const Keys& keys : kOrders) {
      Search<Height> search(sections, Ranked(buffers, sections, keys), sizes, heights);
      const auto end = search.Run(patience, go_on, &result.nodes);
      if (search.told_to_stop()) return result;
      if (end == Search<Height>::End::kOutOfPatience) continue;
      if (end == Search<Height>::End::kImpossible) {
        result.outcome = Outcome::kImpossible;
        return result;
      }
      result.outcome = Outcome::kPlaced;
      for (const Height height : search.Heights()) {
        result.offsets.push_back(static_cast<uint64_t>(height) * grain);
      }
      return result;
    }
  }
}

}  // namespace

ExactResult PlaceExactly(std::span<const Buffer> buffers, uint64_t capacity,
                         const std::function<bool()>& go_on) {
  return PlaceExactlyBelow(buffers, {}, capacity, kFirstPatience, go_on);
}

ExactResult PlaceExactlyBelow(std::span<const Buffer> buffers, std::span<const Buffer> above,
                              uint64_t capacity, uint64_t patience,
                              const std::function<bool()>& go_on) {
  ExactResult result;
  std::vector<Buffer> all(buffers.begin(), buffers.end());
  all.insert(all.end(), above.begin(), above.end());
  if (PeakLoad(all) > capacity) {
    result.outcome = ExactResult::Outcome::kImpossible;
    return result;
  }
  if (buffers.size() > kMostExactBuffers) return result;
  const Sections sections(all);
  uint64_t total = 0;
  uint64_t grain = 0;  // a tight placement has nothing but multiples of it
  for (const Buffer& buffer : buffers) {
    total += buffer.size;
    grain = std::gcd(grain, buffer.size);
  }
  if (grain == 0) grain = 1;
  std::vector<uint64_t> room(sections.load.size(), std::min(capacity, total));
  for (size_t i = buffers.size(); i < all.size(); ++i) {
    for (uint32_t s = sections.of[i].first; s < sections.of[i].last; ++s) {
      room[s] = std::min(room[s], capacity - all[i].size);
    }
  }
  // The sum of an offset, a size and what is left of a section stays in range.
  if (std::min(capacity, total) / grain < (uint64_t{1} << 29)) {
    return SearchAll<int32_t>(buffers, sections, room, grain, patience, go_on);
  }
  return SearchAll<int64_t>(buffers, sections, room, grain, patience, go_on);
}

}  // namespace sluice::scheduler
