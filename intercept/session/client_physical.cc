// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"
#include "intercept/session/client.h"

namespace sluice {

// Physical memory that the program makes itself (cuMemCreate). It is the driver's until the last
// handle and the last mapping of it are gone: so long its job pays for it. Memory of other
// processes is counted when it is mapped, as nothing tells its size before.

using protocol::Family;

CUresult Client::CreatePhysical(CUmemGenericAllocationHandle* handle, size_t bytes,
                                const CUmemAllocationProp* prop, unsigned long long flags) {
  const auto issue = [=, this] { return driver_->cuMemCreate(handle, bytes, prop, flags); };
  if (handle == nullptr || prop == nullptr) return issue();
  // Memory of the host is not the GPU's, and of a GPU that is none the driver says so.
  const CUdevice device = prop->location.id;
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !IsDevice(device)) return issue();
  if (LeftAlone()) return issue();
  if (const CUresult result = EnsureSessionOn(device); result != CUDA_SUCCESS) return result;
  if (flags == 0 && Leasable(*prop, bytes)) return LeasePhysical(handle, bytes);
  if (const CUresult result = Charge(Family::kPhysical, bytes, device); result != CUDA_SUCCESS) {
    return result;
  }
  const CUresult result = issue();
  if (result == CUDA_SUCCESS) {
    KeepPhysical(*handle, bytes, Family::kPhysical);
  } else {
    Uncharge(Family::kPhysical, bytes);
  }
  return result;
}

void Client::KeepPhysical(CUmemGenericAllocationHandle handle, uint64_t bytes, Family family) {
  const LockGuard guard(outside_lock_);
  const uint64_t memory = ++memories_made_;
  static_cast<void>(
      holdings_.Insert({memory, bytes, 0, 0, static_cast<uint32_t>(family), 1, 0, Thing::kMemory}));
  static_cast<void>(holdings_.Insert({handle, 0, 0, memory, 0, 1, 0, Thing::kPhysical}));
}

// A handle or a mapping of it is gone; with the last of them it is the driver's again.
void Client::DropMemory(uint64_t memory, bool mapping) {
  Holding gone{};
  {
    const LockGuard guard(outside_lock_);
    Holding* known = holdings_.Find(Thing::kMemory, memory);
    if (known == nullptr) return;
    --(mapping ? known->mapped : known->refs);
    if (known->mapped > 0 || known->refs > 0) return;
    static_cast<void>(holdings_.Take(Thing::kMemory, memory, &gone));
  }
  if (gone.link > 0) {
    FreePieces(memory, static_cast<uint32_t>(gone.link), gone.high > 0);
  } else {
    GiveUp(gone);
  }
}

CUresult Client::ImportPhysical(CUmemGenericAllocationHandle* handle, void* os_handle,
                                CUmemAllocationHandleType type) {
  const CUresult result = driver_->cuMemImportFromShareableHandle(handle, os_handle, type);
  if (result == CUDA_SUCCESS) KeepPhysical(*handle, 0, Family::kImported);
  return result;
}

