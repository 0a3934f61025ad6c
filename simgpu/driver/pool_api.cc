// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// There is one pool, the device's default; its handle is this object's address.
char g_default_pool;

CUmemoryPool DefaultPool() { return reinterpret_cast<CUmemoryPool>(&g_default_pool); }

CUresult AllocAsync(CUdeviceptr* dptr, size_t bytes, CUmemoryPool pool, CUstream handle,
                    bool per_thread) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (dptr == nullptr || bytes == 0 || pool != DefaultPool()) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(context->mutex);
  CUstream stream = nullptr;
  result = context->Resolve(handle, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  Heap* heap = context->pool_heap();
  if (heap == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::optional<uint64_t> address = heap->Alloc(bytes, stream->slot);
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  *dptr = *address;
  return CUDA_SUCCESS;
}

/// Frees a cuMemAlloc block in stream order. The simulated driver simply waits for the stream.
CUresult FreePlainBehind(Context* context, CUdeviceptr dptr, const std::vector<uint64_t>& marks) {
  const CUresult result = context->WaitFor(marks);
  const std::lock_guard lock(context->mutex);
  Heap* plain = context->plain_heap();
  if (!plain->Free(dptr, {})) return CUDA_ERROR_INVALID_VALUE;
  plain->Trim(0);
  return result;
}

CUresult FreeAsync(CUdeviceptr dptr, CUstream handle, bool per_thread) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (dptr == 0) return CUDA_SUCCESS;
  std::vector<uint64_t> marks;
  {
    CommandQueue::Lock lock(context->mutex);
    CUstream stream = nullptr;
    result = context->Resolve(handle, per_thread, &stream);
    if (result != CUDA_SUCCESS) return result;
    marks = context->MarksOf(stream);
    Heap* heap = context->pool_heap();
    if (heap != nullptr && heap->Contains(dptr)) {
      StreamMark mark{stream->slot, stream->last.load()};
      if (marks.size() > 1 && !context->Reached(marks)) {
        // On the legacy stream a free stands behind the work of all blocking streams: an empty
        // operation there says when that is over.
        Command marker{};
        marker.kind = CommandKind::kRecordEvent;
        marker.event.slot = kEventSlots;
        mark.id = context->Issue(stream, &marker, lock);
        if (mark.id == 0) return context->queue().error();
      }
      return heap->Free(dptr, mark) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    Heap* plain = context->plain_heap();
    if (plain == nullptr || !plain->Contains(dptr)) return CUDA_ERROR_INVALID_VALUE;
  }
  return FreePlainBehind(context, dptr, marks);
}

/// The context whose pool an attribute call means: the current one, else the primary one.
Context* PoolContext(Driver* driver) {
  Context* context = nullptr;
  if (CurrentContext(&context) == CUDA_SUCCESS) return context;
  const std::lock_guard lock(driver->mutex);
  return driver->primary;
}

CUresult CheckDevice(CUdevice dev) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice dev) {
  const CUresult result = CheckDevice(dev);
  if (result != CUDA_SUCCESS) return result;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pool = DefaultPool();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return cuDeviceGetDefaultMemPool(pool, dev);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  const CUresult result = CheckDevice(dev);
  if (result != CUDA_SUCCESS) return result;
  return pool == DefaultPool() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytes, CUstream stream) {
  return AllocAsync(dptr, bytes, DefaultPool(), stream, false);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytes, CUstream stream) {
  return AllocAsync(dptr, bytes, DefaultPool(), stream, true);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return AllocAsync(dptr, bytes, pool, stream, false);
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  return AllocAsync(dptr, bytes, pool, stream, true);
}
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream stream) {
  return FreeAsync(dptr, stream, false);
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream stream) {
  return FreeAsync(dptr, stream, true);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (pool != DefaultPool()) return CUDA_ERROR_INVALID_VALUE;
  Context* context = PoolContext(driver);
  if (context == nullptr) return CUDA_SUCCESS;
  const std::lock_guard lock(context->mutex);
  if (context->pool_heap() != nullptr) context->pool_heap()->pool().Trim(keep_bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (pool != DefaultPool() || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = PoolContext(driver);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(context->mutex);
  Heap* heap = context->pool_heap();
  if (heap == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      context->release_threshold = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
        heap->pool().ResetUsedHigh();
      } else {
        heap->pool().ResetReservedHigh();
      }
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      // The first two are always on; the third, waiting for another stream, never happens. Programs
      // set them to 1, which changes nothing about correctness.
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (pool != DefaultPool() || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = PoolContext(driver);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(context->mutex);
  Heap* heap = context->pool_heap();
  if (heap == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const BlockPool& blocks = heap->pool();
  auto* bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *bytes = context->release_threshold;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *bytes = blocks.reserved();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *bytes = blocks.reserved_high();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *bytes = blocks.used();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *bytes = blocks.used_high();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      *static_cast<int*>(value) = 1;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = 0;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
