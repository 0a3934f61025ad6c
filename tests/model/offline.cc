// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/model/offline.h"

#include <algorithm>

namespace sluice::scheduler {
namespace {

/// Who was placed, by the stretch of time they live in.
class Timeline {
 public:
  /// Stretches about as long as a life: short ones would name each block in many of them.
  explicit Timeline(const std::vector<OfflineBlock>& blocks) {
    uint64_t end = 0;
    uint64_t lives = 0;
    for (const OfflineBlock& block : blocks) {
      end = std::max(end, block.to);
      lives += block.to - block.from;
    }
    width_ = lives / std::max<size_t>(1, blocks.size()) + 1;
    stretches_.resize(end / width_ + 1);
  }

  void Add(const OfflineBlock* block) {
    for (uint64_t i = block->from / width_; i <= block->to / width_; ++i) {
      stretches_[i].push_back(block);
    }
  }
  /// Those alive together with `block`, by address.
  std::vector<const OfflineBlock*> Meets(const OfflineBlock& block) const {
    std::vector<const OfflineBlock*> met;
    for (uint64_t i = block.from / width_; i <= block.to / width_; ++i) {
      for (const OfflineBlock* other : stretches_[i]) {
        // Once each: where the later of the two begins.
        const bool first = std::max(other->from, block.from) / width_ == i;
        if (first && other->from < block.to && block.from < other->to) met.push_back(other);
      }
    }
    std::sort(met.begin(), met.end(),
              [](const OfflineBlock* a, const OfflineBlock* b) { return a->at < b->at; });
    return met;
  }

 private:
  uint64_t width_ = 1;
  std::vector<std::vector<const OfflineBlock*>> stretches_;
};

uint64_t MostAlive(const std::vector<OfflineBlock>& blocks) {
  std::vector<std::pair<uint64_t, int64_t>> changes;
  for (const OfflineBlock& block : blocks) {
    changes.emplace_back(block.from, static_cast<int64_t>(block.size));
    changes.emplace_back(block.to, -static_cast<int64_t>(block.size));
  }
  std::sort(changes.begin(), changes.end());  // at one time, what goes goes first
  int64_t alive = 0;
  int64_t most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, alive += change);
  return static_cast<uint64_t>(most);
}

}  // namespace

OfflineResult PlaceOffline(std::vector<OfflineBlock> blocks) {
  std::erase_if(blocks, [](const OfflineBlock& block) { return block.from >= block.to; });
  std::sort(blocks.begin(), blocks.end(), [](const OfflineBlock& a, const OfflineBlock& b) {
    return a.size != b.size ? a.size > b.size : a.from < b.from;
  });
  Timeline timeline(blocks);
  uint64_t footprint = 0;
  for (OfflineBlock& block : blocks) {
    block.at = 0;
    for (const OfflineBlock* other : timeline.Meets(block)) {
      if (block.at + block.size <= other->at) break;
      block.at = std::max(block.at, other->at + other->size);
    }
    timeline.Add(&block);
    footprint = std::max(footprint, block.at + block.size);
  }
  return {footprint, MostAlive(blocks)};
}

}  // namespace sluice::scheduler
