// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "scheduler/trace/trace.h"

/// A recorded trace run as a client process of the driver. The plan and the patterns are pure.
namespace sluice::replay {

using BlockId = scheduler::trace::BlockId;

/// From operations and bytes to time, and from the trace's sizes to those of the replay.
struct Scaling {
  double flops_per_s = 0;  // more than 0
  double bytes_per_s = 0;  // more than 0
  double floor_ns = 0;     // no operator takes less
  double time = 1;         // factor on every duration
  double size = 1;         // factor on every block, not on the bytes that operators move
};

/// A block is a multiple of this, and at least one of it.
inline constexpr uint64_t kWordBytes = 4;
/// No operator lasts longer than an hour: more is a slip of the pen.
inline constexpr uint64_t kLongestNs = 3'600'000'000'000;
/// One row of the launch's grid for each block, and one more.
inline constexpr size_t kMaxUses = 65'534;

/// A block that an operator reads, writes, or both.
struct Use {
  BlockId block = 0;
  bool reads = false;
  bool writes = false;
  bool operator==(const Use&) const = default;
};

/// An operator: one launch.
struct Launch {
  uint32_t kernel = 0;    // place in Plan::kernels
  uint64_t ns = 0;        // of GPU time, alone
  std::vector<Use> uses;  // each block once: what is read in the trace's order, then what is not
  bool operator==(const Launch&) const = default;
};

/// One iteration, the same each time.
struct Plan {
  std::vector<uint64_t> block_bytes;
  size_t kept_blocks = 0;  // the first ones: persistent and input, allocated once
  /// One for each name of an operator, which it begins with "replay_" and resembles.
  std::vector<std::string> kernels;
  std::vector<Launch> launches;
  std::vector<scheduler::trace::Event> events;  // in program order
  size_t uses = 0;                              // of all launches
  uint64_t kept_bytes = 0;
  uint64_t peak_bytes = 0;  // the most that lives at a time, with what is kept
  uint64_t kernel_ns = 0;   // of all launches, one after the other
};

/// `trace` must be valid. kInvalidArgument, in one line that names what is wrong, for a batch that
/// the trace cannot have, a duration above kLongestNs, a block above trace::kMaxNumber bytes or an
/// operator with more than kMaxUses blocks.
Result<Plan> MakePlan(const scheduler::trace::Trace& trace, uint64_t batch, const Scaling& scaling);

}  // namespace sluice::replay
