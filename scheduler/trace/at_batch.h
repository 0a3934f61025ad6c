// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <vector>

#include "common/status.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler::trace {

/// What an operator does at one batch size.
struct OperatorCost {
  uint64_t flops = 0;
  uint64_t bytes = 0;  // read and written
  uint32_t ns = 0;     // GPU time as measured; 0: it was not
};

/// A trace at one batch size, in plain numbers. Every one of them is at most kMaxNumber.
struct BatchTrace {
  uint64_t batch = 0;                 // samples
  std::vector<uint64_t> block_bytes;  // of each block
  std::vector<OperatorCost> costs;    // of each operator
  uint64_t persistent_bytes = 0;
  uint64_t input_bytes = 0;
  std::vector<uint64_t> load;  // transient bytes that live after each event
  uint64_t peak_bytes = 0;     // the most of `load`; the other two kinds come on top
  size_t peak_event = 0;       // the first event after which the peak lives; 0 without events
  /// What lives at the trough: at least all but the transient blocks (Measured::trough_bytes).
  uint64_t trough_bytes = 0;
};

/// `trace` must be valid (trace.h). kInvalidArgument for a batch of 0 or above kMaxBatch, where a
/// number exceeds kMaxNumber, which is named: "batch 64: block 7: bytes: ...", and of a measured
/// trace (measured.h) for faults of what was measured and for every batch but its own.
Result<BatchTrace> AtBatch(const Trace& trace, uint64_t batch);

}  // namespace sluice::scheduler::trace
