// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <vector>

#include "simgpu/driver/objects.h"

namespace sluice::simgpu {

struct GraphState;

/// The work of an allocation node of `graph` behind `dependencies`; `params->dptr` becomes its
/// address. The lock of the graphs is held.
CUresult PlanAllocation(GraphState* state, CUgraph graph, const Links& dependencies,
                        CUDA_MEM_ALLOC_NODE_PARAMS_v1* params, AllocWork* out);
/// The same for a node that frees. Once it is added: GraphAllocations::NoteFree.
CUresult PlanFree(GraphState* state, CUgraph graph, CUdeviceptr address, FreeWork* out);

/// cuMemAllocAsync and cuMemFreeAsync in a capturing stream. No lock is held.
CUresult CaptureAlloc(CUstream stream, size_t bytes, CUdeviceptr* out);
CUresult CaptureFree(CUstream stream, CUdeviceptr address);

/// Frees what a launch allocated, behind `marks`. No lock is held.
CUresult FreeGraphMemory(Context* context, CUdeviceptr address, const std::vector<uint64_t>& marks);

}  // namespace sluice::simgpu
