// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/arena_map.h"

namespace sluice {

const char* ArenaMap::Reserve(const DriverTable& driver, uint64_t handle_bytes,
                              uint32_t handle_count) {
  CUdeviceptr base = 0;
  if (driver.cuMemAddressReserve(&base, handle_bytes * handle_count, 0, 0, 0) != CUDA_SUCCESS) {
    return "no virtual address range for the pool";
  }
  handle_bytes_ = handle_bytes;
  handle_count_ = handle_count;
  mapped_ = 0;
  base_.store(base, std::memory_order_release);
  bytes_.store(handle_bytes * handle_count, std::memory_order_release);
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
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (driver.cuMemSetAccess(base(), bytes(), &access, 1) != CUDA_SUCCESS) {
    return "the driver gives no access to the pool's memory";
  }
  return nullptr;
}

void ArenaMap::UnmapHandles(const DriverTable& driver) {
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
  handle_count_ = 0;
  static_cast<void>(driver.cuMemAddressFree(base, bytes));
}

}  // namespace sluice
