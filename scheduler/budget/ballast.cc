// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/budget/ballast.h"

#include <algorithm>
#include <utility>

#include "scheduler/safety/safety.h"

namespace sluice::scheduler {

namespace {

constexpr const char* kName = "beyond the budget";

void Note(EventKind event, JobId id, Units units, Extents extents, std::vector<Record>* records) {
  Record record;
  record.event = event;
  record.job = id;
  if (event == EventKind::kAdmit) record.name = kName;
  record.request = record.limit = record.claim = units;
  record.extents = std::move(extents);
  records->push_back(std::move(record));
}

/// As if it had never been there.
bool Forget(JobId id, Ledger* ledger, std::vector<Record>* records) {
  if (ledger->held(id) == 0) {
    Note(EventKind::kLeave, id, 0, {}, records);
    return ledger->Leave(id).ok();
  }
  Note(EventKind::kDeath, id, 0, {}, records);
  Note(EventKind::kFree, id, 0, {}, records);
  return ledger->Die(id).ok() && ledger->LastHolderGone(id).ok();
}

bool Hold(JobId id, const Extents& extents, Ledger* ledger, std::vector<Record>* records) {
  const Units units = TotalUnits(extents);
  Note(EventKind::kAdmit, id, units, {}, records);
  Note(EventKind::kGate, id, units, extents, records);
  Note(EventKind::kSettle, id, units, {}, records);
  return ledger->Admit(id, kName, units, units).ok() && ledger->StartUnprofiled(id).ok() &&
         ledger->Grant(id, extents).ok() && ledger->Settle(id, units).ok();
}

/// The first `units` of them.
Extents Part(const Extents& extents, Units units) {
  Extents part;
  for (const Extent& extent : extents) {
    const Units length = std::min(units, extent.length);
    if (length > 0) part.push_back({extent.offset, length});
    units -= length;
  }
  return part;
}

}  // namespace

Status PromiseBallast(JobId id, Units units, Ledger* ledger, std::vector<Record>* records) {
  const Job* known = ledger->Find(id);
  if (known == nullptr) {
    Status admitted = ledger->Admit(id, kName, units, units);
    if (admitted.ok()) Note(EventKind::kAdmit, id, units, {}, records);
    return admitted;
  }
  // A request is never above its limit, on the way neither.
  const bool more = units > known->limit;
  Ledger next = *ledger;
  Status promised = more ? next.SetLimit(id, units) : next.SetRequest(id, units);
  if (promised.ok()) promised = more ? next.SetRequest(id, units) : next.SetLimit(id, units);
  if (!promised.ok()) return promised;
  *ledger = std::move(next);
  Note(EventKind::kLimit, id, units, {}, records);
  return promised;
}

bool TakeBallast(JobId id, Ledger* ledger, std::vector<Record>* records) {
  const Job* known = ledger->Find(id);
  if (known == nullptr) return false;
  const Units promised = known->limit;
  for (const Job& job : ledger->jobs()) {
    if (job.phase == Phase::kUnprofiled && !job.settled) return false;
    if (job.phase == Phase::kEvicted) return false;
  }
  Extents extents = ledger->map().Held(id);
  Extents runs = ledger->map().FreeRuns();
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Extent& a, const Extent& b) { return a.length < b.length; });
  const Units more = promised - TotalUnits(extents);
  if (more > ledger->free()) return false;
  for (const Extent& extent : Part(runs, more)) extents.push_back(extent);
  Ledger next = *ledger;
  std::vector<Record> made;
  extents = Merge(std::move(extents));
  if (!Forget(id, &next, &made) || !Hold(id, extents, &next, &made) || !IsSafe(next)) return false;
  *ledger = std::move(next);
  std::move(made.begin(), made.end(), std::back_inserter(*records));
  return true;
}

void ShrinkBallast(JobId id, Units units, Ledger* ledger, std::vector<Record>* records) {
  if (ledger->Find(id) == nullptr) return;
  const Extents held = ledger->map().Held(id);
  const Extents kept = Part(held, units);
  if (kept.empty()) {
    (void)Forget(id, ledger, records);
    return;
  }
  // Not by coming anew: that is a gate, and none opens while somebody is measured (I7). It never
  // computes, so what it releases is done with.
  constexpr ReleaseId kOnlyOne = 1;
  const Extents back = Subtract(held, kept);
  if (!back.empty() && ledger->Release(id, back, kOnlyOne).ok() &&
      ledger->Fenced(id, kOnlyOne).ok() && ledger->Reclaim(id, back).ok()) {
    for (const EventKind event : {EventKind::kRelease, EventKind::kFenced, EventKind::kReclaim}) {
      Note(event, id, 0, event == EventKind::kFenced ? Extents() : back, records);
      records->back().release = event == EventKind::kReclaim ? 0 : kOnlyOne;
    }
  }
  (void)PromiseBallast(id, TotalUnits(kept), ledger, records).ok();
}

}  // namespace sluice::scheduler
