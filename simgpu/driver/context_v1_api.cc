// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"

// Names without a suffix whose parameters have no addresses or sizes: a driver on 64 bits keeps
// them for programs of their time. What a newer header changed about their meaning (when a context
// is destroyed that another thread uses, when a stream with pending work is) holds for both here.

CUresult cuCtxCreate(CUcontext* ctx, unsigned flags, CUdevice dev) {
  return cuCtxCreate_v2(ctx, flags, dev);
}

// What graphics and video add is that their objects can be registered. There are none here to
// register, and otherwise such a context is one like others.

CUresult cuGLCtxCreate(CUcontext* ctx, unsigned flags, CUdevice dev) {
  return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuGLCtxCreate_v2(CUcontext* ctx, unsigned flags, CUdevice dev) {
  return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuVDPAUCtxCreate(CUcontext* ctx, unsigned flags, CUdevice dev, unsigned, void*) {
  return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuVDPAUCtxCreate_v2(CUcontext* ctx, unsigned flags, CUdevice dev, unsigned, void*) {
  return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuCtxDestroy(CUcontext ctx) { return cuCtxDestroy_v2(ctx); }

CUresult cuCtxPushCurrent(CUcontext ctx) { return cuCtxPushCurrent_v2(ctx); }

CUresult cuCtxPopCurrent(CUcontext* ctx) { return cuCtxPopCurrent_v2(ctx); }

CUresult cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }

CUresult cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }

CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }

// What the newer form dropped: the flags of a context that is there are not changed.
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned flags) {
  int active = 0;
  const CUresult result = cuDevicePrimaryCtxGetState(dev, nullptr, &active);
  if (result != CUDA_SUCCESS) return result;
  return active != 0 ? CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE
                     : cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}
