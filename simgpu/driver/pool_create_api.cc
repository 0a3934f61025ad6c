// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/pools.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

// Memory pools as objects: making and destroying them, their properties, which one is current.

namespace {

/// There are pools of pinned memory of a GPU and no others.
CUresult CheckPlace(const CUmemLocation* location, CUmemAllocationType type) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (location == nullptr ||
      (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) return NotSupported("a pool of managed memory");
  switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return Driver::Get()->FindDevice(location->id) != nullptr ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return NotSupported("a pool of host memory");
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice dev) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pool = device->default_pool;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pool = CurrentPool(*device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  // By the header it must be local to the device.
  if (!Usable(pool) || pool->imported || pool->props.location.id != dev) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::lock_guard lock(Driver::Get()->mutex);
  device->current_pool = pool;
  return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                CUmemAllocationType type) {
  const CUresult result = CheckPlace(location, type);
  return result == CUDA_SUCCESS ? cuDeviceGetDefaultMemPool(pool, location->id) : result;
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  const CUresult result = CheckPlace(location, type);
  return result == CUDA_SUCCESS ? cuDeviceGetMemPool(pool, location->id) : result;
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  const CUresult result = CheckPlace(location, type);
  return result == CUDA_SUCCESS ? cuDeviceSetMemPool(location->id, pool) : result;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (pool == nullptr || props == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult place = CheckPlace(&props->location, props->allocType);
  if (place != CUDA_SUCCESS) return place;
  static constexpr unsigned char kZero[sizeof props->reserved] = {};
  if (props->win32SecurityAttributes != nullptr ||
      memcmp(props->reserved, kZero, sizeof kZero) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (props->usage != 0) return NotSupported("cuMemPoolCreate with a usage");
  if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE &&
      props->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  GpuState* gpu = driver->FindDevice(props->location.id)->gpu();
  sluice::Result<sluice::UniqueFd> file =
      gpu->CreateSparse(Heap::WindowBytes(*gpu) * CUmemPoolHandle_st::kWindows);
  if (!file.ok()) return CUDA_ERROR_OPERATING_SYSTEM;
  CUmemoryPool made = driver->NewPool(*props);
  made->file = std::move(*file);
  *pool = made;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Usable(pool) || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Context*> contexts;
  {
    const std::lock_guard lock(driver->mutex);
    if (pool->destroyed.exchange(true)) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& device : driver->devices) {
      if (device->current_pool == pool) device->current_pool = device->default_pool;
    }
    for (const auto& context : driver->contexts) contexts.push_back(context.get());
  }
  // What is free goes now, the rest at the synchronisations after its last free.
  for (Context* context : contexts) {
    const std::lock_guard lock(context->mutex);
    if (context->FindPoolHeap(pool) != nullptr) context->TrimPools();
  }
  driver->ReleasePool(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Usable(pool) || (map == nullptr && count != 0)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = map[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (driver->FindDevice(location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const CUmemAccess_flags flags = map[i].flags;
    if (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) continue;
    // The GPU that the memory is on always has access to it.
    if (location.id == pool->props.location.id ||
        (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < count; ++i) {
    const int ordinal = map[i].location.id;
    const auto access = static_cast<uint8_t>(map[i].flags);
    // First the pool: a heap that is made meanwhile has it from there.
    pool->access[static_cast<size_t>(ordinal)].store(access);
    ForEachHeap(driver, pool, [&](Heap& heap) {
      const CUresult set = heap.SetAccess(ordinal, access);
      if (result == CUDA_SUCCESS) result = set;
    });
  }
  return result;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  const Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (flags == nullptr || !Usable(pool) || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
      driver->FindDevice(location->id) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *flags = static_cast<CUmemAccess_flags>(pool->access[static_cast<size_t>(location->id)].load());
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Usable(pool) || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->release_threshold.store(*static_cast<const cuuint64_t*>(value));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      ForEachHeap(driver, pool, [attribute](Heap& heap) {
        if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
          heap.pool().ResetUsedHigh();
        } else {
          heap.pool().ResetReservedHigh();
        }
      });
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      // Remembered and no more: the first two ways of reuse are always taken, and the third, making
      // one stream wait for another, never is.
      pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES].store(
          *static_cast<const int*>(value) != 0 ? 1 : 0);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Usable(pool) || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto sum = [&](uint64_t (BlockPool::*count)() const) {
    cuuint64_t bytes = 0;
    ForEachHeap(driver, pool, [&](Heap& heap) { bytes += (heap.pool().*count)(); });
    *static_cast<cuuint64_t*>(value) = bytes;
    return CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *static_cast<cuuint64_t*>(value) = pool->release_threshold.load();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return sum(&BlockPool::reserved);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return sum(&BlockPool::reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return sum(&BlockPool::used);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return sum(&BlockPool::used_high);
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) =
          pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES].load();
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
