// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "scheduler/place/offline/holes.h"

namespace sluice::scheduler {
namespace {

constexpr uint64_t kNoEnd = ~uint64_t{0};

// Nothing that is placed later lives earlier.
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
    const uint64_t size = buffers[i].size;
    offsets[i] = kind == FitHole::kBest ? holes.TakeBest(size) : holes.TakeFirst(size);
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
