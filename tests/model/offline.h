// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::scheduler {

/// A block's life, once everything is over.
struct OfflineBlock {
  uint64_t size;
  uint64_t from;  // alive in [from, to)
  uint64_t to;
  uint64_t at;  // where it was placed
};

struct OfflineResult {
  uint64_t footprint;
  uint64_t most_alive;  // a lower bound of any footprint
};

/// Places all blocks with their lives known: largest first, each at the lowest address where it
/// meets nobody who lives at the same time (first fit by decreasing size: SmartPool, section III).
/// What an allocator that knows the future would need. Units are the caller's.
OfflineResult PlaceOffline(std::vector<OfflineBlock> blocks);

}  // namespace sluice::scheduler
