// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/loans/loans.h"

#include <algorithm>
#include <string_view>

namespace sluice::scheduler {

void Loan::Add(const Loan& other) {
  now += other.now;
  lent += other.lent;
  returned += other.returned;
  times += other.times;
}

void Loans::Apply(const Record& record) {
  const JobId id = record.job;
  switch (record.event) {
    case EventKind::kRestore:
      Of(id).inside = record.text == PhaseName(Phase::kRunning);
      Grant(id, record.extents);
      break;
    case EventKind::kGate:
      if (record.gate == 0) Of(id).inside = record.profiled;
      Grant(id, record.extents);
      break;
    case EventKind::kGrant:
      Grant(id, record.extents);
      break;
    case EventKind::kBringBack:
      Of(id).inside = record.profiled;
      Grant(id, record.extents);
      break;
    case EventKind::kRelease:
      Release(record);
      break;
    case EventKind::kFenced: {
      Party& party = Of(id);
      if (const auto found = party.unfenced.find(record.release); found != party.unfenced.end()) {
        EndLoans(found->second);
        party.unfenced.erase(found);
      }
      break;
    }
    case EventKind::kEvict:
      EndLoans(record.extents);
      StopLending(id);
      break;
    case EventKind::kTrough:
    case EventKind::kMismatch:
    case EventKind::kDeath:
      StopLending(id);
      break;
    case EventKind::kFree:
    case EventKind::kLeave:
      StopLending(id);
      StopBorrowing(id);
      break;
    case EventKind::kPool:
    case EventKind::kPolicy:
    case EventKind::kAdmit:
    case EventKind::kLimit:
    case EventKind::kReclaim:
    case EventKind::kCopyOut:
    case EventKind::kCopyBack:
    case EventKind::kClaim:
    case EventKind::kBase:
    case EventKind::kSettle:
    case EventKind::kQuiet:
    case EventKind::kBusy:
    case EventKind::kWait:
    case EventKind::kDeny:
    case EventKind::kOutside:
      break;
  }
}

template <typename Change>
void Loans::ForEach(const Extents& extents, Change change) {
  for (const Extent& extent : extents) {
    const size_t end = std::min<size_t>(size_t{extent.offset} + extent.length, units_.size());
    for (size_t at = extent.offset; at < end; ++at) change(&units_[at]);
  }
}

void Loans::Grant(JobId job, const Extents& extents) {
  JobId last = kNoJob;
  ForEach(extents, [&](Unit* unit) {
    const Mark giver = unit->giver;
    *unit = Unit();
    if (giver.job == job || job == kBeyondBudget || !Lives(giver, &Party::lending)) return;
    Party& lender = Of(giver.job);
    Party& borrower = Of(job);
    Loan& loan = Pair(giver.job, job);
    ++loan.now;
    ++loan.lent;
    // A grant names its extents by offset: a lender that comes twice in it counts twice at most
    // where another one's units lie between.
    if (last != giver.job) ++loan.times;
    last = giver.job;
    ++lender.lent;
    ++lender.lent_ever;
    ++borrower.borrowed;
    ++borrower.borrowed_ever;
    unit->lender = giver;
    unit->borrower = {job, borrower.borrowing};
  });
}

void Loans::Release(const Record& record) {
  Party& party = Of(record.job);
  ForEach(record.extents, [&](Unit* unit) {
    unit->giver = party.inside ? Mark{record.job, party.lending} : Mark();
  });
  Extents& waiting = party.unfenced[record.release];
  waiting.insert(waiting.end(), record.extents.begin(), record.extents.end());
}

void Loans::EndLoans(const Extents& extents) {
  ForEach(extents, [&](Unit* unit) {
    const Mark lender = unit->lender;
    const Mark borrower = unit->borrower;
    unit->lender = unit->borrower = Mark();
    if (!Lives(lender, &Party::lending) || !Lives(borrower, &Party::borrowing)) return;
    Return(&pairs_[{lender.job, borrower.job}], 1);
  });
}

void Loans::StopLending(JobId job) {
  Party& party = Of(job);
  party.inside = false;
  party.lending = ++last_life_;
  for (auto at = pairs_.lower_bound({job, 0}); at != pairs_.end() && at->first.first == job; ++at) {
    Return(&at->second, at->second.now);
  }
}

void Loans::StopBorrowing(JobId job) {
  Party& party = Of(job);
  party.borrowing = ++last_life_;
  party.unfenced.clear();
  if (party.borrowed == 0) return;
  for (auto& [pair, loan] : pairs_) {
    if (pair.second == job) Return(&loan, loan.now);
  }
}

void Loans::Return(Loan* loan, Units units) {
  loan->now -= units;
  loan->returned += units;
  Of(loan->lender).lent -= units;
  Of(loan->borrower).borrowed -= units;
}

Loan& Loans::Pair(JobId lender, JobId borrower) {
  const auto [at, is_new] = pairs_.try_emplace({lender, borrower});
  Loan& loan = at->second;
  if (is_new) {
    loan.lender = lender;
    loan.borrower = borrower;
    loan.apart = apart_ < kMostApart;
    apart_ += loan.apart ? 1 : 0;
  }
  return loan;
}

Loans::Party& Loans::Of(JobId job) {
  const auto [at, is_new] = parties_.try_emplace(job);
  if (is_new) at->second.lending = at->second.borrowing = ++last_life_;
  return at->second;
}

const Loans::Party* Loans::Find(JobId job) const {
  const auto found = parties_.find(job);
  return found == parties_.end() ? nullptr : &found->second;
}

bool Loans::Lives(const Mark& mark, uint32_t Party::*life) const {
  if (mark.job == kNoJob) return false;
  const Party* party = Find(mark.job);
  return party != nullptr && party->*life == mark.life;
}

std::vector<Loan> Loans::pairs() const {
  std::vector<Loan> all;
  all.reserve(pairs_.size());
  for (const auto& [pair, loan] : pairs_) all.push_back(loan);
  return all;
}

Loan Loans::rest() const {
  Loan rest = rest_;
  for (const auto& [pair, loan] : pairs_) {
    if (!loan.apart) rest.Add(loan);
  }
  return rest;
}

Units Loans::lent(JobId lender) const {
  const Party* party = Find(lender);
  return party == nullptr ? 0 : party->lent;
}

Units Loans::borrowed(JobId borrower) const {
  const Party* party = Find(borrower);
  return party == nullptr ? 0 : party->borrowed;
}

uint64_t Loans::lent_ever(JobId lender) const {
  const Party* party = Find(lender);
  return party == nullptr ? 0 : party->lent_ever;
}

uint64_t Loans::borrowed_ever(JobId borrower) const {
  const Party* party = Find(borrower);
  return party == nullptr ? 0 : party->borrowed_ever;
}

void Loans::Forget(JobId job) {
  if (job == kNoJob || Find(job) == nullptr) return;
  StopLending(job);
  StopBorrowing(job);
  std::erase_if(pairs_, [&](const auto& entry) {
    const Loan& loan = entry.second;
    if (loan.lender != job && loan.borrower != job) return false;
    (loan.apart ? over_ : rest_).Add(loan);
    apart_ -= loan.apart ? 1 : 0;
    return true;
  });
  parties_.erase(job);
}

}  // namespace sluice::scheduler
