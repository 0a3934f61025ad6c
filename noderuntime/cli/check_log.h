// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "noderuntime/cli/memory_chart.h"
#include "scheduler/audit/audit.h"

namespace sluice::cli {

/// What `sluice check-log` prints about a log that could be read.
std::string DescribeAudit(const std::string& file, const scheduler::AuditReport& report);

/// Replays `file`. 0: every promise was kept; 1: not, or the log cannot be read. `out` and `err`
/// are the texts for the two streams.
int CheckLog(const std::string& file, std::string& out, std::string& err);

/// How a job is called in a picture, by the name it registered with.
struct JobLabel {
  std::string name;
  std::string label;
};

/// Everything for the picture, in bytes: what every job held, and when its gate 0 opened. The
/// labelled jobs, in this order: the daemon numbers jobs as they happen to register.
MemoryHistory HistoryOf(const std::vector<scheduler::Record>& records,
                        const scheduler::AuditReport& report, const std::vector<JobLabel>& labels);

}  // namespace sluice::cli
