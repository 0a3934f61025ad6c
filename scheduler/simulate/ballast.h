// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <vector>

#include "scheduler/ledger/ledger.h"
#include "scheduler/record/record.h"
#include "scheduler/simulate/simulate.h"

namespace sluice::scheduler::simulate {

/// When the budget changes, and what is beyond it (scheduler/budget/ballast.h).
class Ballast {
 public:
  /// `first`: the budget at the beginning; 0: all of the pool.
  Ballast(JobId id, Units pool, Units first, const std::vector<BudgetChange>& changes);

  JobId id() const { return id_; }
  /// The smallest budget of all: what jobs may be promised.
  Units least() const { return least_; }
  /// In force now.
  Units budget() const { return pool_ - held_; }
  bool pending() const { return pool_ - wanted_ != budget(); }
  /// When the next change is to be made; infinity: none is to come.
  double next_ns() const;
  /// Changes that were to be made by now. Those before the last of them count no more.
  size_t due() const { return next_; }

  /// Makes the change that is due if it can be made; what was done stands behind `records`.
  void Try(double now_ns, Ledger* ledger, std::vector<Record>* records);

 private:
  JobId id_;
  Units pool_;
  Units wanted_ = 0;  // to be held
  Units held_ = 0;
  Units least_;
  std::vector<BudgetChange> changes_;
  size_t next_ = 0;
};

}  // namespace sluice::scheduler::simulate
