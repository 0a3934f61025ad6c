// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

/// What kernels.cu reads and writes, in the same layout.
namespace sluice::replay {

/// What a launch does to one block; in pinned memory, where the kernel reads it.
struct BlockWork {
  uint64_t address;
  uint64_t words;
  uint32_t check;
  uint32_t write;
  uint32_t block;
  uint32_t pad;
};
static_assert(sizeof(BlockWork) == 32);

/// In device memory, copied to the host once, at the end.
struct Counts {
  uint64_t checked;
  uint64_t wrong;
  uint64_t first_operation;
  uint64_t first_block;
};
static_assert(sizeof(Counts) == 32);

/// Threads of a block of the grid, and how many words of a pattern each takes at a time.
inline constexpr unsigned kThreads = 128;
inline constexpr unsigned kWordsPerThread = 16;

}  // namespace sluice::replay
