// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A budget below the pool, on a running node. Less is asked for at once and in force when what is
// held leaves room for it: until then nobody begins an iteration, which is what makes room (but for
// one whose going on makes room for a job that is in host memory). Every wait ends: a budget that
// cannot be reached is given up, and says why.
#include <algorithm>
#include <utility>

#include "noderuntime/flow/flow.h"
#include "scheduler/budget/ballast.h"
#include "scheduler/ledger/limits.h"

namespace sluice::flow {

using scheduler::kBeyondBudget;
using scheduler::Phase;
using scheduler::Record;
using scheduler::RequestKind;

Units Flow::budget() const { return options_.pool_units - ledger_.held(kBeyondBudget); }

/// What newcomers may count on.
Units Flow::Lendable() const {
  return options_.pool_units - std::max(beyond_, ledger_.held(kBeyondBudget));
}

bool Flow::BudgetFalls() const { return beyond_ > ledger_.held(kBeyondBudget); }

bool Flow::BeginsLater(const Request& request) const {
  const bool begins = request.kind == RequestKind::kGate0 || request.kind == RequestKind::kNewcomer;
  return begins && BudgetFalls() && !KeepsSomebodyAway(request.job);
}

/// At its trough it keeps something where one that is in host memory has to come back to. Only by
/// going on it may come to keep something else.
bool Flow::KeepsSomebodyAway(JobId id) const {
  const auto& jobs = ledger_.jobs();
  const auto is_away = [](const scheduler::Job& job) { return !job.away.empty(); };
  if (std::none_of(jobs.begin(), jobs.end(), is_away)) return false;
  const Extents held = ledger_.map().Held(id);
  return std::any_of(jobs.begin(), jobs.end(), [&held](const scheduler::Job& job) {
    return !Intersect(held, job.away).empty();
  });
}

Status Flow::SetBudget(Units units, uint64_t now_ns) {
  now_ns_ = now_ns;
  if (units == 0 || units > options_.pool_units) {
    return Status(StatusCode::kInvalidArgument,
                  "budget " + ledger_.Bytes(units) + ": allowed: " + ledger_.Bytes(1) + " to " +
                      ledger_.Bytes(options_.pool_units) + " (the pool)");
  }
  const Units beyond = options_.pool_units - units;
  if (beyond > ledger_.held(kBeyondBudget)) {
    if (Status fits = BudgetFits(units); !fits.ok()) return fits;
  }
  GiveUpSoftBudget("another budget was asked for");
  ++changes_;
  beyond_ = beyond;
  budget_since_ns_ = now_ns;
  budget_refusal_.clear();
  if (!BudgetFalls()) RaiseBudget();
  if (!frozen_) Decide();
  return Status();
}

/// Whether each job can come to its peak while the others keep what they keep at their troughs.
/// What a job that is measured will need nobody knows yet.
Status Flow::BudgetFits(Units units) const {
  uint64_t kept = 0;
  const auto keeps = [](const scheduler::Job& job) {
    return job.settled ? job.limit : std::max(job.request, TotalUnits(job.base));
  };
  for (const scheduler::Job& job : ledger_.jobs()) {
    if (job.id == kBeyondBudget) continue;
    if (job.phase == Phase::kDying) {
      if (job.linger == scheduler::Linger::kForGood) kept += job.held();
    } else {
      kept += keeps(job);
    }
  }
  const scheduler::Job* largest = nullptr;
  uint64_t most = 0;
  for (const scheduler::Job& job : ledger_.jobs()) {
    const FlowJob* known = Find(job.id);
    if (known == nullptr) continue;
    uint64_t need = std::max<uint64_t>(1, keeps(job));
    if (job.phase != Phase::kParked) need = std::max(need, job.needs());
    if (known->published.has_value()) need = std::max<uint64_t>(need, MostUsed(*known));
    if (known->spec.limit > 0) need = job.limit;
    const uint64_t all = kept - keeps(job) + need;
    if (all <= most) continue;
    most = all;
    largest = &job;
  }
  if (most <= units) return Status();
  const auto others = static_cast<Units>(kept - keeps(*largest));
  return Status(StatusCode::kResourceExhausted,
                "budget " + ledger_.Bytes(units) + ": " + largest->Title() +
                    (Find(largest->id)->spec.limit > 0 ? " was promised " : " needs ") +
                    ledger_.Bytes(static_cast<Units>(most - others)) + " and the others keep " +
                    ledger_.Bytes(others) + "; allowed: from " +
                    ledger_.Bytes(static_cast<Units>(most)));
}

/// Before anything else is decided.
void Flow::FollowBudget() {
  if (!BudgetFalls()) return;
  if (Status fits = BudgetFits(options_.pool_units - beyond_); !fits.ok()) {
    return GiveUpBudget(fits.message());
  }
  const auto measured = [](const scheduler::Job& job) {
    return job.phase == Phase::kUnprofiled && !job.settled;
  };
  if (std::any_of(ledger_.jobs().begin(), ledger_.jobs().end(), measured)) {
    // As long as others wait for it to be known (I7); told a lower limit now, it would be told soon
    // that there is no memory.
    budget_since_ns_ = now_ns_;
    return;
  }
  PromiseBudget();
  std::vector<Record> records;
  const scheduler::Job* promised = ledger_.Find(kBeyondBudget);
  if (promised != nullptr && promised->limit == beyond_ &&
      TakeBallast(kBeyondBudget, &ledger_, &records)) {
    LogBudget(std::move(records));
    sink_->Say("budget " + ledger_.Bytes(budget()) + " is in force");
    return;
  }
  if (now_ns_ - budget_since_ns_ < options_.lease_wait_ns) return;
  GiveUpBudget("what is held did not become little enough within " +
               std::to_string(options_.lease_wait_ns / 1'000'000'000) +
               " s: " + ledger_.Holders(kBeyondBudget));
}

/// Limits that nobody gave make room for it.
void Flow::PromiseBudget() {
  const scheduler::Job* known = ledger_.Find(kBeyondBudget);
  if (known != nullptr && known->limit == beyond_) return;
  Ledger next = ledger_;
  MakeRoom(&next, kBeyondBudget, beyond_, [this](JobId id) {
    const FlowJob* job = Find(id);
    return job != nullptr && job->spec.limit == 0;
  });
  std::vector<Record> records;
  if (!PromiseBallast(kBeyondBudget, beyond_, &next, &records).ok()) return;
  ReplaceLedger(std::move(next));
  LogBudget(std::move(records));
}

/// More than before, at once.
void Flow::RaiseBudget() {
  std::vector<Record> records;
  const scheduler::Job* known = ledger_.Find(kBeyondBudget);
  if (known == nullptr || known->limit == beyond_) return;
  ShrinkBallast(kBeyondBudget, beyond_, &ledger_, &records);
  LogBudget(std::move(records));
  // Who was told less for the budget's sake may have more again.
  Ledger next = ledger_;
  for (const auto& [id, job] : jobs_) {
    const scheduler::Job* had = next.Find(id);
    if (had == nullptr || job.spec.limit > 0 || had->settled || had->phase == Phase::kDying) {
      continue;
    }
    const Units most = next.LargestLimit(id, had->request);
    if (most > had->limit) (void)next.SetLimit(id, most).ok();
  }
  ReplaceLedger(std::move(next));
}

void Flow::GiveUpBudget(const std::string& why) {
  beyond_ = ledger_.held(kBeyondBudget);
  budget_refusal_ = why;
  RaiseBudget();
  sink_->Say("the budget stays " + ledger_.Bytes(budget()) + ": " + why);
}

void Flow::LogBudget(std::vector<Record> records) {
  for (Record& record : records) {
    record.t_ns = now_ns_;
    Log(std::move(record));
  }
}

}  // namespace sluice::flow
