// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/allocation.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

// Managed memory. Nothing migrates: it lies in the GPU's memory for its whole life, and host and
// GPU both reach it there. So hints about where it should be are checked and change nothing.

namespace {

CUresult CheckManaged(Context* context, CUdeviceptr dptr, size_t count) {
  const std::optional<Allocation> found = FindAllocation(context->driver(), context, dptr);
  const bool managed = found && found->host && found->on_device();
  if (!managed || count == 0 || count > found->bytes - (dptr - found->base)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult CheckLocation(const CUmemLocation& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return Driver::Get()->FindDevice(location.id) != nullptr ? CUDA_SUCCESS
                                                               : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUmemLocation Location(CUdevice dev) {
  if (dev == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, dev};
}

CUresult CheckStream(Context* context, CUstream handle, bool per_thread) {
  const std::lock_guard lock(context->mutex);
  CUstream stream = nullptr;
  return context->Resolve(handle, per_thread, &stream);
}

CUresult Prefetch(CUdeviceptr dptr, size_t count, const CUmemLocation& location, unsigned flags,
                  CUstream stream, bool per_thread) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  result = CheckManaged(context, dptr, count);
  if (result == CUDA_SUCCESS) result = CheckLocation(location);
  return result == CUDA_SUCCESS ? CheckStream(context, stream, per_thread) : result;
}

CUresult Attach(CUstream stream, CUdeviceptr dptr, size_t length, unsigned flags, bool per_thread) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
      flags != CU_MEM_ATTACH_SINGLE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // By the header the legacy stream is none in particular.
  const bool legacy = stream == CU_STREAM_LEGACY || (stream == nullptr && !per_thread);
  if (flags == CU_MEM_ATTACH_SINGLE && legacy) return CUDA_ERROR_INVALID_VALUE;
  // By the header a length of 0 means all of it, and nothing else but all of it is allowed.
  result = CheckManaged(context, dptr, std::max<size_t>(length, 1));
  return result == CUDA_SUCCESS ? CheckStream(context, stream, per_thread) : result;
}

}  // namespace

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytes, unsigned flags) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (dptr == nullptr || bytes == 0 ||
      (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto allocate = [&](void** out) {
    const std::lock_guard lock(context->driver()->mutex);
    return context->driver()->host_memory->AllocateManaged(out, context->device()->use, bytes,
                                                           flags, context->link());
  };
  void* pointer = nullptr;
  CUresult allocated = allocate(&pointer);
  if (allocated == CUDA_ERROR_OUT_OF_MEMORY) {
    // What the stream-ordered pools keep in reserve is there for others too.
    {
      const std::lock_guard lock(context->mutex);
      context->EmptyPools();
    }
    allocated = allocate(&pointer);
  }
  if (allocated == CUDA_SUCCESS) *dptr = reinterpret_cast<CUdeviceptr>(pointer);
  return allocated;
}

CUresult cuMemPrefetchAsync(CUdeviceptr dptr, size_t count, CUdevice dev, CUstream stream) {
  return Prefetch(dptr, count, Location(dev), 0, stream, false);
}
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr dptr, size_t count, CUdevice dev, CUstream stream) {
  return Prefetch(dptr, count, Location(dev), 0, stream, true);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr dptr, size_t count, CUmemLocation location,
                               unsigned flags, CUstream stream) {
  return Prefetch(dptr, count, location, flags, stream, false);
}
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr dptr, size_t count, CUmemLocation location,
                                    unsigned flags, CUstream stream) {
  return Prefetch(dptr, count, location, flags, stream, true);
}

CUresult cuMemAdvise_v2(CUdeviceptr dptr, size_t count, CUmem_advise advice,
                        CUmemLocation location) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  result = CheckManaged(context, dptr, count);
  // Where it does not matter, the place is ignored.
  const bool placed = advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION &&
                      advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
  return result == CUDA_SUCCESS && placed ? CheckLocation(location) : result;
}

CUresult cuMemAdvise(CUdeviceptr dptr, size_t count, CUmem_advise advice, CUdevice dev) {
  return cuMemAdvise_v2(dptr, count, advice, Location(dev));
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr dptr, size_t length, unsigned flags) {
  return Attach(stream, dptr, length, flags, false);
}
CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr dptr, size_t length,
                                     unsigned flags) {
  return Attach(stream, dptr, length, flags, true);
}
