// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/record/record.h"

namespace sluice::scheduler {

struct AuditViolation {
  size_t record = 0;  // index in the log
  std::string rule;   // "I0", "I1", "I3", "I4", "I5", "I7", "outside", "schema"
  std::string text;
};

/// Amounts are units of the log's pool.
struct AuditJob {
  std::string name;
  Units peak_units = 0;
  Units limit_units = 0;
  uint64_t peak_outside_bytes = 0;  // most it had outside the pool
  double mean_over_peak =
      0;  // time-weighted mean of held over peak, while it was inside profiled iterations
  uint64_t iterations = 0;  // troughs reached
  uint64_t lent_units = 0;  // released within its iterations and granted to another within theirs
  uint64_t denied = 0;
};

struct AuditSample {
  uint64_t t_ns = 0;
  std::map<JobId, Units> held;
  Units free = 0;
};

struct AuditReport {
  Units pool_units = 0;
  uint64_t unit_bytes = 0;
  std::string policy;
  size_t records = 0;
  std::vector<AuditViolation> violations;
  uint64_t over_budget_moments =
      0;  // records after which more than the pool was held, or a unit had two holders
  uint64_t over_limit_moments = 0;  // records after which a job held more than its claim or limit
  uint64_t lent_bytes_within_iterations = 0;
  /// Drained troughs at which a job kept more than its request (I2). Its own doing, which no
  /// decision can prevent: counted, and no violation.
  uint64_t overbase_troughs = 0;
  uint64_t broken_promises = 0;  // troughs and mismatches after which I3 no longer held
  uint64_t unchecked_orders =
      0;  // transitions with more jobs past their gate than brute force covers
  std::map<JobId, AuditJob> jobs;
  std::vector<AuditSample> series;  // at most `max_samples`, evenly thinned
  bool ok() const {
    return violations.empty() && over_budget_moments == 0 && over_limit_moments == 0;
  }
};

/// Replays an event log with its own code (it shares only the record schema with the ledger) and
/// says what was wrong, and what was lent. `records` in the order of the log, the pool's first. A
/// broken log is no error but a report with violations. Cost: pool units times records, and up to
/// six factorial orders per decision.
AuditReport Audit(const std::vector<Record>& records, size_t max_samples = 512);

}  // namespace sluice::scheduler
