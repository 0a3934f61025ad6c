// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string_view>

#include "common/status.h"
#include "scheduler/profile/iteration_recorder.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler {

/// Header key of a recorded trace: how long an iteration takes by the clock, in nanoseconds.
inline constexpr std::string_view kIterationNsKey = "iteration_ns";

/// The latest iteration of `recorder` as a measured trace (trace/measured.h): one operator for each
/// launch, with its time. `name` goes into the header.
///
/// A record of a free says how many bytes, not which block: it is taken to be of the latest
/// allocation of that size, which gives the same load at each moment. Where the iteration has none
/// left, the block is an earlier iteration's: it is allocated before everything else. What is not
/// freed in the iteration is freed behind everything else. What is neither is one persistent block.
///
/// kFailedPrecondition: there is no iteration, or what is recorded fits no trace; says why.
Result<trace::Trace> TraceOf(const IterationRecorder& recorder, std::string_view name);

}  // namespace sluice::scheduler
