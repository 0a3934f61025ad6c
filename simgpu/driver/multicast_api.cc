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

bool Valid(const CUmulticastObjectProp* prop) {
  return prop != nullptr && prop->numDevices != 0 && prop->size != 0 && prop->flags == 0;
}

}  // namespace

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle,
                           const CUmulticastObjectProp* prop) {
  return Refuse("cuMulticastCreate", handle != nullptr && Valid(prop));
}

CUresult cuMulticastGetGranularity(size_t* granularity, const CUmulticastObjectProp* prop,
                                   CUmulticastGranularity_flags option) {
  return Refuse("cuMulticastGetGranularity", granularity != nullptr && Valid(prop) &&
                                                 (option == CU_MULTICAST_GRANULARITY_MINIMUM ||
                                                  option == CU_MULTICAST_GRANULARITY_RECOMMENDED));
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
