// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "simgpu/driver/driver.h"

namespace sluice::simgpu {

/// The context in which a copy to `handle` runs: by the programming guide it succeeds in a stream
/// of any context; without a stream of its own, the current one.
CUresult ContextOfCopy(CUstream handle, Context** out);

/// Whether the two addresses are memory of different GPUs.
bool BetweenGpus(Context* context, uint64_t target, uint64_t source);

/// A copy between GPUs in the null stream starts after all work that either of them was given
/// before: waits for that.
CUresult FinishGpusOf(Context* context, uint64_t target, uint64_t source);

/// Waits for the work of other contexts that may use what cuMemAlloc gave in this one.
void FinishUsersOf(Context* context);

}  // namespace sluice::simgpu
