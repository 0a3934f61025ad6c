// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/allocation.h"
#include "simgpu/driver/graph_memory_calls.h"
#include "simgpu/driver/pools.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

// Stream-ordered allocation.

namespace {

/// `pool` null: the device's current one.
CUresult AllocAsync(CUdeviceptr* dptr, size_t bytes, CUmemoryPool pool, CUstream handle,
                    bool per_thread) {
  Context* context = nullptr;
  CUresult result = StreamsOwnContext(handle, &context);
  if (result != CUDA_SUCCESS) return result;
  if (pool == nullptr) pool = CurrentPool(*context->device());
  if (dptr == nullptr || !Usable(pool) || pool->imported) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) {  // unlike cuMemAlloc
    *dptr = 0;
    return CUDA_SUCCESS;
  }
  std::unique_lock lock(context->mutex);
  CUstream stream = nullptr;
  bool capturing = false;
  result = context->ResolveToCapture(handle, per_thread, &stream, &capturing);
  if (result != CUDA_SUCCESS) return result;
  if (capturing) {
    lock.unlock();
    return CaptureAlloc(stream, bytes, dptr);
  }
  SpendDriverTime(*context->driver(), context->driver()->machine().alloc_ns);
  Heap* heap = context->pool_heap(pool);
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
  CUresult result = StreamsOwnContext(handle, &context);
  if (result != CUDA_SUCCESS) return result;
  if (dptr == 0) return CUDA_SUCCESS;
  SpendDriverTime(*context->driver(), context->driver()->machine().alloc_ns);
  std::vector<uint64_t> marks;
  bool plain = false;
  {
    CommandQueue::Lock lock(context->mutex);
    CUstream stream = nullptr;
    bool capturing = false;
    result = context->ResolveToCapture(handle, per_thread, &stream, &capturing);
    if (result != CUDA_SUCCESS) return result;
    if (capturing) {
      lock.unlock();
      return CaptureFree(stream, dptr);
    }
    marks = context->MarksOf(stream);
    CUmemoryPool pool = nullptr;
    Heap* heap = context->HeapAt(dptr, &pool);
    if (heap != nullptr && pool != nullptr) {
      StreamMark mark{stream->slot, stream->last.load()};
      if (marks.size() > 1 && !context->Reached(marks)) {
        // On the legacy stream a free stands behind the work of all blocking streams: an empty
        // operation there says when that is over.
        Command marker{};
        marker.kind = CommandKind::kNothing;
        mark.id = context->Issue(stream, &marker, lock);
        if (mark.id == 0) return context->queue().error();
      }
      return heap->Free(dptr, mark) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    plain = heap != nullptr;
  }
  if (plain) return FreePlainBehind(context, dptr, marks);
  const std::optional<Allocation> found = FindAllocation(context->driver(), context, dptr);
  if (!found || found->base != dptr) return CUDA_ERROR_INVALID_VALUE;
  if (found->family == Family::kGraph) return FreeGraphMemory(context, dptr, marks);
  return FreeShared(context, *found);
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytes, CUstream stream) {
  return AllocAsync(dptr, bytes, nullptr, stream, false);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytes, CUstream stream) {
  return AllocAsync(dptr, bytes, nullptr, stream, true);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AllocAsync(dptr, bytes, pool, stream, false);
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
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
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (!Usable(pool)) return CUDA_ERROR_INVALID_VALUE;
  // What one context keeps counts for the next: `keep_bytes` is for the whole pool.
  ForEachHeap(driver, pool, [&keep_bytes](Heap& heap) {
    heap.Trim(keep_bytes);
    keep_bytes -= std::min<size_t>(keep_bytes, heap.pool().reserved());
  });
  return CUDA_SUCCESS;
}
