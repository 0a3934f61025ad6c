// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <span>

#include "scheduler/place/offline/buffers.h"

/// What a placement costs a pool that lends in units: unit k of the placement, the bytes from
/// k * unit_bytes on, is held while any buffer in it lives, and can be lent at all other times.
namespace sluice::scheduler {

/// The integral of the leased bytes over time: bytes times the instance's unit of time, exact up to
/// 2^53 and rounded beyond. Of a valid placement; n log n, whatever the unit (at least 1).
double LeasedIntegral(std::span<const Buffer> buffers, std::span<const uint64_t> offsets,
                      uint64_t unit_bytes);

/// No placement has less: at each time what lives needs so many whole units.
double LeastLeasedIntegral(std::span<const Buffer> buffers, uint64_t unit_bytes);

}  // namespace sluice::scheduler
