// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/allocation.h"
#include "simgpu/driver/driver.h"
#include "simgpu/driver/peer_copy.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// Frees a block of cuMemAlloc after all work of its context.
CUresult FreePlain(Context* context, CUdeviceptr dptr) {
  std::vector<uint64_t> marks;
  {
    const std::lock_guard lock(context->mutex);
    marks = context->AllMarks();
  }
  const CUresult result = context->WaitFor(marks);
  FinishUsersOf(context);
  const std::lock_guard lock(context->mutex);
  Heap* plain = context->plain_heap();
  if (!plain->Free(dptr, {})) return CUDA_ERROR_INVALID_VALUE;
  plain->Trim(0);
  return result;
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (free_bytes == nullptr || total_bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const GpuState::Memory memory = context->device()->gpu()->MemoryNow();
  *free_bytes = memory.free;
  *total_bytes = memory.total;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytes) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (dptr == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(context->mutex);
  Heap* heap = context->plain_heap();
  if (heap == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::optional<uint64_t> address = heap->Alloc(bytes, StreamMark::kNone);
  if (!address) {
    // What the stream-ordered pools keep in reserve is there for others too.
    context->EmptyPools();
    address = heap->Alloc(bytes, StreamMark::kNone);
  }
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  *dptr = *address;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pitch, size_t width_bytes, size_t height,
                            unsigned element_bytes) {
  if (pitch == nullptr || width_bytes == 0 || height == 0 ||
      (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const size_t row = (width_bytes + BlockPool::kGranule - 1) & ~size_t{BlockPool::kGranule - 1};
  if (row < width_bytes || height > SIZE_MAX / row) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = cuMemAlloc_v2(dptr, row * height);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (dptr == 0) return CUDA_SUCCESS;
  const std::optional<Allocation> found = FindAllocation(context->driver(), context, dptr);
  if (!found || found->base != dptr) return CUDA_ERROR_INVALID_VALUE;
  if (found->family == Family::kSync) return FreePlain(found->context, dptr);
  if (found->family != Family::kAsync) return FreeShared(context, *found);
  // The caller promises that the GPU is done with a stream-ordered block: no synchronisation.
  const std::lock_guard lock(found->context->mutex);
  Heap* heap = found->context->FindPoolHeap(found->pool);
  return heap != nullptr && heap->Free(dptr, {}) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
