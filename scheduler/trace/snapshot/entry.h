// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

#include "common/status.h"
#include "scheduler/trace/snapshot/values.h"

namespace sluice::scheduler::trace {

/// kOther: known, and nothing to do with blocks (segments, snapshots, out of memory).
enum class SnapshotAction : uint8_t { kAlloc, kFreeRequested, kFreeCompleted, kOther, kUnknown };

/// One entry of device_traces.
struct SnapshotEntry {
  SnapshotAction action = SnapshotAction::kUnknown;
  uint64_t address = 0;  // of the three actions on blocks
  uint64_t bytes = 0;    // of the three actions on blocks; at most kMaxNumber
  uint64_t time_us = 0;  // when asked for
};

/// `with_time`: the entry must have a time (older PyTorch wrote none). A fault names the field:
/// "size: ...".
Result<SnapshotEntry> ReadSnapshotEntry(const Values& values, ValueId entry, bool with_time);

}  // namespace sluice::scheduler::trace
