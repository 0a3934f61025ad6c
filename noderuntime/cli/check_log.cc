// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/check_log.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <map>

#include "common/bytes.h"
#include "noderuntime/eventlog/record_json.h"

namespace sluice::cli {
namespace {

using scheduler::AuditReport;
using scheduler::JobId;

constexpr size_t kShownViolations = 10;

std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string Format(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string Bytes(const AuditReport& report, uint64_t units) {
  return FormatBytes(units * report.unit_bytes);
}

}  // namespace

std::string DescribeAudit(const std::string& file, const AuditReport& report) {
  std::string text = Format("%s: %zu records, pool %s in units of %s, policy %s\n", file.c_str(),
                            report.records, Bytes(report, report.pool_units).c_str(),
                            FormatBytes(report.unit_bytes).c_str(), report.policy.c_str());
  for (const auto& [id, job] : report.jobs) {
    text += Format(
        "  job %u '%s': peak %s of limit %s, %llu iterations, lent %s, held %.2f of its peak\n", id,
        job.name.c_str(), Bytes(report, job.peak_units).c_str(),
        Bytes(report, job.limit_units).c_str(), static_cast<unsigned long long>(job.iterations),
        Bytes(report, job.lent_units).c_str(), job.mean_over_peak);
  }
  text += Format("  lent within iterations: %s\n",
                 FormatBytes(report.lent_bytes_within_iterations).c_str());
  text += Format("  moments over the budget: %llu, over a claim or limit: %llu\n",
                 static_cast<unsigned long long>(report.over_budget_moments),
                 static_cast<unsigned long long>(report.over_limit_moments));
  if (report.broken_promises != 0) {
    text += Format("  promises broken by a job's change of mind: %llu\n",
                   static_cast<unsigned long long>(report.broken_promises));
  }
  if (report.overbase_troughs != 0) {
    text += Format("  troughs at which a job kept more than its request: %llu\n",
                   static_cast<unsigned long long>(report.overbase_troughs));
  }
  if (report.unchecked_orders != 0) {
    text += Format("  not checked for a safe order (too many jobs at once): %llu\n",
                   static_cast<unsigned long long>(report.unchecked_orders));
  }
  for (size_t i = 0; i < std::min(report.violations.size(), kShownViolations); ++i) {
    const scheduler::AuditViolation& violation = report.violations[i];
    text += Format("  line %zu: %s: ", violation.record + 1, violation.rule.c_str()) +
            violation.text + "\n";
  }
  if (report.violations.size() > kShownViolations) {
    text += Format("  and %zu more\n", report.violations.size() - kShownViolations);
  }
  return text + (report.ok() ? "ok: every promise was kept\n"
                             : Format("FAILED: %zu violations\n", report.violations.size()));
}

int CheckLog(const std::string& file, std::string& out, std::string& err) {
  const auto records = eventlog::ReadLogFile(file);
  if (!records.ok()) {
    err = "sluice: " + records.status().message() + "\n";
    return 1;
  }
  if (records->empty()) {
    err = "sluice: " + file + ": no records; an event log starts with the event 'pool'\n";
    return 1;
  }
  const AuditReport report = scheduler::Audit(*records);
  out = DescribeAudit(file, report);
  return report.ok() ? 0 : 1;
}

MemoryHistory HistoryOf(const std::vector<scheduler::Record>& records, const AuditReport& report,
                        const std::vector<JobLabel>& labels) {
  MemoryHistory history;
  history.pool_bytes = report.pool_units * report.unit_bytes;
  std::map<JobId, uint32_t> index;
  for (const JobLabel& label : labels) {
    for (const auto& [id, job] : report.jobs) {
      if (job.name == label.name) index[id] = static_cast<uint32_t>(history.labels.size());
    }
    history.labels.push_back(label.label);
  }
  std::map<JobId, scheduler::Units> last;
  for (const scheduler::AuditSample& sample : report.series) {
    for (const auto& [id, row] : index) {
      const auto found = sample.held.find(id);
      const scheduler::Units held = found == sample.held.end() ? 0 : found->second;
      if (held == std::exchange(last[id], held)) continue;
      history.steps.push_back({sample.t_ns, row, held * report.unit_bytes});
    }
  }
  for (const scheduler::Record& record : records) {
    if (record.event != scheduler::EventKind::kGate || !index.contains(record.job)) continue;
    history.marks.push_back({record.t_ns, index[record.job], 0});
  }
  return history;
}

}  // namespace sluice::cli
