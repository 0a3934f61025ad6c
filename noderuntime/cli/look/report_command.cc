// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/report_command.h"

#include <cstdio>

#include "noderuntime/cli/daemon_commands.h"
#include "noderuntime/cli/look/run_report.h"
#include "noderuntime/cli/offline/files.h"
#include "noderuntime/eventlog/record_json.h"

namespace sluice::cli {

int RunReportCommand(const ReportOptions& options) {
  const auto records = eventlog::ReadLogFile(options.file);
  if (!records.ok()) return Complain(records.status().message(), 1);
  const Result<RunReport> report = ReportOf(options.file, *records);
  if (!report.ok()) return Complain(report.status().message(), 1);
  if (!options.html.empty()) {
    if (Status s = WriteWholeFile(options.html, ReportHtml(*report)); !s.ok()) {
      return Complain("--html: " + s.message(), 1);
    }
  }
  std::fputs(options.json ? ReportJson(*report).c_str() : ReportText(*report).c_str(), stdout);
  return 0;
}

}  // namespace sluice::cli
