// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

// Multicast objects need GPUs behind a switch that copies what one writes to all. This one has none
// (CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED is 0), as most GPUs: by the header these calls then
// answer CUDA_ERROR_NOT_SUPPORTED. Since no object can be made, the others meet no handle of one.

using sluice::simgpu::Driver;
using sluice::simgpu::NotSupported;

namespace {

CUresult Refuse(const char* name, bool valid) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return valid ? NotSupported(name) : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

// A real driver looks at nothing else before it says so.
CUresult cuMulticastCreate(CUmemGenericAllocationHandle*, const CUmulticastObjectProp*) {
  return Refuse("cuMulticastCreate", true);
}

CUresult cuMulticastGetGranularity(size_t*, const CUmulticastObjectProp*,
                                   CUmulticastGranularity_flags) {
  return Refuse("cuMulticastGetGranularity", true);
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle, CUdevice) {
  return Refuse("cuMulticastAddDevice", true);
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle,
                            size_t, size_t bytes, unsigned long long flags) {
  return Refuse("cuMulticastBindMem", bytes != 0 && flags == 0);
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t bytes,
                             unsigned long long flags) {
  return Refuse("cuMulticastBindAddr", bytes != 0 && flags == 0);
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle, CUdevice, size_t, size_t bytes) {
  return Refuse("cuMulticastUnbind", bytes != 0);
}
