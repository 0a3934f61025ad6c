// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/repair.h"

#include <algorithm>
#include <utility>

#include "scheduler/place/offline/fit.h"

namespace sluice::scheduler {
namespace {

// What a round costs beside placing: the new order, for each buffer.
constexpr uint64_t kLooksOfABuffer = 32;

}  // namespace

Repair::Repair(std::span<const Buffer> buffers, std::vector<uint32_t> sequence, Offsets offsets,
               uint64_t seed)
    : buffers_(buffers),
      sequence_(std::move(sequence)),
      offsets_(std::move(offsets)),
      footprint_(Footprint(buffers_, offsets_)),
      state_(seed) {}

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers with every library.
double Repair::Draw() {
  state_ += 0x9e3779b97f4a7c15;
  uint64_t bits = state_;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  bits ^= bits >> 31;
  return static_cast<double>(bits >> 11) / static_cast<double>(uint64_t{1} << 53);
}

uint64_t Repair::Round(uint64_t goal) {
  if (footprint_ <= goal) return 0;
  // Sometimes only the highest, sometimes all that reach above the goal: what has to move may lie
  // far below the top.
  const uint64_t excess = footprint_ - goal;
  const uint64_t line =
      goal + std::min(static_cast<uint64_t>(static_cast<double>(excess) * Draw()), excess - 1);
  std::vector<std::pair<double, uint32_t>> places;  // and who gets them
  places.reserve(sequence_.size());
  for (size_t place = 0; place < sequence_.size(); ++place) {
    const uint32_t i = sequence_[place];
    auto rank = static_cast<double>(place);
    if (offsets_[i] + buffers_[i].size > line && Draw() < 0.5) rank = rank * Draw() - 0.25;
    places.emplace_back(rank, i);
  }
  std::sort(places.begin(), places.end());
  std::vector<uint32_t> sequence;
  sequence.reserve(places.size());
  for (const auto& [rank, i] : places) sequence.push_back(i);
  uint64_t looks = kLooksOfABuffer * sequence.size();
  Offsets offsets = PlaceInSequence(buffers_, sequence, FitHole::kFirst, &looks);
  const uint64_t footprint = Footprint(buffers_, offsets);
  if (footprint <= footprint_) {
    sequence_ = std::move(sequence);
    offsets_ = std::move(offsets);
    footprint_ = footprint;
  }
  return looks;
}

}  // namespace sluice::scheduler
