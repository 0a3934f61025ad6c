// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

bool Valid(CUmemAccess_flags flags) {
  return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
         flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

/// The driver with its lock held; these calls need no context.
struct Locked {
  Locked() : driver(Driver::Get()) {
    if (driver != nullptr) lock = std::unique_lock<std::mutex>(driver->mutex);
  }
  explicit operator bool() const { return driver != nullptr; }
  VirtualMemory& memory() const { return *driver->virtual_memory; }
  const sluice::Machine& machine() const { return driver->machine(); }
  Driver* driver;
  std::unique_lock<std::mutex> lock;
};

}  // namespace

CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  const uint64_t granularity = call.machine().granularity;
  if (ptr == nullptr || bytes == 0 || bytes % granularity != 0 || flags != 0 ||
      (alignment & (alignment - 1)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::optional<uint64_t> at =
      call.driver->space.Reserve(bytes, std::max<uint64_t>(alignment, granularity), hint);
  if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
  *ptr = *at;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  return call.memory().FreeAddress(ptr, bytes);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* prop, unsigned long long flags) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  if (handle == nullptr || prop == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  SpendMappingTime(*call.driver, call.machine().create_ns);
  return call.memory().Create(handle, bytes, *prop);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  return call.memory().Release(handle);
}

CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  SpendMappingTime(*call.driver, call.machine().map_ns);
  return call.memory().Map(ptr, bytes, offset, handle);
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  SpendMappingTime(*call.driver, call.machine().unmap_ns);
  return call.memory().Unmap(ptr, bytes);
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc* desc, size_t count) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  if (desc == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = desc[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (call.driver->FindDevice(location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (!Valid(desc[i].flags)) return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    SpendMappingTime(*call.driver, call.machine().set_access_ns);
    result = call.memory().SetAccess(ptr, bytes, desc[i].location.id, desc[i].flags);
  }
  return result;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (call.driver->FindDevice(location->id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return call.memory().GetAccess(flags, ptr, location->id);
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  if (granularity == nullptr || prop == nullptr ||
      prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
       option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *granularity = call.machine().granularity;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return call.memory().Properties(prop, handle);
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  if (shareable == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return call.memory().Export(static_cast<int*>(shareable), handle);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle,
                                        CUmemAllocationHandleType type) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  if (handle == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return call.memory().Import(handle, static_cast<int>(reinterpret_cast<intptr_t>(os_handle)));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  const Locked call;
  if (!call) return CUDA_ERROR_NOT_INITIALIZED;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return call.memory().Retain(handle, reinterpret_cast<uint64_t>(addr));
}
