// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "common/cuda/abi.h"

namespace sluice {

/// What a copy of this shape moves; 0 when there is no shape or its sizes make no sense, which is
/// the driver's to say.
inline uint64_t BoxBytes(uint64_t width, uint64_t height, uint64_t depth) {
  uint64_t bytes = 0;
  const bool wraps =
      __builtin_mul_overflow(width, height, &bytes) || __builtin_mul_overflow(bytes, depth, &bytes);
  return wraps ? 0 : bytes;
}
inline uint64_t BoxBytes(const CUDA_MEMCPY2D_v2* copy) {
  return copy == nullptr ? 0 : BoxBytes(copy->WidthInBytes, copy->Height, 1);
}
inline uint64_t BoxBytes(const CUDA_MEMCPY3D_v2* copy) {
  return copy == nullptr ? 0 : BoxBytes(copy->WidthInBytes, copy->Height, copy->Depth);
}
inline uint64_t BoxBytes(const CUDA_MEMCPY3D_PEER* copy) {
  return copy == nullptr ? 0 : BoxBytes(copy->WidthInBytes, copy->Height, copy->Depth);
}

}  // namespace sluice
