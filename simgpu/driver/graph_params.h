// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "simgpu/driver/launch.h"
#include "simgpu/graph/node.h"

namespace sluice::simgpu {

/// What a program passes as parameters of a node, checked and copied.
CUresult KernelFrom(const Launch& launch, KernelWork* out);
CUresult KernelFrom(const CUDA_KERNEL_NODE_PARAMS_v2& params, KernelWork* out);
CUresult CopyFrom(const CUDA_MEMCPY3D_v2& params, CUcontext ctx, CopyWork* out);
CUresult MemsetFrom(const CUDA_MEMSET_NODE_PARAMS_v1& params, CUcontext ctx, MemsetWork* out);
CUresult HostFrom(const CUDA_HOST_NODE_PARAMS_v1& params, HostWork* out);
CUresult MemOpsFrom(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& params, MemOpsWork* out);

/// The older form, which names neither a kernel nor a context.
CUDA_KERNEL_NODE_PARAMS_v2 Widened(const CUDA_KERNEL_NODE_PARAMS_v1& params);

CUDA_MEMSET_NODE_PARAMS_v1 Narrowed(const CUDA_MEMSET_NODE_PARAMS_v2& params);

/// And back: pointers lead into the node.
CUDA_KERNEL_NODE_PARAMS_v2 KernelParams(KernelWork& work);

}  // namespace sluice::simgpu
