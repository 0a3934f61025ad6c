// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/blocks/lifetimes.h"
#include "intercept/protocol/wire.h"

namespace sluice {

inline constexpr uint32_t kGranuleShift = 9;
inline constexpr uint32_t kGranuleBytes = 1u << kGranuleShift;

inline constexpr uint32_t kNoBlock = 0xffffffff;

/// The slot of a stream that has none (more streams than slots). What is freed on it is known to be
/// done only after a full drain.
inline constexpr uint32_t kNoSlot = protocol::kStreamSlots;

enum class BlockKind : uint8_t {
  kVacant,    // the descriptor is not in use
  kLive,      // the application's
  kUnsynced,  // freed on `slot`; usable there at once, elsewhere when `mark` is reached
  kRecent,    // the same, not merged with its neighbours yet: kept for the next one of its size
  kSynced,    // freed, and the GPU is known to be done with it
  kUnused,    // leased and never used since
};

/// A piece of leased space, in granules. Blocks of one run of leased units tile it and are chained
/// in address order. One cache line each.
struct alignas(64) Block {
  uint32_t start;
  uint32_t size;
  uint32_t prev;  // the physically adjacent block, or kNoBlock
  uint32_t next;
  uint32_t older;  // kUnsynced: the slot's blocks in the order in which they were freed
  uint32_t newer;
  BlockKind kind;
  bool sync;       // kLive: from cuMemAlloc, so that freeing it synchronises
  uint16_t slot;   // kUnsynced, kRecent: the *free* stream; kLive: whom it was allocated for
  uint16_t owner;  // kLive and `sync`: the context that it ends with, by a number of the caller's
  uint64_t mark;   // kUnsynced, kRecent: the mark that covers the free
  uint64_t free_seq;       // kUnsynced, kRecent: position among all frees of the arena
  Lifetimes::Birth birth;  // kLive

  uint32_t end() const { return start + size; }
};

}  // namespace sluice
