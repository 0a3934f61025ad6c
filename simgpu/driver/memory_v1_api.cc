// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <climits>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

// The interface of CUDA 2 and 3.1: sizes and device addresses are `unsigned`. No address of this
// GPU fits into one, so there is nothing to give out and nothing to free; sizes stop at what fits.
// Arrays have handles, and are what they are today.

namespace {

unsigned Fitting(size_t bytes) { return static_cast<unsigned>(std::min<size_t>(bytes, UINT_MAX)); }

CUresult NoAddress(bool valid) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  return valid ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuDeviceTotalMem(unsigned* bytes, CUdevice dev) {
  size_t all = 0;
  const CUresult result = cuDeviceTotalMem_v2(bytes == nullptr ? nullptr : &all, dev);
  if (result == CUDA_SUCCESS) *bytes = Fitting(all);
  return result;
}

CUresult cuMemGetInfo(unsigned* free_bytes, unsigned* total_bytes) {
  size_t free_now = 0;
  size_t total = 0;
  const CUresult result = cuMemGetInfo_v2(free_bytes == nullptr ? nullptr : &free_now,
                                          total_bytes == nullptr ? nullptr : &total);
  if (result != CUDA_SUCCESS) return result;
  *free_bytes = Fitting(free_now);
  *total_bytes = Fitting(total);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(unsigned* dptr, unsigned bytes) {
  return NoAddress(dptr != nullptr && bytes != 0);
}

CUresult cuMemAllocPitch(unsigned* dptr, unsigned* pitch, unsigned width_bytes, unsigned height,
                         unsigned element_bytes) {
  return NoAddress(dptr != nullptr && pitch != nullptr && width_bytes != 0 && height != 0 &&
                   (element_bytes == 4 || element_bytes == 8 || element_bytes == 16));
}

CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* descriptor) {
  if (descriptor == nullptr) return cuArrayCreate_v2(array, nullptr);
  const CUDA_ARRAY_DESCRIPTOR_v2 wide{descriptor->Width, descriptor->Height, descriptor->Format,
                                      descriptor->NumChannels};
  return cuArrayCreate_v2(array, &wide);
}

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* descriptor) {
  if (descriptor == nullptr) return cuArray3DCreate_v2(array, nullptr);
  const CUDA_ARRAY3D_DESCRIPTOR_v2 wide{descriptor->Width,       descriptor->Height,
                                        descriptor->Depth,       descriptor->Format,
                                        descriptor->NumChannels, descriptor->Flags};
  return cuArray3DCreate_v2(array, &wide);
}

CUresult cuMemFree(unsigned dptr) { return cuMemFree_v2(dptr); }

CUresult cuMemGetAddressRange(unsigned*, unsigned*, unsigned dptr) {
  return cuMemGetAddressRange_v2(nullptr, nullptr, dptr);
}

CUresult cuMemAllocHost(void** ptr, unsigned bytes) { return cuMemAllocHost_v2(ptr, bytes); }

CUresult cuMemHostRegister(void* ptr, size_t bytes, unsigned flags) {
  return cuMemHostRegister_v2(ptr, bytes, flags);
}

CUresult cuMemHostGetDevicePointer(unsigned* dptr, void* ptr, unsigned flags) {
  CUdeviceptr address = 0;
  const CUresult result =
      cuMemHostGetDevicePointer_v2(dptr == nullptr ? nullptr : &address, ptr, flags);
  if (result != CUDA_SUCCESS) return result;
  if (address > UINT_MAX) return CUDA_ERROR_OUT_OF_MEMORY;
  *dptr = static_cast<unsigned>(address);
  return CUDA_SUCCESS;
}
