// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "noderuntime/figures/figures.h"
#include "scheduler/audit/audit.h"
#include "scheduler/record/record.h"

namespace sluice::cli {

/// A job of a finished run. Amounts in bytes, times in nanoseconds.
struct ReportedJob {
  uint32_t id = 0;
  std::string name;
  uint64_t peak_bytes = 0;
  uint64_t limit_bytes = 0;
  double held_over_peak = 0;  // mean while it was inside its iterations
  uint64_t iterations = 0;
  uint64_t iteration_median_ns = 0;  // from an open gate 0 to the trough
  uint64_t iteration_p90_ns = 0;
  uint64_t there_ns = 0;    // from the first to the last that was heard of it
  uint64_t inside_ns = 0;   // past its gate
  uint64_t waited_ns = 0;   // at gates and for leases
  uint64_t lent_bytes = 0;  // in all
  uint64_t borrowed_bytes = 0;
  figures::JobFigures figures;
};

/// What a finished run was, from its event log: measured, nothing here is modelled.
struct RunReport {
  std::string source;
  uint64_t pool_bytes = 0;
  uint64_t unit_bytes = 0;
  uint64_t records = 0;
  uint64_t began_ns = 0;  // by the daemon's clock
  uint64_t lasted_ns = 0;
  std::vector<std::pair<std::string, uint64_t>> policies;  // in force for so long, in order
  std::vector<ReportedJob> jobs;
  std::vector<scheduler::Loan> loans;  // in units
  // What sharing saved.
  uint64_t peaks_bytes = 0;      // of all jobs: what they would need side by side without lending
  uint64_t most_held_bytes = 0;  // at once, by all together
  uint64_t most_jobs = 0;        // that were there at once
  uint64_t fit_without = 0;      // of those, how many have room with their whole peaks reserved
  uint64_t together_ns = 0;      // two or more jobs were inside their iterations
  uint64_t busy_ns = 0;          // one or more
  uint64_t lent_bytes = 0;
  std::vector<scheduler::AuditSample> series;  // what was held, thinned
  uint64_t violations = 0;                     // of the promises, by the audit
};

/// kInvalidArgument: no records, or no event log of one run.
Result<RunReport> ReportOf(const std::string& source,
                           const std::vector<scheduler::Record>& records);

/// For a terminal.
std::string ReportText(const RunReport& report);
/// One JSON object, amounts in bytes, times in nanoseconds.
std::string ReportJson(const RunReport& report);
/// A page in one file: no scripts, nothing from elsewhere.
std::string ReportHtml(const RunReport& report);

}  // namespace sluice::cli
