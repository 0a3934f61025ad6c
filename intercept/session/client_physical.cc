// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"
#include "intercept/session/client.h"

namespace sluice {

// Physical memory that the program makes itself (cuMemCreate). It is the driver's until the last
// handle and the last mapping of it are gone: so long its job pays for it. Memory of other processes
// is counted when it is mapped, as nothing tells its size before.

using protocol::Family;

CUresult Client::CreatePhysical(CUmemGenericAllocationHandle* handle, size_t bytes,
                                const CUmemAllocationProp* prop, unsigned long long flags) {
  const auto issue = [=, this] { return driver_->cuMemCreate(handle, bytes, prop, flags); };
  if (handle == nullptr || prop == nullptr) return issue();
  // Memory of the host is not the GPU's.
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return issue();
  if (const CUresult result = EnsureSession(); result != CUDA_SUCCESS) return result;
  if (prop->location.id != session_.device()) {
    Line()
        .Text("the job's memory is on device ")
        .Number(static_cast<uint64_t>(session_.device()))
        .Text("; physical memory on device ")
        .Number(static_cast<uint64_t>(prop->location.id))
        .Text(" is not supported")
        .PrintOnce();
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return AllocOutside(Family::kPhysical, Thing::kPhysical, handle, bytes, issue);
}

CUresult Client::ImportPhysical(CUmemGenericAllocationHandle* handle, void* os_handle,
                                CUmemAllocationHandleType type) {
  const CUresult result = driver_->cuMemImportFromShareableHandle(handle, os_handle, type);
  if (result == CUDA_SUCCESS) KeepCounted(Thing::kPhysical, *handle, 0, Family::kImported);
  return result;
}

CUresult Client::RetainPhysical(CUmemGenericAllocationHandle* handle, void* address) {
  const CUresult result = driver_->cuMemRetainAllocationHandle(handle, address);
  if (result != CUDA_SUCCESS) return result;
  const LockGuard guard(outside_lock_);
  Holding* known = holdings_.Find(Thing::kPhysical, *handle);
  if (known != nullptr) {
    ++known->refs;
    return result;
  }
  // A driver may answer with another handle for the same memory: it keeps the first one's entry.
  const Holding* mapping = holdings_.FindMapping(reinterpret_cast<uintptr_t>(address));
  if (mapping == nullptr) return result;
  Holding* origin = holdings_.Find(Thing::kPhysical, mapping->link);
  if (origin == nullptr) return result;
  ++origin->refs;
  static_cast<void>(holdings_.Insert({*handle, 0, 0, origin->key, 0, 1, 0, Thing::kPhysical}));
  return result;
}

CUresult Client::ReleasePhysical(CUmemGenericAllocationHandle handle) {
  const CUresult result = driver_->cuMemRelease(handle);
  if (result != CUDA_SUCCESS) return result;
  uint64_t gone = 0;
  {
    const LockGuard guard(outside_lock_);
    Holding* known = holdings_.Find(Thing::kPhysical, handle);
    if (known == nullptr) return result;
    if (known->family == 0) {  // another handle of the memory behind `link`
      Holding dropped{};
      const uint64_t origin = known->link;
      static_cast<void>(holdings_.Take(Thing::kPhysical, handle, &dropped));
      known = holdings_.Find(Thing::kPhysical, origin);
      if (known == nullptr) return result;
    }
    if (--known->refs > 0 || known->mapped > 0) return result;
    gone = known->key;
  }
  GiveUp(Thing::kPhysical, gone);
  return result;
}

CUresult Client::MapPhysical(CUdeviceptr address, size_t bytes, size_t offset,
                             CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const CUresult result = driver_->cuMemMap(address, bytes, offset, handle, flags);
  if (result != CUDA_SUCCESS) return result;
  uint64_t counted = 0;
  {
    const LockGuard guard(outside_lock_);
    Holding* known = holdings_.Find(Thing::kPhysical, handle);
    if (known != nullptr && known->family == 0) {
      known = holdings_.Find(Thing::kPhysical, known->link);
    }
    if (known == nullptr) return result;
    ++known->mapped;
    if (known->family == static_cast<uint32_t>(Family::kImported) && known->bytes < bytes) {
      counted = bytes - known->bytes;
      known->bytes = bytes;
    }
    static_cast<void>(
        holdings_.Insert({address, bytes, 0, known->key, 0, 1, 0, Thing::kMapping}));
  }
  if (counted > 0) Count(Family::kImported, static_cast<int64_t>(counted));
  return result;
}

void Client::UnmapOne(const Holding& mapping) {
  {
    const LockGuard guard(outside_lock_);
    Holding gone{};
    if (!holdings_.Take(Thing::kMapping, mapping.key, &gone)) return;
    Holding* known = holdings_.Find(Thing::kPhysical, gone.link);
    if (known == nullptr || --known->mapped > 0 || known->refs > 0) return;
  }
  GiveUp(Thing::kPhysical, mapping.link);
}

CUresult Client::UnmapPhysical(CUdeviceptr address, size_t bytes) {
  const CUresult result = driver_->cuMemUnmap(address, bytes);
  if (result != CUDA_SUCCESS) return result;
  // A range may cover several mappings.
  for (CUdeviceptr at = address; at - address < bytes;) {
    Holding mapping{};
    {
      const LockGuard guard(outside_lock_);
      const Holding* known = holdings_.Find(Thing::kMapping, at);
      if (known == nullptr) return result;
      mapping = *known;
    }
    UnmapOne(mapping);
    at += mapping.bytes;
  }
  return result;
}

}  // namespace sluice
