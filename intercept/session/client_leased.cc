// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"
#include "intercept/session/client.h"

namespace sluice {

// Physical memory of the program's own (cuMemCreate) that is made of units of the pool. Each unit
// is mapped where the program wants it a second time, beside its place in the arena, where it is a
// live block that nobody touches.
//
// Who holds the bytes: the block, until the last handle and the last mapping of the program are
// gone. What proves that the GPU is done with them: that the context was synchronised after that,
// by the program or by whoever needs the memory (Drain); an unmap waits for nothing, as a driver's
// does. Who waits: nobody.
//
// A driver maps a handle from its start and as a whole. So this is possible only where a unit of
// the pool is a handle of its own, and for sizes that are whole units. Each unit is a mapping of
// its own to the driver, and is unmapped as it was mapped.

bool Client::Leasable(const CUmemAllocationProp& prop, size_t bytes) const {
  // Sparse arrays and compressible memory need handles that were made for that.
  const bool plain = prop.type == CU_MEM_ALLOCATION_TYPE_PINNED && prop.allocFlags.usage == 0 &&
                     prop.allocFlags.compressionType == 0;
  const bool wanted = prop.requestedHandleTypes == 0 || settings_.lease_exportable;
  if (!plain || !wanted || bytes == 0) return false;
  const uint64_t unit = session_.unit_bytes();
  if (session_.handle_bytes() == unit && bytes % unit == 0) return true;
  if (settings_.lease_exportable) {
    Line()
        .Text("physical memory of ")
        .Bytes(bytes)
        .Text(" is charged outside the pool, not leased: for that it must be a multiple of the ")
        .Text("lease unit (")
        .Bytes(unit)
        .Text("), which must be as large as a handle of the pool (")
        .Bytes(session_.handle_bytes())
        .Text("); see sluice-noded --lease-unit and --handle")
        .PrintOnce();
  }
  return false;
}

CUresult Client::LeasePhysical(CUmemGenericAllocationHandle* handle, size_t bytes) {
  if (MoreThanPool(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto pieces = static_cast<uint32_t>(bytes / session_.unit_bytes());
  uint64_t memory = 0;
  uint64_t session = 0;
  {
    const LockGuard guard(outside_lock_);
    memory = ++memories_made_;
    session = sessions_ended_;
  }
  Want want{};
  want.whole_unit = true;
  for (uint32_t piece = 0; piece < pieces; ++piece) {
    CUdeviceptr at = 0;
    bool mark_due = false;
    CUresult result = CUDA_SUCCESS;
    if (!TryAllocate(want, &at, &mark_due)) result = LeaseFor(want, pieces - piece, &at);
    if (result == CUDA_SUCCESS && KeepPiece(memory, piece, at, session)) continue;
    FreePieces(memory, piece, false);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const LockGuard guard(outside_lock_);
  // The session that the units belonged to may have ended meanwhile, and they with it.
  if (session != sessions_ended_) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = kLeasedHandle | memory;
  static_cast<void>(holdings_.Insert({memory, bytes, 0, pieces, 0, 1, 0, Thing::kMemory}));
  static_cast<void>(holdings_.Insert({*handle, 0, 0, memory, 0, 1, 0, Thing::kPhysical}));
  return CUDA_SUCCESS;
}

// False, with the unit free again, when the host has no memory for the entry; or when the session
// ended meanwhile.
bool Client::KeepPiece(uint64_t memory, uint32_t piece, CUdeviceptr at, uint64_t session) {
  {
    const LockGuard guard(outside_lock_);
    if (session != sessions_ended_) return false;
    if (holdings_.Insert({PieceKey(memory, piece), 0, 0, at, 0, 1, 0, Thing::kPiece})) {
      ++leased_pieces_;
      leased_ever_ = true;
      return true;
    }
  }
  const LockGuard guard(state_lock_);
  const uint32_t id = FindLiveAt(at);
  if (id != kNoBlock) FreeFound(id, true);
  return false;
}

// `used`: the GPU may have been working in them, on any stream.
void Client::FreePieces(uint64_t memory, uint32_t pieces, bool used) {
  for (uint32_t piece = 0; piece < pieces; ++piece) {
    Holding gone{};
    {
      const LockGuard guard(outside_lock_);
      if (!holdings_.Take(Thing::kPiece, PieceKey(memory, piece), &gone)) continue;
      --leased_pieces_;
    }
    const LockGuard guard(state_lock_);
    const uint32_t id = FindLiveAt(gone.link);
    if (id != kNoBlock) FreeFound(id, !used);
  }
}

CUresult Client::MapPiece(CUdeviceptr address, uint64_t memory, uint32_t piece) {
  CUdeviceptr at = 0;
  {
    const LockGuard guard(outside_lock_);
    const Holding* known = holdings_.Find(Thing::kPiece, PieceKey(memory, piece));
    if (known == nullptr) return CUDA_ERROR_INVALID_VALUE;  // the session ended meanwhile
    at = known->link;
  }
  CUmemGenericAllocationHandle unit = 0;
  CUresult result = driver_->cuMemRetainAllocationHandle(&unit, reinterpret_cast<void*>(at));
  if (result != CUDA_SUCCESS) return result;
  result = driver_->cuMemMap(address, session_.unit_bytes(), 0, unit, 0);
  static_cast<void>(driver_->cuMemRelease(unit));  // the mapping keeps it
  return result;
}

CUresult Client::MapLeased(CUdeviceptr address, size_t bytes, size_t offset,
                           CUmemGenericAllocationHandle handle, unsigned long long flags) {
  uint64_t memory = 0;
  uint32_t pieces = 0;
  {
    const LockGuard guard(outside_lock_);
    const Holding* named = holdings_.Find(Thing::kPhysical, handle);
    Holding* known = named == nullptr ? nullptr : holdings_.Find(Thing::kMemory, named->link);
    // The answers are the driver's.
    if (known == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (offset != 0 || bytes < known->bytes) return CUDA_ERROR_NOT_SUPPORTED;
    if (bytes > known->bytes) return CUDA_ERROR_INVALID_VALUE;
    if (holdings_.Find(Thing::kMapping, address) != nullptr) return CUDA_ERROR_INVALID_VALUE;
    memory = known->key;
    pieces = static_cast<uint32_t>(known->link);
    ++known->mapped;  // from here on it stays, whoever releases the handle meanwhile
    known->high = 1;  // the GPU may get to it
    // Before anything is mapped: a session that ends meanwhile has to find it.
    if (!holdings_.Insert({address, bytes, 0, memory, 0, 1, 0, Thing::kMapping})) {
      --known->mapped;
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  const uint64_t unit = session_.unit_bytes();
  for (uint32_t done = 0; done < pieces; ++done) {
    const CUresult result = MapPiece(address + done * unit, memory, done);
    if (result == CUDA_SUCCESS) continue;
    Holding gone{};
    static_cast<void>(UnmapPieces(address, done * unit, unit));
    static_cast<void>(Forget(Thing::kMapping, address, &gone));
    DropMemory(memory, true);
    return result;
  }
  return CUDA_SUCCESS;
}

CUresult Client::UnmapPieces(CUdeviceptr address, size_t bytes, uint64_t unit) {
  CUresult result = CUDA_SUCCESS;
  for (size_t done = 0; done < bytes; done += unit) {
    const CUresult one = driver_->cuMemUnmap(address + done, unit);
    if (result == CUDA_SUCCESS) result = one;
  }
  return result;
}

bool Client::HasLeased() {
  const LockGuard guard(outside_lock_);
  return leased_pieces_ != 0;
}

// outside_lock_ is held.
bool Client::IsLeasedMapping(const Holding& mapping) {
  if (mapping.refs == 0) return true;
  const Holding* memory = holdings_.Find(Thing::kMemory, mapping.link);
  return memory != nullptr && memory->link > 0;
}

bool Client::TouchesLeased(CUdeviceptr address, size_t bytes) {
  const LockGuard guard(outside_lock_);
  bool touches = false;
  if (!leased_ever_) return false;
  holdings_.ForEach([&](const Holding& holding) {
    touches = touches || (holding.thing == Thing::kMapping && holding.key < address + bytes &&
                          address < holding.key + holding.bytes && IsLeasedMapping(holding));
  });
  return touches;
}

// A range that begins or ends inside of a mapping is refused, as the driver would refuse it: to it,
// units of the pool are mappings of their own. What the pool took back is not mapped any more.
CUresult Client::UnmapOneByOne(CUdeviceptr address, size_t bytes) {
  {
    const LockGuard guard(outside_lock_);
    const Holding* first = holdings_.FindMapping(address);
    const Holding* last = holdings_.FindMapping(address + bytes - 1);
    if (first == nullptr || first->key != address || last == nullptr ||
        last->key + last->bytes != address + bytes) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  for (CUdeviceptr at = address; at - address < bytes;) {
    Holding mapping{};
    bool leased = false;
    {
      const LockGuard guard(outside_lock_);
      const Holding* found = holdings_.Find(Thing::kMapping, at);
      if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
      mapping = *found;
      leased = IsLeasedMapping(mapping);
    }
    if (mapping.refs > 0) {
      const uint64_t step = leased ? session_.unit_bytes() : mapping.bytes;
      const CUresult result = UnmapPieces(at, mapping.bytes, step);
      if (result != CUDA_SUCCESS) return result;
    }
    static_cast<void>(Forget(Thing::kMapping, at, &mapping));
    DropMemory(mapping.link, true);
    at += mapping.bytes;
  }
  return CUDA_SUCCESS;
}

// The session ends with its context, and its units go back to the pool. What is still mapped of
// them is unmapped, so that work in a later context finds nothing there rather than somebody else's
// data. Handles and ranges stay the program's to give up. `idle`: no context is at work; else the
// units stay with the process until that ends, and so do the mappings. False: something could not
// be unmapped, and nothing may go back.
bool Client::EndLeased(bool idle) {
  bool all = true;
  while (idle) {
    Holding mapping{};
    {
      const LockGuard guard(outside_lock_);
      if (leased_pieces_ == 0) break;
      holdings_.ForEach([&](Holding& holding) {
        if (holding.thing != Thing::kMapping || holding.refs == 0 || mapping.bytes != 0 ||
            !IsLeasedMapping(holding)) {
          return;
        }
        mapping = holding;
        holding.refs = 0;
      });
    }
    if (mapping.bytes == 0) break;
    if (UnmapPieces(mapping.key, mapping.bytes, session_.unit_bytes()) == CUDA_SUCCESS) continue;
    all = false;
    Line()
        .Text(
            "physical memory leased from the pool could not be unmapped: this job's memory is "
            "free when the process has ended")
        .PrintOnce();
  }
  const LockGuard guard(outside_lock_);
  ++sessions_ended_;
  leased_pieces_ = 0;
  // An entry that is taken out moves others: begin anew after each.
  for (bool found = true; found;) {
    Holding gone{};
    holdings_.ForEach([&](const Holding& holding) {
      if (holding.thing == Thing::kPiece || (holding.thing == Thing::kMemory && holding.link > 0)) {
        gone = holding;
      }
    });
    found = gone.thing != Thing{};
    if (found) static_cast<void>(holdings_.Take(gone.thing, gone.key, &gone));
  }
  return all;
}

CUresult Client::ExportPhysical(void* shareable, CUmemGenericAllocationHandle handle,
                                CUmemAllocationHandleType type, unsigned long long flags) {
  if (!IsLeasedHandle(handle)) {
    return driver_->cuMemExportToShareableHandle(shareable, handle, type, flags);
  }
  Line()
      .Text(
          "physical memory leased from the pool cannot be exported: nothing would tell when the "
          "last importer is done with it; run without SLUICE_PHYSICAL=lease to have it charged "
          "outside the pool instead")
      .PrintOnce();
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult Client::BindMulticast(CUmemGenericAllocationHandle handle) {
  if (!IsLeasedHandle(handle)) return CUDA_SUCCESS;
  Line()
      .Text("physical memory leased from the pool cannot be bound to a multicast object")
      .PrintOnce();
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Descriptors for other devices (dma-buf): they outlive the block as an exported handle would.
CUresult Client::ShareRange(CUdeviceptr address, size_t bytes) {
  const bool arena = has_session() && session_.arena().Contains(address);
  if (!arena && !TouchesLeased(address, bytes)) return CUDA_SUCCESS;
  Line()
      .Text(
          "memory of the pool has no handle that others could hold; use physical memory of the "
          "program's own that is charged outside the pool")
      .PrintOnce();
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult Client::PhysicalProperties(CUmemAllocationProp* prop,
                                    CUmemGenericAllocationHandle handle) {
  if (!IsLeasedHandle(handle)) {
    return driver_->cuMemGetAllocationPropertiesFromHandle(prop, handle);
  }
  const LockGuard guard(outside_lock_);
  if (prop == nullptr || holdings_.Find(Thing::kPhysical, handle) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *prop = {};
  prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop->location = {CU_MEM_LOCATION_TYPE_DEVICE, session_.device()};
  return CUDA_SUCCESS;
}

}  // namespace sluice
