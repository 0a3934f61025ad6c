// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "noderuntime/cli/look/report_command.h"
#include "noderuntime/cli/look/top.h"

namespace CLI {
class App;
}

namespace sluice::cli {

using LookOptions = std::variant<TopOptions, ExplainOptions, ReportOptions>;

/// Their names, as in a list of what is allowed.
inline constexpr char kLookCommands[] = "top, explain, report";

/// Commands that look at jobs and change nothing: their part of the command line.
class LookCommands {
 public:
  /// `runtime_dir` is the command line's own text for --runtime-dir.
  LookCommands(CLI::App& app, std::string* runtime_dir, const std::string& dir_help);
  LookCommands(const LookCommands&) = delete;  // the command line writes into it
  LookCommands& operator=(const LookCommands&) = delete;

  /// After it was read: the one that was chosen; nothing when it was none of them. `runtime_dir`:
  /// absolute.
  std::optional<LookOptions> Chosen(const std::string& runtime_dir) const;

 private:
  CLI::App* top_app_;
  CLI::App* explain_app_;
  CLI::App* report_app_;
  TopOptions top_;
  ExplainOptions explain_;
  ReportOptions report_;
};

}  // namespace sluice::cli
