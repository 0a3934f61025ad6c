// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <vector>

#include "common/status.h"
#include "scheduler/trace/builder.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler::trace {

/// What the header of a trace says that was recorded from a live job, in the keys `op_ns`,
/// `trough_bytes` and `recorded_batch` (data/traces/README.md).
struct Measured {
  /// GPU time of each operator, alone, in nanoseconds: from 1. Empty: this trace was not measured,
  /// and says nothing of the rest.
  std::vector<uint32_t> op_ns;
  /// What lived at the trough. A block that lives across it is two transient ones of the trace, so
  /// persistent blocks and inputs may be less. 0: they are not.
  uint64_t trough_bytes = 0;
  uint64_t batch = 1;  // the one of the recorded run: nothing is known of others
};

/// Whether there are measured times, right or wrong.
bool IsMeasured(const Trace& trace);

/// `trace` must be valid (trace.h). kInvalidArgument names the key: "op_ns: ...". A trace without
/// `op_ns` has no faults here: the keys may mean something else there.
Result<Measured> MeasuredOf(const Trace& trace);

/// The header lines that MeasuredOf reads. kInvalidArgument: a line would be too long to be read
/// again; some may have been added then.
Status AddMeasured(const Measured& measured, TraceBuilder* builder);

}  // namespace sluice::scheduler::trace
