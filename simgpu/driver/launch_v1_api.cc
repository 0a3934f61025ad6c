// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"
#include "simgpu/driver/launch.h"
#include "simgpu/driver/modules.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

// Launches as they were before cuLaunchKernel: shape and arguments are set on the function before,
// and stay for the next launch.

namespace {

/// set(parts) under the lock of the function's context.
template <class Set>
CUresult SetPart(CUfunction f, Set set) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result == CUDA_SUCCESS) result = ResolveFunction(&f, context);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(context->mutex);
  return set(f->parts);
}

CUresult SetArgument(CUfunction f, int offset, const void* value, unsigned bytes) {
  if (value == nullptr || offset < 0 || bytes > kMostArgBytes ||
      static_cast<unsigned>(offset) > kMostArgBytes - bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return SetPart(f, [&](LaunchParts& parts) {
    const size_t end = static_cast<size_t>(offset) + bytes;
    if (parts.args.size() < end) parts.args.resize(end);
    memcpy(parts.args.data() + offset, value, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult LaunchGrid(CUfunction f, int width, int height, CUstream stream) {
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  LaunchParts parts;
  const CUresult result = SetPart(f, [&parts](const LaunchParts& set) {
    parts = set;
    return CUDA_SUCCESS;
  });
  if (result != CUDA_SUCCESS) return result;
  size_t bytes = parts.args.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parts.args.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &bytes, CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(f, static_cast<unsigned>(width), static_cast<unsigned>(height), 1,
                        parts.block[0], parts.block[1], parts.block[2], parts.shared_bytes, stream,
                        nullptr, extra);
}

}  // namespace

CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z) {
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  return SetPart(f, [=](LaunchParts& parts) {
    parts.block[0] = static_cast<unsigned>(x);
    parts.block[1] = static_cast<unsigned>(y);
    parts.block[2] = static_cast<unsigned>(z);
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetSharedSize(CUfunction f, unsigned bytes) {
  return SetPart(f, [=](LaunchParts& parts) {
    parts.shared_bytes = bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuParamSetSize(CUfunction f, unsigned bytes) {
  if (bytes > kMostArgBytes) return CUDA_ERROR_INVALID_VALUE;
  return SetPart(f, [=](LaunchParts& parts) {
    parts.args.resize(bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuParamSeti(CUfunction f, int offset, unsigned value) {
  return SetArgument(f, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction f, int offset, float value) {
  return SetArgument(f, offset, &value, sizeof value);
}

CUresult cuParamSetv(CUfunction f, int offset, void* value, unsigned bytes) {
  return SetArgument(f, offset, value, bytes);
}

CUresult cuLaunch(CUfunction f) { return LaunchGrid(f, 1, 1, nullptr); }

CUresult cuLaunchGrid(CUfunction f, int width, int height) {
  return LaunchGrid(f, width, height, nullptr);
}

CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream) {
  return LaunchGrid(f, width, height, stream);
}
