// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/two_ends.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::scheduler {
namespace {

// What is large, as a part of the peak load; and how many may be, for the exact search.
constexpr std::array<uint64_t, 7> kLargeParts = {32, 64, 128, 256, 512, 1024, 2048};
constexpr size_t kMostLarge = 1024;
// Nodes for each order of the exact search, beyond one for each buffer. What is not found soon in
// one order often is in the next, or with a little more room.
constexpr uint64_t kPatience = 2048;
constexpr std::array kStackOrders = {FitOrder::kEnd, FitOrder::kWidth, FitOrder::kTime};

std::vector<Buffer> Pick(std::span<const Buffer> buffers, std::span<const uint32_t> chosen) {
  std::vector<Buffer> picked;
  picked.reserve(chosen.size());
  for (const uint32_t i : chosen) picked.push_back(buffers[i]);
  return picked;
}

}  // namespace

TwoEnds::TwoEnds(std::span<const Buffer> buffers, const Sections& sections, uint64_t large_bytes,
                 FitOrder order)
    : buffers_(buffers), sections_(&sections), order_(order), stack_(sections.load.size(), 0) {
  std::vector<uint64_t> large_load(sections.load.size(), 0);
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size < large_bytes) {
      small_.push_back(i);
      continue;
    }
    large_.push_back(i);
    for (uint32_t s = sections.of[i].first; s < sections.of[i].last; ++s) {
      large_load[s] += buffers[i].size;
    }
  }
  depths_ = PlaceByFit(Pick(buffers, small_), order, FitHole::kFirst);
  for (size_t k = 0; k < small_.size(); ++k) {
    const uint32_t i = small_[k];
    for (uint32_t s = sections.of[i].first; s < sections.of[i].last; ++s) {
      stack_[s] = std::max(stack_[s], depths_[k] + buffers[i].size);
    }
  }
  for (size_t s = 0; s < stack_.size(); ++s) lowest_ = std::max(lowest_, stack_[s] + large_load[s]);
}

// As few steps as say the same to the large ones: between two of their begins and ends only the
// lowest counts.
std::vector<Buffer> TwoEnds::StackAbove() const {
  std::vector<char> cut(stack_.size() + 1, false);
  for (const uint32_t i : large_) cut[sections_->of[i].first] = cut[sections_->of[i].last] = true;
  std::vector<Buffer> steps;
  for (size_t first = 0, last = 0; first < stack_.size(); first = last) {
    uint64_t reach = 0;
    do {
      reach = std::max(reach, stack_[last++]);
    } while (last < stack_.size() && !cut[last]);
    if (reach > 0) steps.push_back({sections_->time[first], sections_->time[last - 1] + 1, reach});
  }
  return steps;
}

ExactResult TwoEnds::Place(uint64_t capacity, uint64_t most_nodes) const {
  ExactResult result;
  if (capacity < lowest_) {
    result.outcome = ExactResult::Outcome::kImpossible;
    return result;
  }
  const uint64_t patience = kPatience + large_.size();
  const uint64_t nodes = std::min(most_nodes, kExactOrders * patience);
  uint64_t asked = 0;
  result = PlaceExactlyBelow(Pick(buffers_, large_), StackAbove(), capacity, patience,
                             [&] { return (asked += kNodesPerQuestion) < nodes; });
  if (result.outcome != ExactResult::Outcome::kPlaced) return result;
  std::vector<uint64_t> tops(stack_.size(), 0);  // of the large ones
  for (size_t k = 0; k < large_.size(); ++k) {
    const uint32_t i = large_[k];
    for (uint32_t s = sections_->of[i].first; s < sections_->of[i].last; ++s) {
      tops[s] = std::max(tops[s], result.offsets[k] + buffers_[i].size);
    }
  }
  uint64_t height = 0;
  for (size_t s = 0; s < tops.size(); ++s) height = std::max(height, tops[s] + stack_[s]);
  Offsets offsets(buffers_.size());
  for (size_t k = 0; k < large_.size(); ++k) offsets[large_[k]] = result.offsets[k];
  for (size_t k = 0; k < small_.size(); ++k) {
    offsets[small_[k]] = height - depths_[k] - buffers_[small_[k]].size;
  }
  result.offsets = std::move(offsets);
  return result;
}

std::vector<TwoEnds> LikelySplits(std::span<const Buffer> buffers, const Sections& sections) {
  std::vector<TwoEnds> splits;
  if (buffers.empty()) return splits;
  const uint64_t peak = *std::max_element(sections.load.begin(), sections.load.end());
  size_t before = 0;
  for (const uint64_t part : kLargeParts) {
    const uint64_t large_bytes = std::max<uint64_t>(peak / part, 1);
    const auto large = static_cast<size_t>(
        std::count_if(buffers.begin(), buffers.end(),
                      [&](const Buffer& buffer) { return buffer.size >= large_bytes; }));
    if (large > kMostLarge) break;
    if (large == before) continue;
    before = large;
    for (const FitOrder order : kStackOrders) {
      splits.emplace_back(buffers, sections, large_bytes, order);
    }
  }
  std::stable_sort(splits.begin(), splits.end(),
                   [](const TwoEnds& a, const TwoEnds& b) { return a.lowest() < b.lowest(); });
  return splits;
}

}  // namespace sluice::scheduler
