// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "scheduler/record/record.h"

namespace sluice::scheduler {

/// What one job lends another. Amounts in units.
struct Loan {
  JobId lender = kNoJob;
  JobId borrower = kNoJob;
  Units now = 0;          // that the borrower holds
  uint64_t lent = 0;      // ever; a unit that goes there again counts again
  uint64_t returned = 0;  // of those, what is no loan any more: lent = now + returned
  uint64_t times = 0;     // grants with units of the lender in them
  bool apart = true;      // told of by itself (Loans::kMostApart)

  void Add(const Loan& other);  // its amounts
};

/// Who lends whom how much, from the records of a pool in their order. A unit is lent when its job
/// gave it up inside an iteration (with a profile) and another job is granted it before that
/// iteration is over: what lent_units of an audit counts. It is a loan until the borrower has given
/// it back and its GPU is done with it, or until the lender's iteration is over, whichever comes
/// first: then the lender does not miss it any more. What is kept beyond a budget borrows nothing.
///
/// A record costs by the units it names, and the end of an iteration by the lender's pairs, however
/// large the pool is. Unlike an audit it believes its records.
class Loans {
 public:
  /// So many pairs are told of one by one: the first that there are, each as long as both its jobs
  /// are known. No pair changes sides, so that a reader of counters sees none of them fall, and
  /// nothing come a second time.
  static constexpr size_t kMostApart = 256;

  explicit Loans(Units pool_units) : units_(pool_units) {}

  void Apply(const Record& record);

  /// All pairs that ever were, but those that were forgotten; by lender, then borrower.
  std::vector<Loan> pairs() const;
  /// Of all pairs that are or were not told of one by one, in sum.
  Loan rest() const;
  /// Of all pairs that were, and are forgotten, in sum: their last counts have been read.
  const Loan& over() const { return over_; }
  Units lent(JobId lender) const;  // at the moment
  Units borrowed(JobId borrower) const;
  uint64_t lent_ever(JobId lender) const;
  uint64_t borrowed_ever(JobId borrower) const;

  /// A job that is gone, and its pairs with it: rest() and over() keep the sums.
  void Forget(JobId job);

 private:
  /// Who gave a unit up, or whose it is a loan of. An iteration that is over, or a job that is
  /// gone, leaves marks behind that count for nothing: no need to look for them.
  struct Mark {
    JobId job = kNoJob;
    uint32_t life = 0;
  };
  struct Unit {
    Mark giver;     // gave it up in the iteration that it is in
    Mark lender;    // of whom the holder has it
    Mark borrower;  // who that is
  };
  struct Party {
    bool inside = false;     // in an iteration with a profile
    uint32_t lending = 0;    // another one when an iteration is over
    uint32_t borrowing = 0;  // another one when all it held is free
    Units lent = 0;
    Units borrowed = 0;
    uint64_t lent_ever = 0;
    uint64_t borrowed_ever = 0;
    std::map<ReleaseId, Extents> unfenced;
  };

  void Grant(JobId job, const Extents& extents);
  void Release(const Record& record);
  void EndLoans(const Extents& extents);
  void StopLending(JobId job);
  void StopBorrowing(JobId job);
  void Return(Loan* loan, Units units);
  Loan& Pair(JobId lender, JobId borrower);
  Party& Of(JobId job);
  const Party* Find(JobId job) const;
  /// Whether the mark is of the life that its job is in.
  bool Lives(const Mark& mark, uint32_t Party::*life) const;
  template <typename Change>
  void ForEach(const Extents& extents, Change change);

  std::vector<Unit> units_;
  std::map<JobId, Party> parties_;
  std::map<std::pair<JobId, JobId>, Loan> pairs_;
  size_t apart_ = 0;  // pairs that are
  Loan rest_;         // of pairs that were not, and are forgotten
  Loan over_;
  uint32_t last_life_ = 0;
};

}  // namespace sluice::scheduler
