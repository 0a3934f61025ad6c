// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Another policy on a running node, and `spatial`, which is none: nobody waits at a gate, since
// everybody's limit is reserved.
#include "noderuntime/flow/flow.h"
#include "scheduler/policy/policies.h"

namespace sluice::flow {

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
}

/// What the job is promised at any time.
Units Flow::Reserved(const JobSpec& spec) const {
  return options_.spatial ? spec.limit : spec.request;
}

/// Profiles of a time before, perhaps of a daemon before: without one there are no gates.
void Flow::WithdrawAll() {
  for (auto& [id, job] : jobs_) {
    if (job.published.has_value()) Withdraw(id, &job);
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

void Flow::LogPolicy() {
  Record record = RecordFor(EventKind::kPolicy, scheduler::kNoJob);
  record.policy = policy_name();
  record.units = options_.policy.lanes;
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

Status Flow::SetPolicy(const std::string& policy, uint32_t lanes, scheduler::Claims claims,
                       uint64_t now_ns) {
  now_ns_ = now_ns;
  if (policy == scheduler::kSpatialPolicy) {
    if (Status fit = LimitsFit(); !fit.ok()) return fit;
  }
  Adopt(policy, lanes);
  SetClaims(claims);
  LogPolicy();
  if (frozen_) return Status();
  if (options_.spatial) WithdrawAll();
  SettleUnprofiled();
  Decide();
  return Status();
}

}  // namespace sluice::flow
