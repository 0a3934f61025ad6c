// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::simgpu {

inline constexpr size_t kDefaultFifoBytes = 1u << 20;
inline constexpr size_t kDefaultHeapBytes = 8u << 20;

/// What cuCtxSetLimit changes, at the values that the programming guide gives as defaults.
struct ContextLimits {
  size_t stack_bytes = 1024;  // per thread
  size_t fifo_bytes = kDefaultFifoBytes;
  size_t heap_bytes = kDefaultHeapBytes;
  size_t fetch_bytes = 64;
  // Taken from the GPU for FIFO and heap beyond the defaults; never less until the context ends.
  uint64_t reserved = 0;
  std::vector<std::pair<uint64_t, uint64_t>> pieces;  // address and bytes in the executor
};

}  // namespace sluice::simgpu
