// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "simgpu/driver/driver.h"

namespace sluice::simgpu {

/// One side of a copy of a box, resolved: where its first byte is and how far rows and layers are
/// apart.
struct BoxSide {
  uint64_t address = 0;
  uint64_t pitch = 0;
  uint64_t layer = 0;
  bool pageable = false;  // host memory that the GPU cannot reach
};

struct Box {
  BoxSide target;
  BoxSide source;
  uint64_t width = 0;  // bytes
  uint64_t rows = 1;
  uint64_t layers = 1;
};

/// Checks a description by the header's rules and resolves it. A box without bytes has width 0.
CUresult ResolveBox(Context* context, const CUDA_MEMCPY3D_v2& copy, Box* box);

/// The same as a description of a box of one layer.
CUDA_MEMCPY3D_v2 OneLayer(const CUDA_MEMCPY2D_v2& copy);

/// Whether a copy of the GPU can reach [address, address + bytes) by itself. Makes it so where the
/// memory is another context's.
bool Reachable(Context* context, uint64_t address, uint64_t bytes);

/// Queues the copy. To pageable memory it is complete when the call returns; from pageable memory
/// the data is taken before. `wait`: complete when the call returns if host memory takes part.
CUresult CopyBox(Context* context, const Box& box, CUstream stream, bool per_thread, bool wait);

}  // namespace sluice::simgpu
