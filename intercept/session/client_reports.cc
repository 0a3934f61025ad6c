// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <string.h>

#include "intercept/base/line.h"
#include "intercept/session/client.h"

namespace sluice {

// What the application is told about memory: its own limit and its own use, so that free + used
// never exceeds total.

bool Client::IsOf(const protocol::Told& told, CUdevice device) const {
  uint8_t uuid[16];
  return Session::IdentityOf(*driver_, device, uuid) &&
         memcmp(uuid, told.device_uuid, sizeof uuid) == 0;
}

// A report opens no session: whoever only looks may do so in a context of its own, with whose end
// the session would end, and the memory of the program's other contexts with it.
bool Client::ToldOf(CUdevice device, protocol::Told* told) {
  return report_.Ask(socket_path_, told) && IsOf(*told, device);
}

// From now on the GPU's list of processes has this one, and the daemon tells by who said nothing
// who uses the GPU past it. No lock is held: the daemon may be away for seconds.
void Client::ShowPresence() {
  if (has_session() || present_.load()) return;
  protocol::Told told;
  // Where nobody answers, the next context says so again.
  if (!report_.AskFirst(socket_path_, &told)) return;
  present_.store(true);
  State idle = State::kIdle;
  if ((told.flags & protocol::kLeaveAlone) != 0) {
    state_.compare_exchange_strong(idle, State::kAside, std::memory_order_acq_rel);
  }
}

CUresult Client::MemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (free_bytes == nullptr || total_bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdevice device = 0;
  if (driver_->cuCtxGetDevice(&device) != CUDA_SUCCESS ||
      (has_session() && device != session_.device())) {
    return driver_->cuMemGetInfo_v2(free_bytes, total_bytes);
  }
  if (!has_session()) {
    protocol::Told told;
    if (!ToldOf(device, &told)) return driver_->cuMemGetInfo_v2(free_bytes, total_bytes);
    *total_bytes = told.total_bytes;
    *free_bytes = told.used_bytes < told.total_bytes ? told.total_bytes - told.used_bytes : 0;
    return CUDA_SUCCESS;
  }
  const uint64_t limit = session_.LimitBytes();
  const LockGuard guard(state_lock_);
  const uint64_t used = (arena_.live_granules() << kGranuleShift) + OutsideInLimit();
  *total_bytes = limit;
  *free_bytes = used < limit ? limit - used : 0;
  return CUDA_SUCCESS;
}

CUresult Client::DeviceTotalMem(size_t* bytes, CUdevice device) {
  protocol::Told told;
  if (bytes != nullptr && has_session() && device == session_.device()) {
    *bytes = session_.LimitBytes();
  } else if (bytes != nullptr && !has_session() && ToldOf(device, &told)) {
    *bytes = told.total_bytes;
  } else {
    return driver_->cuDeviceTotalMem_v2(bytes, device);
  }
  return CUDA_SUCCESS;
}

CUresult Client::AddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  if (!has_session() || !session_.arena().Contains(address)) {
    return driver_->cuMemGetAddressRange_v2(base, bytes, address);
  }
  // Whether it answers without a current context is the driver's to say.
  const CUresult asked = CurrentContext() != nullptr
                             ? CUDA_SUCCESS
                             : driver_->cuMemGetAddressRange_v2(base, bytes, address);
  if (asked != CUDA_SUCCESS) return asked;
  const LockGuard guard(state_lock_);
  const CUdeviceptr offset = address - session_.arena().base();
  const uint32_t id = arena_.FindContaining(static_cast<uint32_t>(offset >> kGranuleShift));
  if (id == kNoBlock || arena_.block(id).kind != BlockKind::kLive) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = AddressOf(arena_.block(id));
  if (bytes != nullptr) *bytes = size_t{arena_.block(id).size} << kGranuleShift;
  return CUDA_SUCCESS;
}

// What the driver would say of the pool's handle that a block lies in is not what a program asks
// about: a block looks as if it had been allocated alone. False: the driver's answer is right.
bool Client::OwnAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  const LockGuard guard(state_lock_);
  const CUdeviceptr offset = address - session_.arena().base();
  const uint32_t id = arena_.FindContaining(static_cast<uint32_t>(offset >> kGranuleShift));
  if (id == kNoBlock || arena_.block(id).kind != BlockKind::kLive) return false;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(value) = AddressOf(arena_.block(id));
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(value) = size_t{arena_.block(id).size} << kGranuleShift;
      return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      *static_cast<uint64_t*>(value) = CU_MEM_HANDLE_TYPE_NONE;
      return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(value) =
          arena_.block(id).sync ? nullptr : PoolOfBlock(AddressOf(arena_.block(id)));
      return true;
    default:
      return false;
  }
}

// Of a mapping of leased memory the driver says what the pool's handles may be exported as.
void Client::HideHandleTypes(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  if (attribute == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES && TouchesLeased(address, 1)) {
    *static_cast<uint64_t*>(value) = CU_MEM_HANDLE_TYPE_NONE;
  }
}

CUresult Client::PointerAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  const bool own = value != nullptr && has_session() && session_.arena().Contains(address);
  if (own && CurrentContext() != nullptr && OwnAttribute(value, attribute, address))
    return CUDA_SUCCESS;
  const CUresult result = driver_->cuPointerGetAttribute(value, attribute, address);
  if (result != CUDA_SUCCESS) return result;
  if (!own || !OwnAttribute(value, attribute, address)) HideHandleTypes(value, attribute, address);
  return result;
}

CUresult Client::PointerAttributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                   CUdeviceptr address) {
  const CUresult result = driver_->cuPointerGetAttributes(count, attributes, values, address);
  for (unsigned i = 0; result == CUDA_SUCCESS && i < count; ++i) {
    if (has_session() && session_.arena().Contains(address)) {
      static_cast<void>(OwnAttribute(values[i], attributes[i], address));
    } else {
      HideHandleTypes(values[i], attributes[i], address);
    }
  }
  return result;
}

// The driver refuses: the arena is made of memory that this old way cannot share.
CUresult Client::IpcHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  const CUresult result = driver_->cuIpcGetMemHandle(handle, address);
  if (result != CUDA_SUCCESS && has_session() && session_.arena().Contains(address)) {
    Line()
        .Text(
            "memory of this job cannot be shared by cuIpcGetMemHandle; use memory of the program's "
            "own (cuMemCreate) or an exportable memory pool")
        .PrintOnce();
  }
  return result;
}

}  // namespace sluice
