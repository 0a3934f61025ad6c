// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/ballast.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/safety/safety.h"

namespace sluice::scheduler::simulate {

namespace {

Units BallastFor(Units budget, Units pool) {
  return budget == 0 ? 0 : pool - std::min(budget, pool);
}

}  // namespace

Ballast::Ballast(JobId id, Units pool, Units first, const std::vector<BudgetChange>& changes)
    : id_(id),
      pool_(pool),
      wanted_(BallastFor(first, pool)),
      least_(pool - wanted_),
      changes_(changes) {
  for (const BudgetChange& change : changes_) {
    least_ = std::min(least_, pool - BallastFor(change.budget, pool));
  }
}

double Ballast::next_ns() const {
  return next_ < changes_.size() ? changes_[next_].at_ns : std::numeric_limits<double>::infinity();
}

void Ballast::Try(double now_ns, Ledger* ledger, std::vector<Record>* records) {
  for (; next_ < changes_.size() && changes_[next_].at_ns <= now_ns; ++next_) {
    wanted_ = BallastFor(changes_[next_].budget, pool_);
  }
  if (wanted_ == held_) return;
  for (const Job& job : ledger->jobs()) {
    // While somebody is measured nobody else passes a gate (I7).
    if (job.phase == Phase::kUnprofiled && !job.settled && wanted_ > held_) return;
    // It comes back to its own units, and where the ballast lies is as good as for ever.
    if (job.phase == Phase::kEvicted) return;
  }
  Ledger trial = *ledger;
  std::vector<Record> made;
  if (held_ > 0) {
    if (!trial.Die(id_).ok() || !trial.LastHolderGone(id_).ok()) return;
    for (const EventKind event : {EventKind::kDeath, EventKind::kFree}) {
      Record record;
      record.event = event;
      record.job = id_;
      made.push_back(std::move(record));
    }
  }
  if (wanted_ > 0 && !Take(id_, wanted_, &trial, &made)) return;
  if (wanted_ > held_ && !IsSafe(trial)) return;
  held_ = wanted_;
  *ledger = std::move(trial);
  for (Record& record : made) {
    record.t_ns = static_cast<uint64_t>(now_ns);
    records->push_back(std::move(record));
  }
}

bool Ballast::Take(JobId id, Units units, Ledger* ledger, std::vector<Record>* records) {
  Extents extents;
  Units left = units;
  for (const Extent& run : ledger->map().FreeRuns()) {
    const Units length = std::min(left, run.length);
    if (length > 0) extents.push_back({run.offset, length});
    left -= length;
  }
  if (left > 0) return false;
  const char* name = "beyond the budget";
  if (!ledger->Admit(id, name, units, units).ok() || !ledger->StartUnprofiled(id).ok() ||
      !ledger->Grant(id, extents).ok() || !ledger->Settle(id, units).ok()) {
    return false;
  }
  Record record;
  record.event = EventKind::kAdmit;
  record.job = id;
  record.name = name;
  record.request = record.limit = record.claim = units;
  records->push_back(record);
  record.event = EventKind::kGate;
  record.extents = std::move(extents);
  records->push_back(record);
  record.event = EventKind::kSettle;
  record.extents.clear();
  records->push_back(std::move(record));
  return true;
}

}  // namespace sluice::scheduler::simulate
