// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

#include "common/status.h"
#include "scheduler/place/offline/instance.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler {

/// The transient blocks of one iteration as buffers, called by their ids. Time counts the events of
/// the trace; the buffer of a block lives from its allocation to its free. Blocks of no bytes need
/// no place and are left out; so are parameters and the batch, which have one for good. Sizes are
/// rounded up to multiples of `granule_bytes` (at least 1), as allocators do.
///
/// `trace` must be valid. kInvalidArgument as trace::AtBatch, and for sizes that CheckBuffers
/// refuses.
Result<Instance> InstanceOf(const trace::Trace& trace, uint64_t batch, uint64_t granule_bytes);

}  // namespace sluice::scheduler
