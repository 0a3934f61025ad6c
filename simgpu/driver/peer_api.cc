// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdio>
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

constexpr char kBusId[] = "0000:01:00.0";

/// A pair of devices that are not the same.
CUresult CheckPair(CUdevice dev, CUdevice peer) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (dev != 0 || peer != 0) return CUDA_ERROR_INVALID_DEVICE;
  return CUDA_SUCCESS;
}

/// The current context and another living one.
CUresult CheckPeer(CUcontext peer, Context** current, Context** other) {
  CUresult result = CurrentContext(current);
  if (result != CUDA_SUCCESS) return result;
  if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  result = NamedContext(peer, other);
  if (result == CUDA_SUCCESS && *other == *current) return CUDA_ERROR_INVALID_CONTEXT;
  return result;
}

/// Whether a copy between these contexts is an ordinary one of the current context.
CUresult CheckCopy(CUcontext dst, CUcontext src) {
  Context* current = nullptr;
  CUresult result = CurrentContext(&current);
  if (result != CUDA_SUCCESS) return result;
  for (const CUcontext side : {dst, src}) {
    Context* context = nullptr;
    if (side == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    result = NamedContext(side, &context);
    if (result != CUDA_SUCCESS) return result;
    if (context != current) return NotSupported("a copy between contexts");
  }
  return CUDA_SUCCESS;
}

CUDA_MEMCPY3D_v2 WithinOne(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D_v2 copy{};
  static_assert(sizeof copy == sizeof peer);  // the contexts lie where the reserved words are
  memcpy(&copy, &peer, sizeof copy);
  copy.reserved0 = nullptr;
  copy.reserved1 = nullptr;
  return copy;
}

}  // namespace

CUresult cuDeviceCanAccessPeer(int* can, CUdevice dev, CUdevice peer) {
  const CUresult result = CheckPair(dev, peer);
  if (result != CUDA_SUCCESS) return result;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *can = 0;  // a device is not its own peer
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice src,
                                 CUdevice dst) {
  const CUresult result = CheckPair(src, dst);
  if (result != CUDA_SUCCESS) return result;
  if (value == nullptr || attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
      attribute > CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_ERROR_INVALID_DEVICE;  // by the header, when both are the same
}

CUresult cuDeviceGetPCIBusId(char* id, int len, CUdevice dev) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (id == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(id, static_cast<size_t>(len), "%s", kBusId);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* id) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (dev == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // The header allows the domain and the function to be left out.
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  if (sscanf(id, "%x:%x:%x", &domain, &bus, &device) != 3) {
    domain = 0;
    if (sscanf(id, "%x:%x", &bus, &device) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  if (domain != 0 || bus != 1 || device != 0) return CUDA_ERROR_INVALID_DEVICE;
  *dev = 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  Context* current = nullptr;
  Context* other = nullptr;
  const CUresult result = CheckPeer(peer, &current, &other);
  if (result != CUDA_SUCCESS) return result;
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  Context* current = nullptr;
  Context* other = nullptr;
  const CUresult result = CheckPeer(peer, &current, &other);
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

#define SLUICE_PEER_COPY(name, copy)                                                    \
  CUresult name(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, \
                size_t bytes) {                                                         \
    const CUresult result = CheckCopy(dst_ctx, src_ctx);                                \
    return result != CUDA_SUCCESS ? result : copy(dst, src, bytes);                     \
  }
SLUICE_PEER_COPY(cuMemcpyPeer, cuMemcpyDtoD_v2)
SLUICE_PEER_COPY(cuMemcpyPeer_ptds, cuMemcpyDtoD_v2_ptds)
#undef SLUICE_PEER_COPY

#define SLUICE_PEER_COPY(name, copy)                                                    \
  CUresult name(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, \
                size_t bytes, CUstream stream) {                                        \
    const CUresult result = CheckCopy(dst_ctx, src_ctx);                                \
    return result != CUDA_SUCCESS ? result : copy(dst, src, bytes, stream);             \
  }
SLUICE_PEER_COPY(cuMemcpyPeerAsync, cuMemcpyDtoDAsync_v2)
SLUICE_PEER_COPY(cuMemcpyPeerAsync_ptsz, cuMemcpyDtoDAsync_v2_ptsz)
#undef SLUICE_PEER_COPY

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckCopy(copy->dstContext, copy->srcContext);
  if (result != CUDA_SUCCESS) return result;
  const CUDA_MEMCPY3D_v2 box = WithinOne(*copy);
  return cuMemcpy3D_v2(&box);
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckCopy(copy->dstContext, copy->srcContext);
  if (result != CUDA_SUCCESS) return result;
  const CUDA_MEMCPY3D_v2 box = WithinOne(*copy);
  return cuMemcpy3D_v2_ptds(&box);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckCopy(copy->dstContext, copy->srcContext);
  if (result != CUDA_SUCCESS) return result;
  const CUDA_MEMCPY3D_v2 box = WithinOne(*copy);
  return cuMemcpy3DAsync_v2(&box, stream);
}

CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckCopy(copy->dstContext, copy->srcContext);
  if (result != CUDA_SUCCESS) return result;
  const CUDA_MEMCPY3D_v2 box = WithinOne(*copy);
  return cuMemcpy3DAsync_v2_ptsz(&box, stream);
}
