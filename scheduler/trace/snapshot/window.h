// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/status.h"
#include "scheduler/trace/snapshot/entry.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler::trace {

/// Follows which addresses hold a block, entry by entry, and keeps what lived in a window of them.
class SnapshotWindow {
 public:
  /// From the next entry on, allocations and frees are events. Once.
  void Open() { open_ = true; }
  bool open() const { return open_; }
  /// A fault names the field: "addr: ...".
  Status Take(const SnapshotEntry& entry);
  /// Ends the window: its blocks and events under these header lines.
  Result<Trace> Finish(const std::vector<HeaderEntry>& header) const;

 private:
  /// kBefore: allocated and freed before the window opened. kThrough: lives at one of its ends.
  enum class Fate : uint8_t { kBefore, kThrough, kInside };
  struct Seen {
    uint64_t bytes = 0;
    bool in_window = false;  // allocated there
    Fate fate = Fate::kThrough;
  };
  struct Step {
    bool alloc = false;
    size_t seen = 0;
  };

  Status Alloc(const SnapshotEntry& entry);
  Status Free(const SnapshotEntry& entry);

  bool open_ = false;
  std::vector<Seen> seen_;  // blocks, in the order in which the record shows them
  std::vector<Step> steps_;
  /// The block at each address that the record named; nullopt: free.
  std::map<uint64_t, std::optional<size_t>> at_;
};

}  // namespace sluice::scheduler::trace