CUresult Client::RetainPhysical(CUmemGenericAllocationHandle* handle, void* address) {
  // What is behind a block is the pool's: with its handle, the program could map and export what is
  // lent to somebody else later. A driver has none for cuMemAlloc's memory, either.
  if (has_session() && session_.arena().Contains(reinterpret_cast<uintptr_t>(address))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t memory = 0;
  {
    // Before the driver is asked, which may take its time: what this handle is for stays, and is
    // paid for, whoever gives up the rest of it meanwhile.
    const LockGuard guard(outside_lock_);
    const Holding* mapping = holdings_.FindMapping(reinterpret_cast<uintptr_t>(address));
    Holding* known = mapping == nullptr || handle == nullptr
                         ? nullptr
                         : holdings_.Find(Thing::kMemory, mapping->link);
    if (known != nullptr) {
      memory = known->key;
      ++known->refs;
      if (known->link > 0) {
        // The program's handle stands for all the units; the driver's would for one of them.
        *handle = kLeasedHandle | memory;
        KeepHandle(*handle, memory);
        return CUDA_SUCCESS;
      }
    }
  }
  const CUresult result = driver_->cuMemRetainAllocationHandle(handle, address);
  if (memory == 0) return result;
  if (result != CUDA_SUCCESS) {
    DropMemory(memory, false);
    return result;
  }
  const LockGuard guard(outside_lock_);
  KeepHandle(*handle, memory);
  return result;
}

// outside_lock_ is held. The same handle again, or another one for the same memory.
void Client::KeepHandle(CUmemGenericAllocationHandle handle, uint64_t memory) {
  Holding* again = holdings_.Find(Thing::kPhysical, handle);
  if (again != nullptr) {
    ++again->refs;
  } else {
    static_cast<void>(holdings_.Insert({handle, 0, 0, memory, 0, 1, 0, Thing::kPhysical}));
  }
}

CUresult Client::ReleasePhysical(CUmemGenericAllocationHandle handle) {
  uint64_t memory = 0;
  {
    // Before the driver may give the handle to somebody else.
    const LockGuard guard(outside_lock_);
    Holding* known = holdings_.Find(Thing::kPhysical, handle);
    if (known != nullptr) {
      memory = known->link;
      Holding gone{};
      if (--known->refs == 0) {
        static_cast<void>(holdings_.Take(Thing::kPhysical, handle, &gone));
      }
    }
  }
  if (IsLeasedHandle(handle)) {
    if (memory == 0) return CUDA_ERROR_INVALID_VALUE;
    DropMemory(memory, false);
    return CUDA_SUCCESS;
  }
  const CUresult result = driver_->cuMemRelease(handle);
  if (memory == 0) return result;
  if (result == CUDA_SUCCESS) {
    DropMemory(memory, false);
    return result;
  }
  const LockGuard guard(outside_lock_);
  KeepHandle(handle, memory);
  return result;
}

CUresult Client::MapPhysical(CUdeviceptr address, size_t bytes, size_t offset,
                             CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (IsLeasedHandle(handle)) return MapLeased(address, bytes, offset, handle, flags);
  uint64_t memory = 0;
  {
    // Before the driver is asked: what it maps is paid for, though another thread may give up the
    // last handle meanwhile.
    const LockGuard guard(outside_lock_);
    const Holding* named = holdings_.Find(Thing::kPhysical, handle);
    Holding* known = named == nullptr ? nullptr : holdings_.Find(Thing::kMemory, named->link);
    if (known != nullptr) {
      memory = known->key;
      ++known->mapped;
    }
  }
  const CUresult result = driver_->cuMemMap(address, bytes, offset, handle, flags);
  if (memory == 0) return result;
  if (result != CUDA_SUCCESS) {
    DropMemory(memory, true);
    return result;
  }
  uint64_t counted = 0;
  {
    const LockGuard guard(outside_lock_);
    Holding* known = holdings_.Find(Thing::kMemory, memory);
    if (known->family == static_cast<uint32_t>(Family::kImported) && known->bytes < bytes) {
      counted = bytes - known->bytes;
      known->bytes = bytes;
    }
    static_cast<void>(holdings_.Insert({address, bytes, 0, memory, 0, 1, 0, Thing::kMapping}));
  }
  if (counted > 0) Count(Family::kImported, static_cast<int64_t>(counted));
  return result;
}

CUresult Client::UnmapPhysical(CUdeviceptr address, size_t bytes) {
  if (TouchesLeased(address, bytes)) return UnmapOneByOne(address, bytes);
  const CUresult result = driver_->cuMemUnmap(address, bytes);
  if (result != CUDA_SUCCESS) return result;
  // A range may cover several mappings. Nobody else can map there before this call returns: the
  // addresses are the program's.
  for (CUdeviceptr at = address; at - address < bytes;) {
    Holding mapping{};
    if (!Forget(Thing::kMapping, at, &mapping)) return result;
    DropMemory(mapping.link, true);
    at += mapping.bytes;
  }
  return result;
}

}  // namespace sluice
