// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/window.h"

#include <string>

#include "scheduler/text/fault.h"
#include "scheduler/trace/builder.h"

namespace sluice::scheduler::trace {
namespace {

using text::Fault;

}  // namespace

Status SnapshotWindow::Take(const SnapshotEntry& entry) {
  switch (entry.action) {
    case SnapshotAction::kAlloc:
      return Alloc(entry);
    case SnapshotAction::kFreeRequested:
      return Free(entry);
    case SnapshotAction::kFreeCompleted: {
      // Mostly the echo of a request. Where memory pools are taken back it comes alone.
      const auto found = at_.find(entry.address);
      return found != at_.end() && found->second.has_value() ? Free(entry) : Status();
    }
    case SnapshotAction::kOther:
    case SnapshotAction::kUnknown:
      return Status();
  }
  return Status();
}

Status SnapshotWindow::Alloc(const SnapshotEntry& entry) {
  std::optional<size_t>& block = at_[entry.address];
  if (block.has_value()) {
    return Fault("addr", std::to_string(entry.address) + " is allocated and was not freed before");
  }
  block = seen_.size();
  seen_.push_back({entry.bytes, open_, Fate::kThrough});
  if (open_) steps_.push_back({true, *block});
  return Status();
}

Status SnapshotWindow::Free(const SnapshotEntry& entry) {
  const auto [place, unheard_of] = at_.try_emplace(entry.address);
  std::optional<size_t>& block = place->second;
  if (unheard_of) {
    // From before the record. It lived in the window if the window is open by now.
    if (open_) seen_.push_back({entry.bytes, false, Fate::kThrough});
    return Status();
  }
  if (!block.has_value()) {
    return Fault("addr", std::to_string(entry.address) + " is freed and was not allocated since");
  }
  Seen& seen = seen_[*block];
  if (!open_) seen.fate = Fate::kBefore;
  if (seen.in_window) {
    seen.fate = Fate::kInside;
    steps_.push_back({false, *block});
  }
  block.reset();
  return Status();
}

Result<Trace> SnapshotWindow::Finish(const std::vector<HeaderEntry>& header) const {
  TraceBuilder builder;
  Status status;
  for (const HeaderEntry& line : header) {
    status = builder.AddHeader(line.key, line.value);
    if (!status.ok()) return status;
  }
  std::vector<uint64_t> ids(seen_.size());
  for (const Fate fate : {Fate::kThrough, Fate::kInside}) {
    const auto kind = fate == Fate::kThrough ? BlockKind::kPersistent : BlockKind::kTransient;
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i].fate != fate) continue;
      ids[i] = builder.blocks();
      status = builder.AddBlock({kind, {seen_[i].bytes, 0}});
      if (!status.ok()) return status;
    }
  }
  for (const Step& step : steps_) {
    if (seen_[step.seen].fate != Fate::kInside) continue;
    status = step.alloc ? builder.Alloc(ids[step.seen]) : builder.Free(ids[step.seen]);
    if (!status.ok()) return status;
  }
  return builder.Finish();
}

}  // namespace sluice::scheduler::trace
