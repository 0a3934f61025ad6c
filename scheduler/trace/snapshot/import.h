// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/status.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler::trace {

struct SnapshotOptions {
  uint64_t device = 0;
  /// The window: entries with from_us <= time_us < to_us, on the clock of the snapshot. Without one
  /// of them it reaches to that end of the record. An iteration that frees what it allocates is
  /// the window to choose.
  std::optional<uint64_t> from_us;
  std::optional<uint64_t> to_us;
};

struct SnapshotImport {
  Trace trace;
  uint64_t entries = 0;          // in the window
  uint64_t unknown_actions = 0;  // of them: passed over
};

/// Reads a memory snapshot of PyTorch (the pickle that torch.cuda.memory._dump_snapshot writes) as
/// a Trace of what one device's allocator was asked for in the window. A block is free from the
/// moment its free was requested. What lives before the window or at its end is persistent, as far
/// as the record shows it (a block that was allocated before the record began shows when it is
/// freed); what was allocated and freed in the window is transient. There are no operators, and no
/// number depends on the batch; the header says both.
///
/// kInvalidArgument names the byte of a broken pickle ("byte 12: GLOBAL: ...") or the field that is
/// not what it should be ("device_traces[0][17].size: ..."). Time is n log n in the entries.
Result<SnapshotImport> ImportSnapshot(std::string_view pickle, const SnapshotOptions& options = {});

}  // namespace sluice::scheduler::trace
