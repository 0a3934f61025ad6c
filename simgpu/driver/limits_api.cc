// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

constexpr size_t kLargestStack = 512 * 1024;
constexpr size_t kLargestFetch = 128;

}  // namespace

// Room for printf and malloc in kernels is taken from the GPU when it is raised above the default,
// which is in `context_bytes`; a real driver may wait with that until a kernel needs it.
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  Driver* driver = context->driver();
  const std::lock_guard driver_lock(driver->mutex);
  const std::lock_guard lock(context->mutex);
  ContextLimits& limits = context->limits;
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      if (value > kLargestStack) return CUDA_ERROR_INVALID_VALUE;
      limits.stack_bytes = value;
      return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return context->Reserve(value, limits.heap_bytes, &limits.fifo_bytes, value);
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return context->Reserve(limits.fifo_bytes, value, &limits.heap_bytes, value);
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      if (value > kLargestFetch) return CUDA_ERROR_INVALID_VALUE;
      limits.fetch_bytes = value;
      return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
    case CU_LIMIT_SHMEM_SIZE:
      return CUDA_ERROR_NOT_PERMITTED;  // to be asked for only
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(context->mutex);
  const ContextLimits& limits = context->limits;
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      *value = limits.stack_bytes;
      return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      *value = limits.fifo_bytes;
      return CUDA_SUCCESS;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      *value = limits.heap_bytes;
      return CUDA_SUCCESS;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      *value = limits.fetch_bytes;
      return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
    case CU_LIMIT_SHMEM_SIZE:
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
