// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/cuda/abi.h"
#include "simgpu/streams/channel.h"

namespace sluice::simgpu {

/// The operation behind one entry of cuStreamBatchMemOp: kWriteValue, kWaitValue, or kNothing for
/// barriers, which operations in order do not need. Refuses addresses the GPU cannot reach.
CUresult MemOpCommand(const CUstreamBatchMemOpParams& op, Command* out);

}  // namespace sluice::simgpu
