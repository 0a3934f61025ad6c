// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "common/cuda/abi.h"

namespace sluice::simgpu {
class Context;
}

/// An array: elements row by row and layer by layer without gaps, because nothing here samples
/// textures. Its memory belongs to it, or to the mipmapped array whose level it is.
struct CUarray_st {
  static constexpr uint32_t kMagic = 0x41525231;
  std::atomic<uint32_t> magic{0};
  sluice::simgpu::Context* context = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR_v2 descriptor{};
  uint64_t address = 0;
  uint64_t element_bytes = 0;
  bool is_level = false;

  uint64_t row_bytes() const { return descriptor.Width * element_bytes; }
  uint64_t rows() const { return std::max<uint64_t>(descriptor.Height, 1); }
  uint64_t layers() const { return std::max<uint64_t>(descriptor.Depth, 1); }
};

struct CUmipmappedArray_st {
  static constexpr uint32_t kMagic = 0x4d495031;
  std::atomic<uint32_t> magic{0};
  sluice::simgpu::Context* context = nullptr;
  uint64_t address = 0;
  std::vector<CUarray> levels;
};
