// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/arena_map.h"

namespace sluice {

const char* ArenaMap::Reserve(const DriverTable& driver, uint64_t handle_bytes,
                              uint32_t handle_count, uint32_t windows) {
  CUdeviceptr base = 0;
  if (!shows_.Reserve(windows)) return "the host is out of memory";
  const uint64_t bytes = handle_bytes * (uint64_t{handle_count} + windows);
  if (driver.cuMemAddressReserve(&base, bytes, 0, 0, 0) != CUDA_SUCCESS) {
    return "no virtual address range for the pool";
  }
  windows_ = windows;
  handle_bytes_ = handle_bytes;
  handle_count_ = handle_count;
  mapped_ = 0;
  base_.store(base, std::memory_order_release);
  bytes_.store(bytes, std::memory_order_release);
  return nullptr;
}

const char* ArenaMap::MapNext(const DriverTable& driver, int fd) {
  CUmemGenericAllocationHandle handle = 0;
  auto* shareable = reinterpret_cast<void*>(static_cast<uintptr_t>(fd));
  if (driver.cuMemImportFromShareableHandle(
          &handle, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS) {
    return "the driver does not import the pool's memory";
  }
  const CUresult mapped =
      driver.cuMemMap(base() + mapped_ * handle_bytes_, handle_bytes_, 0, handle, 0);
  // The mapping keeps the memory; the handle is not needed again.
  static_cast<void>(driver.cuMemRelease(handle));
  if (mapped != CUDA_SUCCESS) return "the driver does not map the pool's memory";
  ++mapped_;
  return nullptr;
}

const char* ArenaMap::SetAccess(const DriverTable& driver, CUdevice device) {
  if (!Allow(driver, device, base(), pool_bytes())) {
    return "the driver gives no access to the pool's memory";
  }
  return nullptr;
}

bool ArenaMap::Allow(const DriverTable& driver, CUdevice device, CUdeviceptr at, uint64_t bytes) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return driver.cuMemSetAccess(at, bytes, &access, 1) == CUDA_SUCCESS;
}

bool ArenaMap::MapShown(const DriverTable& driver, uint32_t place, uint32_t shown) {
  CUmemGenericAllocationHandle handle = 0;
  void* const at = reinterpret_cast<void*>(base() + shown * handle_bytes_);
  if (shows_[place - handle_count_] != 0 ||
      driver.cuMemRetainAllocationHandle(&handle, at) != CUDA_SUCCESS) {
    return false;
  }
  const bool mapped =
      driver.cuMemMap(base() + place * handle_bytes_, handle_bytes_, 0, handle, 0) == CUDA_SUCCESS;
  static_cast<void>(driver.cuMemRelease(handle));
  if (mapped) shows_[place - handle_count_] = 1;
  return mapped;
}

bool ArenaMap::AllowWindow(const DriverTable& driver, CUdevice device, uint32_t place,
                           uint32_t handles) {
  return Allow(driver, device, base() + place * handle_bytes_, handles * handle_bytes_);
}

void ArenaMap::UnmapWindow(const DriverTable& driver, uint32_t place, uint32_t handles) {
  for (uint32_t i = place; i < place + handles; ++i) {
    if (shows_[i - handle_count_] == 0) continue;
    static_cast<void>(driver.cuMemUnmap(base() + i * handle_bytes_, handle_bytes_));
    shows_[i - handle_count_] = 0;
  }
}

void ArenaMap::UnmapHandles(const DriverTable& driver) {
  UnmapWindow(driver, handle_count_, windows_);
  for (uint32_t i = 0; i < mapped_; ++i) {
    static_cast<void>(driver.cuMemUnmap(base() + i * handle_bytes_, handle_bytes_));
  }
  mapped_ = 0;
}

void ArenaMap::Unmap(const DriverTable& driver) {
  const CUdeviceptr base = this->base();
  if (base == 0) return;
  UnmapHandles(driver);
  const uint64_t bytes = bytes_.exchange(0);
  base_.store(0);
  handle_bytes_ = 0;
  handle_count_ = windows_ = 0;
  shows_.Free();
  static_cast<void>(driver.cuMemAddressFree(base, bytes));
}

}  // namespace sluice
