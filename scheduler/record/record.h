// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/ledger/types.h"
#include "scheduler/record/reason.h"

/// The schema of the event log (docs/design/runtime.md, section 5): one record per ledger
/// transition. The ledger's user writes it, scheduler/audit replays it. Text (JSON) is the business
/// of the programs; the key of each field in the text is its name here.
namespace sluice::scheduler {

enum class EventKind : uint8_t {
  kPool,     // units, unit_bytes, policy, bytes (what the GPU has outside the pool); always first
  kPolicy,   // policy, units (its lanes), limit (a soft budget, or none), text (why that went):
             // what decides from here on
  kRestore,  // a job that another daemon knew, right behind the pool: name, request, limit, text
             // (its phase), claim, piece, returns, drained, settled, extents (all it holds), base,
             // last_trough. outside, release, fenced and death follow where they apply.
  kAdmit,    // request, limit, name
  kLimit,    // limit, request
  kGate,     // gate 0 opened: iteration, claim, piece, returns, profiled, sums_only, collective,
             // extents (of the first group, may be empty)
  kGrant,  // gate k or lease: extents, claim (after it; larger than before: a claim raise), waives
           // (after it), reclaim
  kRelease,    // extents, release
  kFenced,     // release
  kReclaim,    // extents: fenced units of the job that become free
  kTrough,     // drained, iteration
  kClaim,      // claim: raised or lowered outside of a grant
  kBase,       // units: the base as measured (for people; replay derives it)
  kMismatch,   // the job lost its profile: gives nothing back. reason, piece; text: how
  kSettle,     // unprofiled, and not waited for any more
  kQuiet,      // past its gate, and computes nothing: jobs with a profile go on beside it.
               // collective
  kBusy,       // a quiet job computes again
  kEvict,      // extents: leased units of a job that stands still, in host memory now and free;
               // reason: of its wait, `turn` at its trough; text: why
  kCopyOut,    // extents: leased units of a job that stands still, as host memory's own list has
               // them: they are being copied there from here on; none: that failed, text: how
  kCopyBack,   // the end of a copy back: extents, likewise; text: how it failed
  kBringBack,  // its iteration goes on: claim, waives, piece, returns, profiled, sums_only, extents
               // (all that was evicted). No claim: it is back at its trough
  kWait,       // units, contiguous, reason, text: a request has begun to wait, or waits for
               // something else now (each reason once)
  kDeny,       // units, reason, text
  kOutside,  // bytes: all that it has outside the pool; units: how much of that counts against its
             // limit; text: why it changed
  kDeath,    // everything is quarantined
  kFree,     // last holder gone; the job is removed
  kLeave,    // removed; extents: spare units of its, which become free in the same step
};

struct Record {
  uint64_t t_ns = 0;
  EventKind event = EventKind::kPool;
  JobId job = kNoJob;
  std::string name;
  std::string policy;
  std::string text;
  std::string reason;  // ReasonName of a WaitReason, RefusalReason or DeviationReason
  uint64_t unit_bytes = 0;
  uint64_t bytes = 0;
  Units units = 0;
  Units contiguous = 0;
  Units request = 0;
  Units limit = 0;
  Units claim = 0;
  Units waives = 0;  // kGrant, kRestore: the part of the claim that the job will not need again
  Units piece = kWholeClaim;
  uint32_t gate = 0;
  uint64_t iteration = 0;
  ReleaseId release = 0;
  bool returns = false;
  bool profiled = false;
  bool drained = false;
  bool sums_only = false;
  bool settled = false;
  bool collective = false;  // kGate, kQuiet: its kernels wait for other GPUs'
  Extents extents;
  Extents base;         // kRestore
  Extents last_trough;  // kRestore
  Extents reclaim;      // kGrant: spare units of the job that become free in the same step
};

/// "grant", "fenced", ...: the value of the key `event`.
std::string_view EventName(EventKind kind);
std::optional<EventKind> ParseEventName(std::string_view name);

}  // namespace sluice::scheduler
