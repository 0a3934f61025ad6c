// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/record/record.h"

namespace sluice::scheduler {

namespace {

struct Name {
  EventKind kind;
  std::string_view text;
};

constexpr Name kNames[] = {
    {EventKind::kPool, "pool"},
    {EventKind::kRestore, "restore"},
    {EventKind::kAdmit, "admit"},
    {EventKind::kLimit, "limit"},
    {EventKind::kGate, "gate"},
    {EventKind::kGrant, "grant"},
    {EventKind::kRelease, "release"},
    {EventKind::kFenced, "fenced"},
    {EventKind::kReclaim, "reclaim"},
    {EventKind::kTrough, "trough"},
    {EventKind::kClaim, "claim"},
    {EventKind::kBase, "base"},
    {EventKind::kMismatch, "mismatch"},
    {EventKind::kSettle, "settle"},
    {EventKind::kWait, "wait"},
    {EventKind::kDeny, "deny"},
    {EventKind::kDeath, "death"},
    {EventKind::kFree, "free"},
    {EventKind::kLeave, "leave"},
    {EventKind::kOutside, "outside"},
    {EventKind::kQuiet, "quiet"},
    {EventKind::kBusy, "busy"},
    {EventKind::kPolicy, "policy"},
    {EventKind::kEvict, "evict"},
    {EventKind::kCopyOut, "copy-out"},
    {EventKind::kCopyBack, "copy-back"},
    {EventKind::kBringBack, "bring-back"},
};

}  // namespace

std::string_view EventName(EventKind kind) {
  for (const Name& name : kNames) {
    if (name.kind == kind) return name.text;
  }
  return "unknown";
}

std::optional<EventKind> ParseEventName(std::string_view name) {
  for (const Name& known : kNames) {
    if (known.text == name) return known.kind;
  }
  return std::nullopt;
}

}  // namespace sluice::scheduler
