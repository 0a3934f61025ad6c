// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "common/cuda/abi.h"

namespace sluice {

/// Bytes of one component of an array's elements. A format that is not known here counts as the
/// largest there is: too much, never too little.
inline uint64_t ComponentBytes(CUarray_format format) {
  switch (static_cast<unsigned>(format)) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    default:
      return 4;
  }
}

/// What an array of this shape asks the driver for; 0 when its memory comes later (sparse arrays
/// and deferred mappings), and when the sizes make no sense, which is the driver's to say.
inline uint64_t ArrayBytes(const CUDA_ARRAY3D_DESCRIPTOR_v2& d, unsigned levels = 1) {
  if ((d.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0) return 0;
  const bool layers = (d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  uint64_t sum = 0;
  for (unsigned level = 0; level < levels && level < 32; ++level) {
    uint64_t bytes = ComponentBytes(d.Format) * d.NumChannels;
    const uint64_t sides[] = {d.Width >> level, d.Height >> level,
                              layers ? d.Depth : d.Depth >> level};
    // A side of 0 is a dimension that is not there, and no level is smaller than 1.
    for (const uint64_t side : sides) {
      if (side > 1 && __builtin_mul_overflow(bytes, side, &bytes)) return 0;
    }
    if (__builtin_add_overflow(sum, bytes, &sum)) return 0;
  }
  return sum;
}

inline uint64_t ArrayBytes(const CUDA_ARRAY_DESCRIPTOR_v2& d) {
  CUDA_ARRAY3D_DESCRIPTOR_v2 whole{};
  whole.Width = d.Width;
  whole.Height = d.Height;
  whole.Format = d.Format;
  whole.NumChannels = d.NumChannels;
  return ArrayBytes(whole);
}

/// The shapes of the interface before CUDA 3.2.
inline CUDA_ARRAY_DESCRIPTOR_v2 Widened(const CUDA_ARRAY_DESCRIPTOR_v1& d) {
  return {d.Width, d.Height, d.Format, d.NumChannels};
}
inline CUDA_ARRAY3D_DESCRIPTOR_v2 Widened(const CUDA_ARRAY3D_DESCRIPTOR_v1& d) {
  return {d.Width, d.Height, d.Depth, d.Format, d.NumChannels, d.Flags};
}

}  // namespace sluice
