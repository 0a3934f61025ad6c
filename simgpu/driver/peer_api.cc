// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdio>
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/allocation.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

CUresult CheckPair(CUdevice dev, CUdevice peer) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  return result == CUDA_SUCCESS ? CheckDevice(peer, &device) : result;
}

/// The current context and a living one.
CUresult CheckPeer(CUcontext peer, Context** current, Context** other) {
  const CUresult result = CurrentContext(current);
  if (result != CUDA_SUCCESS) return result;
  return peer == nullptr ? CUDA_ERROR_INVALID_CONTEXT : NamedContext(peer, other);
}

/// The contexts of a copy: both must live. Null is the current one.
CUresult CheckCopy(CUcontext dst, CUcontext src) {
  for (const CUcontext side : {dst, src}) {
    Context* context = nullptr;
    const CUresult result = NamedContext(side, &context);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

/// By the header such a copy runs behind all work of both contexts and of the current one, and all
/// that they are given later behind it.
template <typename F>
CUresult InOrderWith(CUcontext dst, CUcontext src, F copy) {
  Context* current = nullptr;
  CUresult result = CurrentContext(&current);
  if (result == CUDA_SUCCESS) result = CheckCopy(dst, src);
  if (result != CUDA_SUCCESS) return result;
  const auto same = [current](CUcontext side) {
    return reinterpret_cast<CUcontext>(current) == side;
  };
  for (CUcontext* side : {&dst, &src}) {
    if (*side == nullptr) *side = reinterpret_cast<CUcontext>(current);
  }
  // Within one context the order of its null stream is enough.
  if (same(dst) && same(src)) return copy();
  const auto finish = [&] {
    for (const CUcontext side : {dst, src, reinterpret_cast<CUcontext>(current)}) {
      const CUresult finished = FinishAll(Driver::Get()->FindContext(side));
      if (finished != CUDA_SUCCESS) return finished;
    }
    return CUDA_SUCCESS;
  };
  result = finish();
  if (result == CUDA_SUCCESS) result = copy();
  return result == CUDA_SUCCESS ? finish() : result;
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
  *can = dev != peer ? 1 : 0;
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
  if (src == dst) return CUDA_ERROR_INVALID_DEVICE;  // by the header
  // All links are alike. Of atomics and arrays nothing is promised.
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int len, CUdevice dev) {
  Device* device = nullptr;
  const CUresult result = CheckDevice(dev, &device);
  if (result != CUDA_SUCCESS) return result;
  if (id == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(id, static_cast<size_t>(len), "0000:%02x:00.0", PciBus(device->index));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* id) {
  const Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (dev == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // The header allows the domain and the function to be left out.
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  if (sscanf(id, "%x:%x:%x", &domain, &bus, &device) != 3) {
    domain = 0;
    if (sscanf(id, "%x:%x", &bus, &device) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const auto& known : driver->devices) {
    if (domain != 0 || bus != PciBus(known->index) || device != 0) continue;
    *dev = known->ordinal();
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  Context* current = nullptr;
  Context* other = nullptr;
  const CUresult result = CheckPeer(peer, &current, &other);
  if (result != CUDA_SUCCESS) return result;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (current->device() == other->device()) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  // Neither of them goes away meanwhile.
  const std::lock_guard lock(current->driver()->mutex);
  if (other->destroyed()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return current->driver()->views.EnablePeer(current->link(), other->link());
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  Context* current = nullptr;
  Context* other = nullptr;
  CUresult result = CheckPeer(peer, &current, &other);
  if (result != CUDA_SUCCESS) return result;
  // What uses it already shall not fault.
  result = FinishAll(current);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(current->driver()->mutex);
  if (other->destroyed()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return current->driver()->views.DisablePeer(current->link(), other->link());
}

#define SLUICE_PEER_COPY(name, copy)                                                    \
  CUresult name(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, \
                size_t bytes) {                                                         \
    return InOrderWith(dst_ctx, src_ctx, [=] { return copy(dst, src, bytes); });        \
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
  const CUDA_MEMCPY3D_v2 box = WithinOne(*copy);
  return InOrderWith(copy->dstContext, copy->srcContext, [&] { return cuMemcpy3D_v2(&box); });
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D_v2 box = WithinOne(*copy);
  return InOrderWith(copy->dstContext, copy->srcContext, [&] { return cuMemcpy3D_v2_ptds(&box); });
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
