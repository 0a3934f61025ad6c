// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <vector>

#include "simgpu/driver/objects.h"

namespace sluice::simgpu {

/// Captures one operation of a stream that ResolveToCapture found capturing. No lock is held.
CUresult CaptureNode(CUstream stream, NodeWork work);
/// The same for one word of cuStreamWriteValue and the like.
CUresult CaptureMemOps(CUstream stream, std::vector<CUstreamBatchMemOpParams> ops);

/// For a copy that was asked of a stream: its result if the stream captures or the copy is not
/// allowed now; otherwise nothing, and it is to be issued. `wait`: the call ends with the copy.
std::optional<CUresult> CaptureCopy(Context* context, const CUDA_MEMCPY3D_v2& copy, CUstream stream,
                                    bool per_thread, bool wait);

}  // namespace sluice::simgpu
