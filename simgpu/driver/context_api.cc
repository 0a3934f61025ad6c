// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"
#include "simgpu/driver/graph_state.h"

using sluice::simgpu::CheckDevice;
using sluice::simgpu::Context;
using sluice::simgpu::ContextStack;
using sluice::simgpu::CurrentContext;
using sluice::simgpu::Device;
using sluice::simgpu::Driver;
using sluice::simgpu::InHostFunction;
using sluice::simgpu::NamedContext;
using sluice::simgpu::NotSupported;
using sluice::simgpu::StackedContext;
using sluice::simgpu::UnsafeInCapture;

namespace {

CUcontext Handle(Context* context) { return reinterpret_cast<CUcontext>(context); }

CUcontext Handle(const StackedContext& current) {
  return current.green != nullptr ? reinterpret_cast<CUcontext>(current.green)
                                  : Handle(current.context);
}

/// By cuCtxCreate: the others count their references in another way.
bool Created(const StackedContext& current) {
  const std::lock_guard lock(Driver::Get()->mutex);
  return current.green == nullptr && current.context->device()->primary != current.context;
}

CUresult Synchronize(Context* context) {
  CUresult result = context->driver()->graphs->captures.RefuseIn(context);
  if (result == CUDA_SUCCESS) result = UnsafeInCapture();
  if (result != CUDA_SUCCESS) return result;
  std::vector<uint64_t> marks;
  {
    const std::lock_guard lock(context->mutex);
    marks = context->AllMarks();
  }
  result = context->WaitFor(marks);
  const std::lock_guard lock(context->mutex);
  if (result == CUDA_SUCCESS) context->TrimPools();
  return result;
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* ctx, CUdevice dev) {
  Device* device = nullptr;
  CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  result = Driver::Get()->RetainPrimary(device, &context);
  if (result == CUDA_SUCCESS) *ctx = Handle(context);
  return result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  return result == CUDA_SUCCESS ? Driver::Get()->ReleasePrimary(device, false) : result;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  return result == CUDA_SUCCESS ? Driver::Get()->ReleasePrimary(device, true) : result;
}

// How the CPU waits for the GPU is not modelled, so every flag is as good as another.
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned) {
  Device* device = nullptr;
  return CheckDevice(dev, &device);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned* flags, int* active) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(Driver::Get()->mutex);
  if (flags != nullptr) *flags = CU_CTX_SCHED_AUTO;
  if (active != nullptr) *active = device->primary != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* ctx, unsigned, CUdevice dev) {
  Device* device = nullptr;
  CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  result = Driver::Get()->NewContext(device, &context);
  if (result != CUDA_SUCCESS) return result;
  ContextStack().push_back({context, nullptr});
  *ctx = Handle(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v3(CUcontext* ctx, CUexecAffinityParam* affinity, int count, unsigned flags,
                        CUdevice dev) {
  if (affinity != nullptr || count != 0) return NotSupported("cuCtxCreate with an affinity");
  return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext* ctx, CUctxCreateParams* params, unsigned flags, CUdevice dev) {
  if (params == nullptr) return cuCtxCreate_v2(ctx, flags, dev);
  if (params->cigParams != nullptr) return CUDA_ERROR_INVALID_VALUE;  // nothing to share with
  return cuCtxCreate_v3(ctx, params->execAffinityParams, params->numExecAffinityParams, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  CUgreenCtx green = nullptr;
  Context* context = driver->FindContext(ctx, &green);
  if (context == nullptr || green != nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->destroyed()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  context->Destroy();
  std::vector<StackedContext>& stack = ContextStack();
  if (!stack.empty() && stack.back().context == context) stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxAttach(CUcontext* ctx, unsigned flags) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (ctx == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (ContextStack().back().green != nullptr) return NotSupported("cuCtxAttach to a green context");
  ++context->uses;
  *ctx = Handle(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (ctx != Handle(ContextStack().back())) return CUDA_ERROR_INVALID_CONTEXT;
  const bool created = Created(ContextStack().back());
  // Nobody attached to it; what else holds a primary one is counted elsewhere.
  if (!created && context->uses <= 1) return NotSupported("cuCtxDetach of a primary context");
  return --context->uses > 0 ? CUDA_SUCCESS : cuCtxDestroy_v2(ctx);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (InHostFunction()) return CUDA_ERROR_NOT_PERMITTED;
  StackedContext made;
  made.context = driver->FindContext(ctx, &made.green);
  if (made.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ContextStack().push_back(made);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* ctx) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  std::vector<StackedContext>& stack = ContextStack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (ctx != nullptr) *ctx = Handle(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (InHostFunction()) return CUDA_ERROR_NOT_PERMITTED;
  std::vector<StackedContext>& stack = ContextStack();
  if (ctx == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return CUDA_SUCCESS;
  }
  StackedContext made;
  made.context = driver->FindContext(ctx, &made.green);
  if (made.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.empty()) {
    stack.push_back(made);
  } else {
    stack.back() = made;
  }
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* ctx) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<StackedContext>& stack = ContextStack();
  *ctx = stack.empty() ? nullptr : Handle(stack.back());
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* dev) { return cuCtxGetDevice_v2(dev, nullptr); }

CUresult cuCtxGetDevice_v2(CUdevice* dev, CUcontext ctx) {
  Context* context = nullptr;
  const CUresult result = NamedContext(ctx, &context);
  if (result != CUDA_SUCCESS) return result;
  if (dev == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *dev = context->device()->ordinal();
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) { return cuCtxSynchronize_v2(nullptr); }

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  Context* context = nullptr;
  const CUresult result = NamedContext(ctx, &context);
  return result == CUDA_SUCCESS ? Synchronize(context) : result;
}
