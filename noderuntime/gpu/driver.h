// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <string>

#include "common/cuda/driver_api.h"
#include "common/status.h"

namespace sluice::gpu {

/// The driver's entry points that the daemon calls, found in libcuda.so.1 at run time: the daemon
/// starts (and says what is missing) on a machine without a driver.
struct Driver {
  PFN_cuInit cuInit = nullptr;
  PFN_cuGetErrorName cuGetErrorName = nullptr;
  PFN_cuDeviceGet cuDeviceGet = nullptr;
  PFN_cuDeviceGetCount cuDeviceGetCount = nullptr;
  PFN_cuDeviceGetName cuDeviceGetName = nullptr;
  PFN_cuDeviceGetUuid_v2 cuDeviceGetUuid_v2 = nullptr;
  PFN_cuDeviceTotalMem_v2 cuDeviceTotalMem_v2 = nullptr;
  PFN_cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRetain = nullptr;
  PFN_cuCtxSetCurrent cuCtxSetCurrent = nullptr;
  PFN_cuCtxSynchronize cuCtxSynchronize = nullptr;
  PFN_cuMemsetD32_v2 cuMemsetD32_v2 = nullptr;
  PFN_cuMemAddressReserve cuMemAddressReserve = nullptr;
  PFN_cuMemCreate cuMemCreate = nullptr;
  PFN_cuMemRelease cuMemRelease = nullptr;
  PFN_cuMemMap cuMemMap = nullptr;
  PFN_cuMemSetAccess cuMemSetAccess = nullptr;
  PFN_cuMemGetAllocationGranularity cuMemGetAllocationGranularity = nullptr;
  PFN_cuMemExportToShareableHandle cuMemExportToShareableHandle = nullptr;
  PFN_cuMemImportFromShareableHandle cuMemImportFromShareableHandle = nullptr;
  PFN_cuMemUnmap cuMemUnmap = nullptr;
  PFN_cuMemAddressFree cuMemAddressFree = nullptr;
  PFN_cuMemHostAlloc cuMemHostAlloc = nullptr;
  PFN_cuMemFreeHost cuMemFreeHost = nullptr;
  PFN_cuMemcpyDtoHAsync_v2 cuMemcpyDtoHAsync_v2 = nullptr;
  PFN_cuMemcpyHtoDAsync_v2 cuMemcpyHtoDAsync_v2 = nullptr;
  PFN_cuStreamCreate cuStreamCreate = nullptr;
  PFN_cuStreamSynchronize cuStreamSynchronize = nullptr;
  PFN_cuEventCreate cuEventCreate = nullptr;
  PFN_cuEventDestroy_v2 cuEventDestroy_v2 = nullptr;
  PFN_cuEventRecord cuEventRecord = nullptr;
  PFN_cuEventQuery cuEventQuery = nullptr;
  PFN_cuEventSynchronize cuEventSynchronize = nullptr;

  static Result<Driver> Load();

  /// Ok, or "what: CUDA_ERROR_...".
  Status Check(CUresult result, const std::string& what) const;
};

}  // namespace sluice::gpu
