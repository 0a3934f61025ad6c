// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gpu/driver.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <type_traits>

namespace sluice::gpu {

Result<Driver> Driver::Load() {
  // The simulated GPU polices who touches which memory; the daemon's own context poisons bytes that
  // nobody holds, and copies those of jobs that hold still. Must be set before the driver looks.
  ::setenv("SLUICE_ORACLE_EXEMPT", "1", 1);
  // Never closed: a driver's threads outlive the last call.
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return Status(StatusCode::kNotFound,
                  std::string("no CUDA driver: ") + (why == nullptr ? "libcuda.so.1" : why));
  }
  Driver driver;
  const char* missing = nullptr;
  const auto find = [&](auto& entry, const char* name) {
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(::dlsym(library, name));
    if (entry == nullptr && missing == nullptr) missing = name;
  };
#define SLUICE_FIND(name) find(driver.name, #name)
  SLUICE_FIND(cuInit);
  SLUICE_FIND(cuGetErrorName);
  SLUICE_FIND(cuDeviceGet);
  SLUICE_FIND(cuDeviceGetCount);
  SLUICE_FIND(cuDeviceGetName);
  SLUICE_FIND(cuDeviceGetUuid_v2);
  SLUICE_FIND(cuDeviceTotalMem_v2);
  SLUICE_FIND(cuDevicePrimaryCtxRetain);
  SLUICE_FIND(cuCtxSetCurrent);
  SLUICE_FIND(cuCtxSynchronize);
  SLUICE_FIND(cuMemsetD32_v2);
  SLUICE_FIND(cuMemAddressReserve);
  SLUICE_FIND(cuMemCreate);
  SLUICE_FIND(cuMemRelease);
  SLUICE_FIND(cuMemMap);
  SLUICE_FIND(cuMemSetAccess);
  SLUICE_FIND(cuMemGetAllocationGranularity);
  SLUICE_FIND(cuMemExportToShareableHandle);
  SLUICE_FIND(cuMemImportFromShareableHandle);
  SLUICE_FIND(cuMemUnmap);
  SLUICE_FIND(cuMemAddressFree);
  SLUICE_FIND(cuMemHostAlloc);
  SLUICE_FIND(cuMemFreeHost);
  SLUICE_FIND(cuMemcpyDtoHAsync_v2);
  SLUICE_FIND(cuMemcpyHtoDAsync_v2);
  SLUICE_FIND(cuStreamCreate);
  SLUICE_FIND(cuStreamSynchronize);
  SLUICE_FIND(cuEventCreate);
  SLUICE_FIND(cuEventDestroy_v2);
  SLUICE_FIND(cuEventRecord);
  SLUICE_FIND(cuEventQuery);
  SLUICE_FIND(cuEventSynchronize);
#undef SLUICE_FIND
  if (missing != nullptr) {
    return Status(StatusCode::kFailedPrecondition,
                  std::string("the CUDA driver is too old: it has no ") + missing);
  }
  return driver;
}

Status Driver::Check(CUresult result, const std::string& what) const {
  if (result == CUDA_SUCCESS) return {};
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  return Status(
      result == CUDA_ERROR_OUT_OF_MEMORY ? StatusCode::kResourceExhausted : StatusCode::kInternal,
      what + ": " + name);
}

}  // namespace sluice::gpu
