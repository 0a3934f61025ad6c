// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/fit.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace sluice::scheduler {
namespace {

constexpr uint64_t kNoEnd = ~uint64_t{0};

// Holes between what lives now; the last one has no end. For the order of time, in which nothing
// that is placed later lives earlier.
class Holes {
 public:
  Holes() { Add(0, kNoEnd); }

  uint64_t Take(uint64_t size, FitHole kind) {
    const uint64_t start =
        kind == FitHole::kBest ? by_size_.lower_bound({size, 0})->second : FirstOf(size);
    const uint64_t end = by_start_.at(start);
    Remove(start, end);
    if (end - start > size) Add(start + size, end);
    return start;
  }

  void Give(uint64_t start, uint64_t size) {
    uint64_t end = start + size;
    const auto above = by_start_.find(end);
    if (above != by_start_.end()) {
      end = above->second;
      Remove(start + size, end);
    }
    const auto next = by_start_.lower_bound(start);
    if (next != by_start_.begin() && std::prev(next)->second == start) {
      const uint64_t below = std::prev(next)->first;
      Remove(below, start);
      start = below;
    }
    Add(start, end);
  }

 private:
  uint64_t FirstOf(uint64_t size) const {
    for (const auto& [start, end] : by_start_) {
      if (end - start >= size) return start;
    }
    return 0;  // never: the last hole has no end
  }
  void Add(uint64_t start, uint64_t end) {
    by_start_.emplace(start, end);
    by_size_.emplace(end - start, start);
  }
  void Remove(uint64_t start, uint64_t end) {
    by_start_.erase(start);
    by_size_.erase({end - start, start});
  }

  std::map<uint64_t, uint64_t> by_start_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
};

Offsets PlaceInTime(std::span<const Buffer> buffers, std::span<const uint32_t> order,
                    FitHole kind) {
  Offsets offsets(buffers.size());
  Holes holes;
  std::multimap<uint64_t, uint32_t> ends;  // of what lives now
  for (const uint32_t i : order) {
    while (!ends.empty() && ends.begin()->first <= buffers[i].lower) {
      const uint32_t gone = ends.begin()->second;
      holes.Give(offsets[gone], buffers[gone].size);
      ends.erase(ends.begin());
    }
    offsets[i] = holes.Take(buffers[i].size, kind);
    ends.emplace(buffers[i].upper, i);
  }
  return offsets;
}

// Larger comes first. Roots are exact to the last bit everywhere, as powers are not.
double Rank(const Buffer& buffer, FitOrder order) {
  const auto size = static_cast<double>(buffer.size);
  const auto life = static_cast<double>(buffer.upper - buffer.lower);
  switch (order) {
    case FitOrder::kSize:
      return size;
    case FitOrder::kQuarter:
      return size * std::sqrt(std::sqrt(life));
    case FitOrder::kHalf:
      return size * std::sqrt(life);
    case FitOrder::kArea:
      return size * life;
    case FitOrder::kWidth:
      return life;
    case FitOrder::kTime:
    case FitOrder::kEnd:
      return 0;
  }
  return 0;
}

}  // namespace

std::string_view Name(FitOrder order) {
  switch (order) {
    case FitOrder::kSize:
      return "size";
    case FitOrder::kQuarter:
      return "size and life^1/4";
    case FitOrder::kHalf:
      return "size and life^1/2";
    case FitOrder::kArea:
      return "area";
    case FitOrder::kWidth:
      return "width";
    case FitOrder::kTime:
      return "time";
    case FitOrder::kEnd:
      return "end";
  }
  return "";
}

std::string_view Name(FitHole hole) { return hole == FitHole::kFirst ? "first fit" : "best fit"; }

std::vector<uint32_t> InOrder(std::span<const Buffer> buffers, FitOrder order) {
  std::vector<double> rank;
  rank.reserve(buffers.size());
  for (const Buffer& buffer : buffers) rank.push_back(Rank(buffer, order));
  std::vector<uint32_t> sequence(buffers.size());
  std::iota(sequence.begin(), sequence.end(), 0u);
  std::sort(sequence.begin(), sequence.end(), [&](uint32_t a, uint32_t b) {
    const Buffer& x = buffers[a];
    const Buffer& y = buffers[b];
    if (rank[a] != rank[b]) return rank[a] > rank[b];
    if (order == FitOrder::kTime && x.lower != y.lower) return x.lower < y.lower;
    if (order == FitOrder::kTime && x.upper != y.upper) return x.upper > y.upper;
    if (order == FitOrder::kEnd && x.upper != y.upper) return x.upper > y.upper;
    if (order == FitOrder::kEnd && x.lower != y.lower) return x.lower < y.lower;
    if (x.size != y.size) return x.size > y.size;
    if (x.lower != y.lower) return x.lower < y.lower;
    return a < b;
  });
  return sequence;
}

// Those that are placed, from below: a walk over the ones that live at the same time finds the
// holes between them.
Offsets PlaceInSequence(std::span<const Buffer> buffers, std::span<const uint32_t> sequence,
                        FitHole hole, uint64_t* looks) {
  struct Placed {
    uint64_t offset, end, lower, upper;
  };
  Offsets offsets(buffers.size());
  std::vector<Placed> placed;
  placed.reserve(buffers.size());
  for (const uint32_t i : sequence) {
    const Buffer& buffer = buffers[i];
    uint64_t top = 0;
    uint64_t smallest = kNoEnd;
    std::optional<uint64_t> found;
    size_t at = 0;
    for (; at < placed.size(); ++at) {
      const Placed& other = placed[at];
      if (other.lower >= buffer.upper || buffer.lower >= other.upper) continue;
      if (other.offset > top && other.offset - top >= buffer.size &&
          other.offset - top < smallest) {
        smallest = other.offset - top;
        found = top;
        if (hole == FitHole::kFirst) break;
      }
      top = std::max(top, other.end);
    }
    *looks += at;
    offsets[i] = found.value_or(top);
    const Placed entry{offsets[i], offsets[i] + buffer.size, buffer.lower, buffer.upper};
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), entry,
                         [](const Placed& a, const Placed& b) { return a.offset < b.offset; }),
        entry);
  }
  return offsets;
}

Offsets PlaceByFit(std::span<const Buffer> buffers, FitOrder order, FitHole hole) {
  const std::vector<uint32_t> sequence = InOrder(buffers, order);
  if (order == FitOrder::kTime) return PlaceInTime(buffers, sequence, hole);
  if (order == FitOrder::kEnd) {
    std::vector<Buffer> backwards;
    backwards.reserve(buffers.size());
    for (const Buffer& buffer : buffers) {
      backwards.push_back({~buffer.upper, ~buffer.lower, buffer.size});
    }
    return PlaceInTime(backwards, sequence, hole);
  }
  uint64_t looks = 0;
  return PlaceInSequence(buffers, sequence, hole, &looks);
}

}  // namespace sluice::scheduler
