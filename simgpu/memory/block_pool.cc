// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/memory/block_pool.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <vector>

namespace sluice::simgpu {
namespace {

std::atomic<uint64_t> g_serial{0};

uint64_t Up(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }
uint64_t Down(uint64_t value, uint64_t step) { return value / step * step; }

/// One mark that covers both, where that can be said.
std::optional<StreamMark> Join(const StreamMark& a, const StreamMark& b) {
  if (a.stream != b.stream) return std::nullopt;
  return StreamMark{a.stream, std::max(a.id, b.id)};
}

}  // namespace

bool BlockPool::Usable(const State& block, uint32_t stream) const {
  if (!block.free) return false;
  if (block.mark.none() || block.mark.stream == stream) return true;
  return order_->Completed(block.mark) ||
         (stream != StreamMark::kNone && order_->Follows(stream, block.mark));
}

BlockPool::Blocks::iterator BlockPool::AddFree(uint64_t offset, uint64_t bytes,
                                               const StreamMark& mark) {
  const auto added = blocks_.insert_or_assign(offset, State{bytes, true, mark, 0, 0}).first;
  free_.emplace(bytes, offset);
  return added;
}

void BlockPool::RemoveFree(Blocks::iterator block) {
  free_.erase({block->second.bytes, block->first});
  blocks_.erase(block);
}

/// Clears the marks that are reached and joins neighbours that can be joined.
void BlockPool::Settle() {
  for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
    State& block = it->second;
    if (!block.free) continue;
    if (!block.mark.none() && order_->Completed(block.mark)) block.mark = {};
    if (it == blocks_.begin()) continue;
    const auto before = std::prev(it);
    if (!before->second.free || before->first + before->second.bytes != it->first) continue;
    const std::optional<StreamMark> mark = Join(before->second.mark, block.mark);
    if (!mark) continue;
    const uint64_t offset = before->first;
    const uint64_t bytes = before->second.bytes + block.bytes;
    RemoveFree(before);
    RemoveFree(it);
    it = AddFree(offset, bytes, *mark);
  }
}

/// Allocates [offset, offset + bytes) out of one or more neighbouring free blocks.
uint64_t BlockPool::Take(uint64_t offset, uint64_t bytes) {
  uint64_t end = offset;
  while (end < offset + bytes) {
    const auto block = blocks_.find(end);
    const uint64_t block_end = end + block->second.bytes;
    const StreamMark mark = block->second.mark;
    RemoveFree(block);
    if (block_end > offset + bytes) AddFree(offset + bytes, block_end - offset - bytes, mark);
    end = block_end;
  }
  blocks_[offset] = State{bytes, false, {}, 0, 0};
  used_ += bytes;
  used_high_ = std::max(used_high_, used_);
  return offset;
}

/// The smallest single block, the stream's own before others.
std::optional<uint64_t> BlockPool::TakeBest(uint64_t bytes, uint32_t stream) {
  std::optional<uint64_t> other;
  for (auto it = free_.lower_bound({bytes, 0}); it != free_.end(); ++it) {
    const State& block = blocks_.at(it->second);
    if (block.mark.stream == stream && stream != StreamMark::kNone) return Take(it->second, bytes);
    if (!other && Usable(block, stream)) other = it->second;
  }
  if (other) return Take(*other, bytes);
  return std::nullopt;
}

/// Neighbouring blocks that could not be joined but are all usable here.
std::optional<uint64_t> BlockPool::TakeRun(uint64_t bytes, uint32_t stream) {
  uint64_t start = 0;
  uint64_t end = 0;
  for (const auto& [offset, block] : blocks_) {
    if (!Usable(block, stream)) {
      start = end = 0;
      continue;
    }
    if (end != offset || start == end) start = offset;
    end = offset + block.bytes;
    if (end - start >= bytes) return Take(start, bytes);
  }
  return std::nullopt;
}

