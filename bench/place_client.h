// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <span>

#include "scheduler/place/offline/buffers.h"

namespace sluice::bench {

/// Where a client puts buffers that are asked for in the order of time, on one stream, in a pool
/// of units of `unit_bytes` (a power of two): dynamic search, in intercept/blocks. In whole
/// granules of 512 bytes. `tightest`: into the tightest free place, else into the first one. Ends
/// the program where they have no room in 64 GiB.
scheduler::Offsets PlaceAsClient(std::span<const scheduler::Buffer> buffers, uint64_t unit_bytes,
                                 bool tightest);

}  // namespace sluice::bench
