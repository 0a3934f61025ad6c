// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/client.h"

namespace sluice {

// What the application is told about memory: its own limit and its own use, so that free + used
// never exceeds total.

CUresult Client::MemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (free_bytes == nullptr || total_bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (EnsureSession() != CUDA_SUCCESS) return driver_->cuMemGetInfo_v2(free_bytes, total_bytes);
  const uint64_t limit = session_.LimitBytes();
  const LockGuard guard(state_lock_);
  const uint64_t used = (arena_.live_granules() << kGranuleShift) + OutsideInLimit();
  *total_bytes = limit;
  *free_bytes = used < limit ? limit - used : 0;
  return CUDA_SUCCESS;
}

CUresult Client::DeviceTotalMem(size_t* bytes, CUdevice device) {
  if (bytes == nullptr || !has_session() || device != session_.device()) {
    return driver_->cuDeviceTotalMem_v2(bytes, device);
  }
  *bytes = session_.LimitBytes();
  return CUDA_SUCCESS;
}

bool Client::IsDefaultPool(CUmemoryPool pool) const {
  return has_session() && pool != nullptr && pool == default_pool_;
}

CUresult Client::PoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const bool ours = attribute >= CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT &&
                    attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
  if (!ours || value == nullptr || !IsDefaultPool(pool)) {
    return driver_->cuMemPoolGetAttribute(pool, attribute, value);
  }
  auto* bytes = static_cast<cuuint64_t*>(value);
  const LockGuard guard(state_lock_);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *bytes = arena_.held_units() * session_.unit_bytes();
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *bytes = reserved_high_units_ * session_.unit_bytes();
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *bytes = arena_.live_granules() << kGranuleShift;
      break;
    default:
      *bytes = used_high_granules_ << kGranuleShift;
  }
  return CUDA_SUCCESS;
}

CUresult Client::PoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const bool high =
      attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
  if (!high || value == nullptr || !IsDefaultPool(pool)) {
    return driver_->cuMemPoolSetAttribute(pool, attribute, value);
  }
  // The driver's rule: a high-water mark can only be reset, by writing 0.
  if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  const LockGuard guard(state_lock_);
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    used_high_granules_ = arena_.live_granules();
  } else {
    reserved_high_units_ = arena_.held_units();
  }
  return CUDA_SUCCESS;
}

CUresult Client::PoolTrimTo(CUmemoryPool pool, size_t keep_bytes) {
  if (!IsDefaultPool(pool)) return driver_->cuMemPoolTrimTo(pool, keep_bytes);
  while (true) {
    uint32_t excess = 0;
    {
      const LockGuard guard(state_lock_);
      const uint64_t keep = (keep_bytes + session_.unit_bytes() - 1) / session_.unit_bytes();
      if (arena_.held_units() > keep) excess = arena_.held_units() - static_cast<uint32_t>(keep);
    }
    if (ReleaseUnits(excess) == 0) break;
  }
  return driver_->cuMemPoolTrimTo(pool, keep_bytes);
}

CUresult Client::AddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  if (!has_session() || !session_.arena().Contains(address)) {
    return driver_->cuMemGetAddressRange_v2(base, bytes, address);
  }
  const LockGuard guard(state_lock_);
  const CUdeviceptr offset = address - session_.arena().base();
  const uint32_t id = arena_.FindContaining(static_cast<uint32_t>(offset >> kGranuleShift));
  if (id == kNoBlock || arena_.block(id).kind != BlockKind::kLive) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = AddressOf(arena_.block(id));
  if (bytes != nullptr) *bytes = size_t{arena_.block(id).size} << kGranuleShift;
  return CUDA_SUCCESS;
}

}  // namespace sluice
