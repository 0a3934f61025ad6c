// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/entry.h"

#include <optional>
#include <string>

#include "scheduler/text/fault.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler::trace {

namespace {

using text::Fault;

/// Real ones have about ten. One large dict that is an entry many times over would cost its size
/// each time.
constexpr size_t kMaxFields = 64;

struct Action {
  std::string_view name;
  SnapshotAction action;
};

constexpr Action kActions[] = {
    {"alloc", SnapshotAction::kAlloc},
    {"free_requested", SnapshotAction::kFreeRequested},
    {"free_completed", SnapshotAction::kFreeCompleted},
    {"segment_alloc", SnapshotAction::kOther},
    {"segment_free", SnapshotAction::kOther},
    {"segment_map", SnapshotAction::kOther},
    {"segment_unmap", SnapshotAction::kOther},
    {"snapshot", SnapshotAction::kOther},
    {"oom", SnapshotAction::kOther},
};

SnapshotAction FindAction(std::string_view name) {
  for (const Action& known : kActions) {
    if (known.name == name) return known.action;
  }
  return SnapshotAction::kUnknown;
}

Status ReadField(const Values& values, ValueId entry, std::string_view field, uint64_t largest,
                 uint64_t* number) {
  const std::optional<ValueId> value = values.Get(entry, field);
  if (!value.has_value()) return Fault(field, "missing");
  const std::optional<int64_t> read = values.Integer(*value);
  if (!read.has_value()) {
    return Fault(field,
                 "is of type " + std::string(ValueKindName(values.kind(*value))) + ", must be int");
  }
  if (*read < 0 || static_cast<uint64_t>(*read) > largest) {
    return Fault(field,
                 std::to_string(*read) + " must be between 0 and " + std::to_string(largest));
  }
  *number = static_cast<uint64_t>(*read);
  return Status();
}

}  // namespace

Result<SnapshotEntry> ReadSnapshotEntry(const Values& values, ValueId entry, bool with_time) {
  if (values.kind(entry) != ValueKind::kDict) {
    return Fault("entry",
                 "is of type " + std::string(ValueKindName(values.kind(entry))) + ", must be dict");
  }
  if (values.Items(entry).size() > 2 * kMaxFields) {
    return Fault("entry", "more than " + std::to_string(kMaxFields) + " fields");
  }
  const std::optional<ValueId> action = values.Get(entry, "action");
  if (!action.has_value()) return Fault("action", "missing");
  if (values.kind(*action) != ValueKind::kText) {
    return Fault("action", "is of type " + std::string(ValueKindName(values.kind(*action))) +
                               ", must be str");
  }
  SnapshotEntry read;
  read.action = FindAction(*values.Text(*action));
  Status status;
  if (with_time) status = ReadField(values, entry, "time_us", INT64_MAX, &read.time_us);
  if (read.action != SnapshotAction::kOther && read.action != SnapshotAction::kUnknown) {
    if (status.ok()) status = ReadField(values, entry, "addr", INT64_MAX, &read.address);
    if (status.ok()) status = ReadField(values, entry, "size", kMaxNumber, &read.bytes);
  }
  if (!status.ok()) return status;
  return read;
}

}  // namespace sluice::scheduler::trace
