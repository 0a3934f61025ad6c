// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/policies.h"

#include "scheduler/policy/operations.h"

namespace sluice::scheduler {

const std::vector<PolicyEntry>& Policies() {
  static const std::vector<PolicyEntry> policies = {
      {"flow", "opens whatever is safe, at most `lanes` jobs at once", &FlowMayOpen},
      {"nodegroup", "groups that take memory beside groups that give it back", &NodeGroupMayOpen,
       &NodeGroupMayPass},
      {"temporal", "one iteration at a time, bases stay resident", &TemporalMayOpen},
      {"timeshift", "delays an iteration until all that is predicted fits", &TimeShiftMayOpen,
       nullptr, &TimeShiftOpensIn},
  };
  return policies;
}

const PolicyEntry* FindPolicy(std::string_view name) {
  for (const PolicyEntry& policy : Policies()) {
    if (policy.name == name) return &policy;
  }
  return nullptr;
}

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const PolicyEntry& policy : Policies()) names.emplace_back(policy.name);
  return names;
}

std::vector<std::string> NodePolicyNames() {
  std::vector<std::string> names = PolicyNames();
  names.emplace_back(kSpatialPolicy);
  names.emplace_back(kAutoPolicy);
  return names;
}

bool TakesTurns(const Config& config) {
  const PolicyEntry* policy = FindPolicy(config.policy);
  return policy != nullptr && (policy->may_open == &TemporalMayOpen || config.lanes == 1);
}

uint32_t Occupants(const Ledger& ledger, JobId job) {
  uint32_t count = 0;
  uint32_t collective = 0;
  for (const Job& other : ledger.jobs()) {
    if (other.id == job || !other.under_way()) continue;
    ++(other.collective ? collective : count);
  }
  const bool room = collective == 0 || MayHold(ledger, job) <= ledger.pool_units();
  return room ? count : count + collective;
}

}  // namespace sluice::scheduler
