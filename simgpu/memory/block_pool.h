// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace sluice::simgpu {

/// A point in a stream: everything up to operation `id`.
struct StreamMark {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  uint32_t stream = kNone;  // kNone: nothing to wait for
  uint64_t id = 0;
  bool none() const { return stream == kNone; }
};

/// Stream-ordered sub-allocation of one address window, which is backed chunk by chunk as needed.
/// Pure bookkeeping: memory and progress are asked of two interfaces. Not thread-safe.
class BlockPool {
 public:
  class Backing {
   public:
    virtual ~Backing() = default;
    /// Backs a range of whole chunks; false when there is no memory.
    virtual bool Grow(uint64_t offset, uint64_t bytes) = 0;
    virtual void Shrink(uint64_t offset, uint64_t bytes) = 0;
  };
  class Order {
   public:
    virtual ~Order() = default;
    virtual bool Completed(const StreamMark& mark) const = 0;
    /// Whether everything issued to `stream` from now on runs behind `mark` (event dependencies).
    virtual bool Follows(uint32_t stream, const StreamMark& mark) const = 0;
  };
  struct Block {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t requested = 0;
    uint64_t serial = 0;  // no other block of this process has or had it
  };

  static constexpr uint64_t kGranule = 512;

  BlockPool(uint64_t window, uint64_t chunk, Backing* backing, const Order* order)
      : window_(window), chunk_(chunk), backing_(backing), order_(order) {}

  /// A block that operations of `stream` may use from now on (StreamMark::kNone: anyone at once).
  std::optional<uint64_t> Alloc(uint64_t bytes, uint32_t stream);
  /// The block may be reused on mark.stream at once and by others when the mark is reached.
  bool Free(uint64_t offset, const StreamMark& mark);
  /// Gives back chunks that nothing uses any more, but not below `keep` reserved bytes.
  void Trim(uint64_t keep);
  /// The allocated block that contains `offset`.
  std::optional<Block> Find(uint64_t offset) const;

  /// Of the allocated blocks: what was asked for, and what they take (rounded up).
  uint64_t requested() const { return requested_; }
  uint64_t used() const { return used_; }
  uint64_t reserved() const { return reserved_; }
  uint64_t used_high() const { return used_high_; }
  uint64_t reserved_high() const { return reserved_high_; }
  void ResetUsedHigh() { used_high_ = used_; }
  void ResetReservedHigh() { reserved_high_ = reserved_; }

 private:
  struct State {
    uint64_t bytes;
    bool free;
    StreamMark mark;
    uint64_t requested = 0;
    uint64_t serial = 0;
  };
  using Blocks = std::map<uint64_t, State>;

  bool Usable(const State& block, uint32_t stream) const;
  Blocks::iterator AddFree(uint64_t offset, uint64_t bytes, const StreamMark& mark);
  void RemoveFree(Blocks::iterator block);
  void Settle();
  uint64_t Take(uint64_t offset, uint64_t bytes);
  std::optional<uint64_t> AllocRounded(uint64_t bytes, uint32_t stream);
  std::optional<uint64_t> TakeBest(uint64_t bytes, uint32_t stream);
  std::optional<uint64_t> TakeRun(uint64_t bytes, uint32_t stream);
  bool Extend(uint64_t bytes, uint32_t stream);

  uint64_t window_;
  uint64_t chunk_;
  Backing* backing_;
  const Order* order_;
  Blocks blocks_;                                 // all backed bytes, allocated and free
  std::set<std::pair<uint64_t, uint64_t>> free_;  // (bytes, offset) of the free ones
  uint64_t requested_ = 0;
  uint64_t used_ = 0;
  uint64_t reserved_ = 0;
  uint64_t used_high_ = 0;
  uint64_t reserved_high_ = 0;
};

}  // namespace sluice::simgpu
