// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/graph_params.h"

#include <cstring>

#include "simgpu/driver/box_copy.h"
#include "simgpu/driver/driver.h"
#include "simgpu/driver/mem_ops.h"
#include "simgpu/driver/modules.h"

namespace sluice::simgpu {

CUDA_KERNEL_NODE_PARAMS_v2 Widened(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
  CUDA_KERNEL_NODE_PARAMS_v2 wide{};
  memcpy(&wide, &params, sizeof params);
  return wide;
}

CUDA_MEMSET_NODE_PARAMS_v1 Narrowed(const CUDA_MEMSET_NODE_PARAMS_v2& params) {
  return {params.dst, params.pitch, params.value, params.elementSize, params.width, params.height};
}

CUresult KernelFrom(const Launch& launch, KernelWork* out) {
  if (!IsLive(launch.function)) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CheckShape(launch);
  if (result != CUDA_SUCCESS) return result;
  const uint32_t bytes = launch.function->arg_bytes;
  if (bytes > kMostArgBytes) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  KernelWork work;
  work.context = launch.function->context;
  work.function = launch.function;
  memcpy(work.grid, launch.grid, sizeof work.grid);
  memcpy(work.block, launch.block, sizeof work.block);
  work.shared_bytes = launch.shared_bytes;
  work.args.resize(bytes);
  result = PackArguments(launch, work.args.data());
  if (result != CUDA_SUCCESS) return result;
  for (const uint32_t offset : launch.function->offsets) {
    work.params.push_back(work.args.data() + offset);
  }
  *out = std::move(work);
  return CUDA_SUCCESS;
}

CUresult KernelFrom(const CUDA_KERNEL_NODE_PARAMS_v2& params, KernelWork* out) {
  // A kernel of a library may also stand in the place of a function.
  CUfunction function =
      params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  if (!IsLive(function)) {
    Context* context = nullptr;
    CUresult result = NamedContext(params.func == nullptr ? params.ctx : nullptr, &context);
    if (result == CUDA_SUCCESS) result = ResolveFunction(&function, context);
    if (result != CUDA_SUCCESS) return result;
  }
  return KernelFrom(Launch{function,
                           {params.gridDimX, params.gridDimY, params.gridDimZ},
                           {params.blockDimX, params.blockDimY, params.blockDimZ},
                           params.sharedMemBytes,
                           params.kernelParams,
                           params.extra},
                    out);
}

CUDA_KERNEL_NODE_PARAMS_v2 KernelParams(KernelWork& work) {
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  params.func = work.function;
  params.gridDimX = work.grid[0];
  params.gridDimY = work.grid[1];
  params.gridDimZ = work.grid[2];
  params.blockDimX = work.block[0];
  params.blockDimY = work.block[1];
  params.blockDimZ = work.block[2];
  params.sharedMemBytes = work.shared_bytes;
  params.kernelParams = work.params.data();
  params.ctx = reinterpret_cast<CUcontext>(work.context);
  return params;
}

CUresult CopyFrom(const CUDA_MEMCPY3D_v2& params, CUcontext ctx, CopyWork* out) {
  Context* context = nullptr;
  CUresult result = NamedContext(ctx, &context);
  if (result != CUDA_SUCCESS) return result;
  if (params.reserved0 != nullptr || params.reserved1 != nullptr) return CUDA_ERROR_INVALID_VALUE;
  Box box;
  result = ResolveBox(context, params, &box);
  if (result != CUDA_SUCCESS) return result;
  if (box.width == 0) return CUDA_ERROR_INVALID_VALUE;
  *out = {context, params};
  return CUDA_SUCCESS;
}

CUresult MemsetFrom(const CUDA_MEMSET_NODE_PARAMS_v1& params, CUcontext ctx, MemsetWork* out) {
  Context* context = nullptr;
  const CUresult result = NamedContext(ctx, &context);
  if (result != CUDA_SUCCESS) return result;
  const unsigned size = params.elementSize;
  if ((size != 1 && size != 2 && size != 4) || params.width == 0 || params.height == 0 ||
      params.width > SIZE_MAX / size || params.dst % size != 0 ||
      (params.height > 1 && (params.pitch < params.width * size || params.pitch % size != 0))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!IsDeviceAddress(params.dst) && !Driver::Get()->Pinned(params.dst, 1)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = {context, params};
  return CUDA_SUCCESS;
}

CUresult HostFrom(const CUDA_HOST_NODE_PARAMS_v1& params, HostWork* out) {
  if (params.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = {params.fn, params.userData};
  return CUDA_SUCCESS;
}

CUresult MemOpsFrom(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& params, MemOpsWork* out) {
  Context* context = nullptr;
  const CUresult result = NamedContext(params.ctx, &context);
  if (result != CUDA_SUCCESS) return result;
  constexpr unsigned kMostOps = 256;
  if (params.count == 0 || params.count > kMostOps || params.paramArray == nullptr ||
      params.flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  MemOpsWork work;
  work.context = context;
  work.ops.assign(params.paramArray, params.paramArray + params.count);
  for (const CUstreamBatchMemOpParams& op : work.ops) {
    Command command{};
    const CUresult checked = MemOpCommand(op, &command);
    if (checked != CUDA_SUCCESS) return checked;
  }
  *out = std::move(work);
  return CUDA_SUCCESS;
}

}  // namespace sluice::simgpu
