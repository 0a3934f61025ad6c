// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

namespace sluice::cli {

/// sluice report FILE
struct ReportOptions {
  std::string file;  // what sluice-noded --event-log wrote
  bool json = false;
  std::string html;  // write a page to this file; empty: none
};

/// Prints what a finished run was, from its event log. Returns the program's exit code.
int RunReportCommand(const ReportOptions& options);

}  // namespace sluice::cli
