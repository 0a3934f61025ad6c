// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Another way of sharing on a running node, and `spatial`, which is none: nobody waits at a gate,
// since everybody's limit is reserved.
#include <algorithm>

#include "noderuntime/flow/flow.h"
#include "noderuntime/flow/profile_page.h"
#include "scheduler/policy/policies.h"

namespace sluice::flow {

namespace {

/// More than any iteration: the host does not wait for its GPU but at the trough.
constexpr uint64_t kNoCreditBound = ~uint64_t{0};

}  // namespace

using scheduler::EventKind;
using scheduler::Record;

std::string Flow::policy_name() const {
  return options_.spatial ? std::string(scheduler::kSpatialPolicy) : options_.policy.policy;
}

void Flow::Adopt(const std::string& policy, uint32_t lanes) {
  options_.spatial = policy == scheduler::kSpatialPolicy;
  // Who is still at a gate passes as soon as it is safe.
  options_.policy.policy = options_.spatial ? "flow" : policy;
  options_.policy.lanes = options_.spatial ? kEveryLane : lanes;
  if (options_.spatial) options_.policy.residents = 0;
}

/// What the job is promised at any time.
Units Flow::Reserved(const JobSpec& spec) const {
  return options_.spatial ? spec.limit : spec.request;
}

/// Profiles of a time before, perhaps of a daemon before: without one there are no gates.
void Flow::WithdrawAll() {
  for (auto& [id, job] : jobs_) {
    if (job.published.has_value())
      Withdraw(id, &job,
               {scheduler::DeviationReason::kPolicy, "policy spatial knows no iterations"});
  }
}

/// Whether everybody can keep its limit for good.
Status Flow::LimitsFit() const {
  uint64_t sum = 0;
  for (const auto& [id, job] : jobs_) {
    if (!job.refusal.empty()) continue;
    if (job.spec.limit == 0) {
      return Status(StatusCode::kFailedPrecondition, "policy spatial: job " + std::to_string(id) +
                                                         " '" + job.spec.name +
                                                         "' has no limit to reserve");
    }
    sum += job.spec.limit;
  }
  if (sum <= Lendable()) return Status();
  return Status(StatusCode::kFailedPrecondition,
                "policy spatial: the limits of the jobs are more than the " +
                    ledger_.Bytes(Lendable()) + " that are lent: " + ledger_.Holders());
}

void Flow::LogPolicy(const std::string& why) {
  Record record = RecordFor(EventKind::kPolicy, scheduler::kNoJob);
  record.policy = policy_name();
  record.units = options_.policy.lanes;
  record.limit = options_.policy.soft_budget;
  record.text = why;
  Log(std::move(record));
}

/// The jobs of a daemon that went by a policy: their limits may be more than the pool, and without
/// gates nobody would give anything back.
void Flow::ReserveOrTakeTurns() {
  if (LimitsFit().ok()) return WithdrawAll();
  const scheduler::Config standard;
  Adopt(standard.policy, standard.lanes);
  LogPolicy();
}

Status Flow::SetWay(const Way& way, uint64_t now_ns) {
  now_ns_ = now_ns;
  if (way.policy == scheduler::kSpatialPolicy) {
    if (Status fit = LimitsFit(); !fit.ok()) return fit;
  }
  Adopt(way.policy, way.lanes);
  // Nothing is shared that would have to be held back.
  options_.policy.soft_budget = options_.spatial ? 0 : way.soft_budget;
  options_.policy.residents = options_.spatial ? 0 : way.residents;
  options_.policy.slice_ns = way.slice_ns;
  SetClaims(way.claims);
  options_.credit_parts = way.credit_parts;
  TellAmounts();
  LogPolicy();
  if (frozen_) return Status();
  if (options_.spatial) WithdrawAll();
  SettleUnprofiled();
  Decide();
  return Status();
}

Way Flow::way() const {
  return {options_.policy.policy,      options_.policy.lanes, options_.claims,
          options_.policy.soft_budget, options_.credit_parts, options_.policy.residents,
          options_.policy.slice_ns};
}

uint64_t Flow::CreditOf(const scheduler::Profile& profile) const {
  if (options_.credit_ns != 0) return options_.credit_ns;
  return scheduler::CreditFor(profile, options_.credit_parts);
}

/// Where jobs take turns nobody is lent anything of a job's before its trough: it has all that it
/// will need from gate 0 on and gives nothing back in between, so that it asks nothing, waits for
/// nothing, and finds runs for its blocks (docs/adr/0034). Not one that stood still in an iteration
/// before: what it does not hold yet lets others go on beside it (I6).
bool Flow::HoldsWhole(const FlowJob& job) const {
  return scheduler::TakesTurns(options_.policy) && !job.stood_still;
}

scheduler::CyclePlan Flow::ToldOf(scheduler::CyclePlan plan, bool whole) const {
  if (!whole) return plan;
  for (scheduler::GatePlan& gate : plan.gates) gate.need_units = plan.peak_units;
  if (options_.credit_ns == 0) plan.credit_ns = kNoCreditBound;
  return plan;
}

void Flow::TellAmounts() {
  for (auto& [id, job] : jobs_) {
    if (!job.published.has_value()) continue;
    job.published->plan.credit_ns = CreditOf(job.published->profile);
    ++changes_;
    // An iteration ends as it began, but for its credit: what its claim was lowered by counts on
    // what it gives back.
    const scheduler::Job* known = ledger_.Find(id);
    const bool inside = known != nullptr && known->phase == scheduler::Phase::kRunning;
    const std::optional<Published::Told>& told = job.published->told;
    if (!inside) Tell(&job, HoldsWhole(job));
    if (inside && told.has_value()) Tell(&job, told->whole);
  }
}

/// The page is large, and asked for at each trough.
void Flow::Tell(FlowJob* job, bool whole) {
  Published& published = *job->published;
  const Published::Told told = {whole, published.plan.credit_ns};
  if (published.told == told) return;
  published.told = told;
  PublishAmounts(ToldOf(published.plan, whole), job->pages.daemon);
}

void Flow::GiveUpSoftBudget(const std::string& why) {
  if (options_.policy.soft_budget == 0) return;
  sink_->Say("the soft budget of " + ledger_.Bytes(options_.policy.soft_budget) +
             " is given up: " + why);
  options_.policy.soft_budget = 0;
  LogPolicy(why);
}

/// It refuses nobody anything, but the memory that it was to leave free is used otherwise.
void Flow::Outgrow(JobId id) {
  if (options_.policy.soft_budget == 0) return;
  ++soft_budgets_outgrown_;
  GiveUpSoftBudget("job " + std::to_string(id) + " needs more than it claimed");
}

Units Flow::LeastSoftBudget() const {
  uint64_t kept = 0;
  const auto keeps = [](const scheduler::Job& job) {
    return job.settled ? job.limit : TotalUnits(job.base);
  };
  for (const scheduler::Job& job : ledger_.jobs()) {
    if (job.id != scheduler::kBeyondBudget) kept += keeps(job);
  }
  uint64_t least = kept;
  for (const scheduler::Job& job : ledger_.jobs()) {
    const FlowJob* known = Find(job.id);
    if (known == nullptr || !known->published.has_value()) continue;
    least = std::max<uint64_t>(least, kept - keeps(job) + std::max(keeps(job), ClaimFor(*known)));
  }
  return static_cast<Units>(std::min<uint64_t>(least, options_.pool_units));
}

void Flow::FollowSoftBudget() {
  if (options_.policy.soft_budget == 0) return;
  const Units least = LeastSoftBudget();
  if (least <= options_.policy.soft_budget) return;
  ++soft_budgets_outgrown_;
  GiveUpSoftBudget("the jobs need " + ledger_.Bytes(least));
}

}  // namespace sluice::flow
