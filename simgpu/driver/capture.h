// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "simgpu/driver/objects.h"

namespace sluice::simgpu {

/// Captures one operation of a stream that ResolveToCapture found capturing. No lock is held.
CUresult CaptureNode(CUstream stream, NodeWork work);
/// The same for one word of cuStreamWriteValue and the like.
CUresult CaptureMemOps(CUstream stream, std::vector<CUstreamBatchMemOpParams> ops);

}  // namespace sluice::simgpu
