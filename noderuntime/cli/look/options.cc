// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/options.h"

#include <CLI/CLI.hpp>

#include "noderuntime/cli/validators.h"

namespace sluice::cli {

LookCommands::LookCommands(CLI::App& app, std::string* runtime_dir, const std::string& dir_help)
    : top_app_(app.add_subcommand("top", "Watch memory move between jobs, in this terminal")),
      explain_app_(app.add_subcommand("explain", "Why a job waits, and who holds what meanwhile")),
      report_app_(app.add_subcommand("report", "What a finished run was, and what sharing saved")) {
  top_app_->add_flag("--once", top_.once, "Print one screen and end");
  top_app_->add_option("--interval", top_.interval_ms, "Milliseconds between two looks (500)")
      ->check(Integer(100, 60'000));
  top_app_->add_option("--runtime-dir", *runtime_dir, dir_help);
  explain_app_->add_option("JOB", explain_.job, "Its number, its name, or NAMESPACE/POD")
      ->required();
  explain_app_->add_option("--gpu", explain_.gpu, "Of a node with several GPUs, the one's number")
      ->check(Integer(0, 999));
  explain_app_->add_flag("--json", explain_.json, "As JSON");
  explain_app_->add_option("--runtime-dir", *runtime_dir, dir_help);
  report_app_->add_option("FILE", report_.file, "What sluice-noded --event-log wrote")->required();
  report_app_->add_flag("--json", report_.json, "As JSON");
  report_app_->add_option("--html", report_.html, "Write a page, too, to this file")
      ->check(FileToWrite());
}

std::optional<LookOptions> LookCommands::Chosen(const std::string& runtime_dir) const {
  if (*top_app_) {
    TopOptions top = top_;
    top.runtime_dir = runtime_dir;
    return top;
  }
  if (*explain_app_) {
    ExplainOptions explain = explain_;
    explain.runtime_dir = runtime_dir;
    return explain;
  }
  if (*report_app_) return report_;
  return std::nullopt;
}

}  // namespace sluice::cli
