// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/ballast.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/budget/ballast.h"

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
  std::vector<Record> made;
  if (wanted_ < held_) {
    ShrinkBallast(id_, wanted_, ledger, &made);
  } else {
    Ledger next = *ledger;
    if (!PromiseBallast(id_, wanted_, &next, &made).ok() || !TakeBallast(id_, &next, &made)) return;
    *ledger = std::move(next);
  }
  held_ = wanted_;
  for (Record& record : made) {
    record.t_ns = static_cast<uint64_t>(now_ns);
    records->push_back(std::move(record));
  }
}

}  // namespace sluice::scheduler::simulate
