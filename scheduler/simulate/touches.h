// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/status.h"
#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler::simulate {

/// A buffer that a kernel reads or writes, or several whose ids follow each other, in that order.
struct Touch {
  uint32_t buffer = 0;  // the first
  bool writes = false;
  uint32_t buffers = 1;
};

/// Which buffers the kernels of one iteration touch, and after which of them a buffer is gone.
struct Touches {
  std::vector<uint64_t> buffer_bytes;  // by the trace's ids; those of no bytes are never touched
  std::vector<Touch> touches;
  std::vector<size_t> touch_ends;  // of each kernel, in `touches`
  std::vector<uint32_t> freed;
  std::vector<size_t> freed_ends;  // of each kernel, in `freed`: behind it, before the next one

  std::span<const Touch> Of(size_t kernel) const;
  std::span<const uint32_t> FreedAfter(size_t kernel) const;
};

/// `at` is `trace` at a batch. Each buffer once per kernel, in the order of the trace: what it
/// reads, then what it only writes.
Touches TouchesOf(const trace::Trace& trace, const trace::BatchTrace& at);

/// The same for a framework that keeps what it frees for blocks to come, as all do that have an
/// allocator of their own: the buffers are `block_bytes` of its memory each, a kernel touches those
/// that its blocks lie in, and none is ever gone. Transient blocks lie where calls that follow each
/// other find the smallest hole (place/offline/fit.h), others behind them. kInvalidArgument: as
/// InstanceOf (place/offline/from_trace.h).
Result<Touches> KeptTouchesOf(const trace::Trace& trace, const trace::BatchTrace& at,
                              uint64_t block_bytes);

}  // namespace sluice::scheduler::simulate
