// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/place/offline/buffers.h"

namespace sluice::scheduler {

/// A buffer begins or ends to live.
struct Change {
  uint64_t time;
  bool begins;
  size_t buffer;
};

/// In the order of time; what ends at a time before what begins there. For those who judge a
/// placement; nothing that makes one uses it.
std::vector<Change> ChangesOf(std::span<const Buffer> buffers);

}  // namespace sluice::scheduler
