// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/launch.h"

#include <cstring>

#include "simgpu/driver/objects.h"

namespace sluice::simgpu {

CUresult CheckShape(const Launch& launch) {
  const unsigned* g = launch.grid;
  const unsigned* b = launch.block;
  if (g[0] == 0 || g[1] == 0 || g[2] == 0 || b[0] == 0 || b[1] == 0 || b[2] == 0 ||
      g[0] > 0x7fffffff || g[1] > 65535 || g[2] > 65535 || b[0] > 1024 || b[1] > 1024 ||
      b[2] > 64 || static_cast<uint64_t>(b[0]) * b[1] * b[2] > 1024) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (launch.shared_bytes > static_cast<unsigned>(launch.function->max_dynamic_shared)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult PackArguments(const Launch& launch, unsigned char* target) {
  const CUfunction f = launch.function;
  if (f->arg_bytes == 0) return CUDA_SUCCESS;
  if (launch.params != nullptr) {
    for (size_t i = 0; i < f->sizes.size(); ++i) {
      if (launch.params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      memcpy(target + f->offsets[i], launch.params[i], f->sizes[i]);
    }
    return CUDA_SUCCESS;
  }
  if (launch.extra == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (void** option = launch.extra; *option != CU_LAUNCH_PARAM_END; option += 2) {
    if (*option == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = option[1];
    } else if (*option == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const size_t*>(option[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (buffer == nullptr || bytes < f->arg_bytes) return CUDA_ERROR_INVALID_VALUE;
  memcpy(target, buffer, f->arg_bytes);
  return CUDA_SUCCESS;
}

}  // namespace sluice::simgpu
