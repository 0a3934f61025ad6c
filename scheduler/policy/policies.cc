// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/policy.h"

namespace sluice::scheduler {

namespace {

/// Jobs other than `job` that occupy a lane. A settled job without a profile never comes back to a
/// trough, and a quiet one may not for long: if they counted, `temporal` would open no other gate.
uint32_t Occupants(const Ledger& ledger, JobId job) {
  uint32_t count = 0;
  for (const Job& other : ledger.jobs()) {
    if (other.id != job && other.past_gate() && !other.settled && !other.quiet) ++count;
  }
  return count;
}

bool TemporalMayOpen(const Ledger& ledger, JobId job, const Config&) {
  return Occupants(ledger, job) == 0;
}

bool FlowMayOpen(const Ledger& ledger, JobId job, const Config& config) {
  return Occupants(ledger, job) < config.lanes;
}

}  // namespace

const std::vector<PolicyEntry>& Policies() {
  static const std::vector<PolicyEntry> policies = {
      {"flow", "opens whatever is safe, at most `lanes` jobs at once", &FlowMayOpen},
      {"temporal", "one iteration at a time, bases stay resident", &TemporalMayOpen},
  };
  return policies;
}

const PolicyEntry* FindPolicy(std::string_view name) {
  for (const PolicyEntry& policy : Policies()) {
    if (policy.name == name) return &policy;
  }
  return nullptr;
}

}  // namespace sluice::scheduler