/// Backs the gap where the fewest new chunks make room for `bytes`.
bool BlockPool::Extend(uint64_t bytes, uint32_t stream) {
  uint64_t best_at = 0;
  uint64_t best_growth = std::numeric_limits<uint64_t>::max();
  uint64_t end = 0;     // of the block before
  uint64_t usable = 0;  // free bytes right before `end`
  const auto consider = [&](uint64_t gap_end) {
    const uint64_t missing = bytes > usable ? bytes - usable : chunk_;
    const uint64_t growth = Up(missing, chunk_);
    if (growth <= gap_end - end && growth < best_growth) {
      best_growth = growth;
      best_at = end;
    }
  };
  for (const auto& [offset, block] : blocks_) {
    if (offset > end) {
      consider(offset);
      usable = 0;
    }
    usable = Usable(block, stream) ? usable + block.bytes : 0;
    end = offset + block.bytes;
  }
  if (end < window_) consider(window_);
  if (best_growth == std::numeric_limits<uint64_t>::max()) return false;
  if (!backing_->Grow(best_at, best_growth)) return false;
  AddFree(best_at, best_growth, {});
  reserved_ += best_growth;
  reserved_high_ = std::max(reserved_high_, reserved_);
  return true;
}

std::optional<uint64_t> BlockPool::Alloc(uint64_t bytes, uint32_t stream) {
  if (bytes == 0 || bytes > window_) return std::nullopt;
  const std::optional<uint64_t> offset = AllocRounded(Up(bytes, kGranule), stream);
  if (!offset) return std::nullopt;
  State& block = blocks_.at(*offset);
  block.requested = bytes;
  block.serial = ++g_serial;
  requested_ += bytes;
  return offset;
}

std::optional<uint64_t> BlockPool::AllocRounded(uint64_t bytes, uint32_t stream) {
  if (const auto found = TakeBest(bytes, stream)) return found;
  Settle();
  if (const auto found = TakeBest(bytes, stream)) return found;
  if (const auto found = TakeRun(bytes, stream)) return found;
  if (!Extend(bytes, stream)) {
    // No memory: chunks that are idle elsewhere in the window may make the difference.
    Trim(0);
    if (!Extend(bytes, stream)) return std::nullopt;
  }
  return TakeRun(bytes, stream);
}

bool BlockPool::Free(uint64_t offset, const StreamMark& mark) {
  const auto found = blocks_.find(offset);
  if (found == blocks_.end() || found->second.free) return false;
  uint64_t bytes = found->second.bytes;
  used_ -= bytes;
  requested_ -= found->second.requested;
  blocks_.erase(found);
  StreamMark joined = mark;
  const auto join = [&](Blocks::iterator neighbour) {
    if (neighbour == blocks_.end() || !neighbour->second.free) return false;
    const std::optional<StreamMark> both = Join(neighbour->second.mark, joined);
    if (both) joined = *both;
    return both.has_value();
  };
  const auto after = blocks_.find(offset + bytes);
  if (join(after)) {
    bytes += after->second.bytes;
    RemoveFree(after);
  }
  auto before = blocks_.lower_bound(offset);
  if (before != blocks_.begin()) {
    --before;
    if (before->first + before->second.bytes == offset && join(before)) {
      offset = before->first;
      bytes += before->second.bytes;
      RemoveFree(before);
    }
  }
  AddFree(offset, bytes, joined);
  return true;
}

void BlockPool::Trim(uint64_t keep) {
  Settle();
  std::vector<Block> idle;
  for (const auto& [offset, block] : blocks_) {
    if (block.free && block.mark.none()) idle.push_back({offset, block.bytes});
  }
  for (auto it = idle.rbegin(); it != idle.rend() && reserved_ > keep; ++it) {
    const uint64_t first = Up(it->offset, chunk_);
    const uint64_t last = Down(it->offset + it->bytes, chunk_);
    if (first >= last) continue;
    const uint64_t bytes = std::min(last - first, Up(reserved_ - keep, chunk_));
    const uint64_t from = last - bytes;
    RemoveFree(blocks_.find(it->offset));
    if (from > it->offset) AddFree(it->offset, from - it->offset, {});
    if (it->offset + it->bytes > last) AddFree(last, it->offset + it->bytes - last, {});
    backing_->Shrink(from, bytes);
    reserved_ -= bytes;
  }
}

std::optional<BlockPool::Block> BlockPool::Find(uint64_t offset) const {
  auto found = blocks_.upper_bound(offset);
  if (found == blocks_.begin()) return std::nullopt;
  --found;
  if (found->second.free || offset - found->first >= found->second.bytes) return std::nullopt;
  return Block{found->first, found->second.bytes, found->second.requested, found->second.serial};
}

}  // namespace sluice::simgpu
