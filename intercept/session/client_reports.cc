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
