// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

// Green contexts. Memory, modules and work are those of the primary context; how many SMs one has
// is remembered and changes nothing.

namespace {

CUresult Describe(unsigned sm_count, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = {};
  resource->type = type;
  resource->sm.smCount = sm_count;
  return CUDA_SUCCESS;
}

/// Null: there is none by this handle any more.
CUgreenCtx Find(CUgreenCtx handle) {
  CUgreenCtx green = nullptr;
  static_cast<void>(Driver::Get()->FindContext(reinterpret_cast<CUcontext>(handle), &green));
  return green;
}

}  // namespace

CUresult cuDeviceGetDevResource(CUdevice dev, CUdevResource* resource, CUdevResourceType type) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  return Describe(static_cast<unsigned>(device->gpu()->machine().sm_count), resource, type);
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* desc, CUdevResource* resources,
                                   unsigned count) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (desc == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  unsigned sm_count = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    sm_count += resources[i].sm.smCount;
  }
  CUdevResourceDesc made = driver->resource_descs.New();
  made->sm_count = sm_count;
  *desc = made;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc desc, CUdevice dev, unsigned flags) {
  Device* device = nullptr;
  CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (green == nullptr || !IsLive(desc) || flags != CU_GREEN_CTX_DEFAULT_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto made = std::make_unique<CUgreenCtx_st>();
  made->device = device;
  made->sm_count = desc->sm_count;
  Driver* driver = Driver::Get();
  result = driver->RetainPrimary(device, &made->context);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(driver->mutex);
  *green = made.get();
  driver->green_contexts.push_back(std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  green = Find(green);
  if (green == nullptr || green->destroyed.exchange(true)) return CUDA_ERROR_INVALID_CONTEXT;
  // Its streams stay, with what is queued on them, until the program destroys them.
  return driver->ReleasePrimary(green->device, false);
}

CUresult cuCtxFromGreenCtx(CUcontext* ctx, CUgreenCtx green) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  green = Find(green);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *ctx = reinterpret_cast<CUcontext>(green);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource* resource,
                                  CUdevResourceType type) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  green = Find(green);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return Describe(green->sm_count, resource, type);
}

// By the header it has to be a stream that does not wait for the default one.
CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx green, unsigned flags, int priority) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  green = Find(green);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stream == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(green->context->mutex);
  const CUresult result = green->context->NewStream(stream, false, priority);
  if (result == CUDA_SUCCESS) (*stream)->green = green;
  return result;
}
