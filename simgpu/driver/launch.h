// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

#include "common/cuda/abi.h"

namespace sluice::simgpu {

inline constexpr uint32_t kMostArgBytes = 64 * 1024;

/// A launch as the program describes it.
struct Launch {
  CUfunction function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** params;
  void** extra;
};

/// Whether the function can be launched in this shape.
CUresult CheckShape(const Launch& launch);

/// Copies the arguments as the caller gave them, now: it may reuse its memory after the call.
/// `target` has room for the function's arguments.
CUresult PackArguments(const Launch& launch, unsigned char* target);

}  // namespace sluice::simgpu
