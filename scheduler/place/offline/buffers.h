// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/status.h"

/// Placement of buffers whose lifetimes are known ahead: each gets an offset so that no two that
/// live at the same time overlap (offline dynamic storage allocation; NP-complete, Garey and
/// Johnson, SR2). Everything here is pure. Times have any unit, sizes and offsets are bytes.
namespace sluice::scheduler {

/// `size` bytes that live in the half-open interval [lower, upper).
struct Buffer {
  uint64_t lower;
  uint64_t upper;
  uint64_t size;
};

/// One for each buffer, in the buffers' order.
using Offsets = std::vector<uint64_t>;

/// Sizes of all buffers together stay below this, so that no offset of any placement overflows.
inline constexpr uint64_t kMaxTotalBytes = uint64_t{1} << 60;

/// kInvalidArgument, naming the buffer and what is allowed: each lives for some time, has a size,
/// and all of them together have less than kMaxTotalBytes.
Status CheckBuffers(std::span<const Buffer> buffers);

/// The same of one more, by its fields alone; `total` is the sum of the sizes so far, and grows.
Status CheckBuffer(const Buffer& buffer, uint64_t* total);

/// The most bytes that live at one time: no placement is lower. Of checked buffers.
uint64_t PeakLoad(std::span<const Buffer> buffers);

/// How high the placement reaches.
uint64_t Footprint(std::span<const Buffer> buffers, std::span<const uint64_t> offsets);

/// kInvalidArgument, naming two buffers that overlap in time and space, or one that reaches above
/// `capacity`, or that there are not as many offsets as buffers. Shares no code with what places.
Status ValidatePlacement(std::span<const Buffer> buffers, std::span<const uint64_t> offsets,
                         uint64_t capacity);

}  // namespace sluice::scheduler
