// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gpu/cuda_device.h"

#include <algorithm>
#include <cstring>

#include "common/bytes.h"

namespace sluice::gpu {
namespace {

CUmemAllocationProp PoolProperties(CUdevice device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::Open(uint32_t ordinal) {
  Result<Driver> driver = Driver::Load();
  if (!driver.ok()) return driver.status();
  if (Status s = driver->Check(driver->cuInit(0), "cuInit"); !s.ok()) return s;
  int count = 0;
  if (Status s = driver->Check(driver->cuDeviceGetCount(&count), "cuDeviceGetCount"); !s.ok()) {
    return s;
  }
  if (ordinal >= static_cast<uint32_t>(std::max(count, 0))) {
    return Status(StatusCode::kInvalidArgument,
                  "gpu " + std::to_string(ordinal) + ": this machine has " + std::to_string(count) +
                      (count == 1 ? " GPU (allowed: 0)" : " GPUs (allowed: less than that)"));
  }

  std::unique_ptr<CudaDevice> made(new CudaDevice(*driver));
  const Driver& api = made->driver_;
  if (Status s =
          api.Check(api.cuDeviceGet(&made->device_, static_cast<int>(ordinal)), "cuDeviceGet");
      !s.ok()) {
    return s;
  }
  char name[256] = {};
  CUuuid uuid = {};
  size_t total = 0;
  size_t granularity = 0;
  const CUmemAllocationProp properties = PoolProperties(made->device_);
  if (Status s =
          api.Check(api.cuDeviceGetName(name, sizeof name - 1, made->device_), "cuDeviceGetName");
      !s.ok()) {
    return s;
  }
  if (Status s = api.Check(api.cuDeviceGetUuid_v2(&uuid, made->device_), "cuDeviceGetUuid");
      !s.ok()) {
    return s;
  }
  if (Status s = api.Check(api.cuDeviceTotalMem_v2(&total, made->device_), "cuDeviceTotalMem");
      !s.ok()) {
    return s;
  }
  if (Status s = api.Check(api.cuMemGetAllocationGranularity(&granularity, &properties,
                                                             CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                           "cuMemGetAllocationGranularity");
      !s.ok()) {
    return s;
  }
  made->info_.name = name;
  std::memcpy(made->info_.uuid.data(), uuid.bytes, made->info_.uuid.size());
  made->info_.total_bytes = total;
  made->info_.granularity = granularity;

  Result<std::unique_ptr<Nvml>> nvml = Nvml::Load();
  if (!nvml.ok()) {
    return nvml.status().Annotate(
        "without the driver's list of compute processes nothing tells when the memory of a killed "
        "job is free");
  }
  made->nvml_ = std::move(*nvml);
  return made;
}

Result<std::vector<UniqueFd>> CudaDevice::CreateHandles(uint32_t count, uint64_t bytes) {
  const CUmemAllocationProp properties = PoolProperties(device_);
  std::vector<UniqueFd> fds;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string what = "handle " + std::to_string(i + 1) + " of " + std::to_string(count) +
                             " (" + FormatBytes(bytes) + " each)";
    CUmemGenericAllocationHandle handle = 0;
    if (Status s = driver_.Check(driver_.cuMemCreate(&handle, bytes, &properties, 0), what);
        !s.ok()) {
      return s;
    }
    int fd = -1;
    const Status exported =
        driver_.Check(driver_.cuMemExportToShareableHandle(
                          &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                      what + ": export");
    // The descriptor keeps the memory alive from here on; the daemon maps it only when it poisons.
    driver_.cuMemRelease(handle);
    if (!exported.ok()) return exported;
    fds.emplace_back(fd);
  }
  std::vector<int> numbers;
  for (const UniqueFd& fd : fds) numbers.push_back(fd.get());
  AdoptHandles(numbers, bytes);
  return fds;
}

void CudaDevice::AdoptHandles(const std::vector<int>& handles, uint64_t bytes) {
  handle_fds_ = handles;
  handle_bytes_ = bytes;
}

Status CudaDevice::EnterContext() {
  if (context_ == nullptr) {
    if (Status s = driver_.Check(driver_.cuDevicePrimaryCtxRetain(&context_, device_),
                                 "the daemon's own context");
        !s.ok()) {
      context_ = nullptr;
      return s;
    }
  }
  return driver_.Check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

Status CudaDevice::MapArena() {
  if (Status s = EnterContext(); !s.ok() || arena_ != 0) return s;
  CUdeviceptr arena = 0;
  if (Status s = driver_.Check(driver_.cuMemAddressReserve(&arena, pool_bytes(), 0, 0, 0),
                               "cuMemAddressReserve");
      !s.ok()) {
    return s;
  }
  if (Status s = MapHandles(arena); !s.ok()) {
    // Half a mapping would be taken for a whole one by the next call.
    driver_.cuMemAddressFree(arena, pool_bytes());
    return s;
  }
  arena_ = arena;
  return {};
}

Status CudaDevice::MapHandles(CUdeviceptr arena) {
  size_t count = 0;
  Status status;
  for (; count < handle_fds_.size(); ++count) {
    CUmemGenericAllocationHandle handle = 0;
    void* os_handle = reinterpret_cast<void*>(static_cast<intptr_t>(handle_fds_[count]));
    status = driver_.Check(driver_.cuMemImportFromShareableHandle(
                               &handle, os_handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                           "cuMemImportFromShareableHandle");
    if (!status.ok()) break;
    status = driver_.Check(
        driver_.cuMemMap(arena + count * handle_bytes_, handle_bytes_, 0, handle, 0), "cuMemMap");
    driver_.cuMemRelease(handle);
    if (!status.ok()) break;
  }
  if (status.ok()) {
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device_},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    status =
        driver_.Check(driver_.cuMemSetAccess(arena, pool_bytes(), &access, 1), "cuMemSetAccess");
  }
  if (status.ok()) return {};
  for (size_t i = 0; i < count; ++i) {
    driver_.cuMemUnmap(arena + i * handle_bytes_, handle_bytes_);
  }
  return status;
}

Status CudaDevice::Poison(uint64_t offset, uint64_t bytes) {
  if (Status s = MapArena(); !s.ok()) return s.Annotate("poison");
  if (Status s =
          driver_.Check(driver_.cuMemsetD32_v2(arena_ + offset, kPoison, bytes / 4), "poison");
      !s.ok()) {
    return s;
  }
  // A memset of device memory is asynchronous; nobody may get the bytes before it is done.
  return driver_.Check(driver_.cuCtxSynchronize(), "poison");
}

bool CudaDevice::IsUsedBy(pid_t pid) {
  const Result<std::vector<pid_t>> pids = nvml_->ComputeProcesses(info_.uuid);
  // Not knowing is no proof: the bytes stay where they are until the driver answers again.
  if (!pids.ok()) return true;
  return std::find(pids->begin(), pids->end(), pid) != pids->end();
}

}  // namespace sluice::gpu
