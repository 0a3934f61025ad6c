// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdio>
#include <string>
#include <vector>

#include "common/flush_output.h"
#include "common/printable.h"
#include "noderuntime/cli/check_log.h"
#include "noderuntime/cli/cluster_command.h"
#include "noderuntime/cli/daemon_commands.h"
#include "noderuntime/cli/demo_console.h"
#include "noderuntime/cli/doctor_command.h"
#include "noderuntime/cli/launcher.h"
#include "noderuntime/cli/observed_run.h"
#include "noderuntime/cli/offline/run.h"
#include "noderuntime/cli/options.h"
#include "noderuntime/cli/page_command.h"

namespace sluice::cli {
namespace {

int Print(const Output& output) {
  std::fputs(output.out.c_str(), stdout);
  std::fputs(PrintableLines(output.err).c_str(), stderr);
  return output.code;
}

int Main(const std::vector<std::string>& arguments) {
  const Result<Invocation> parsed = ParseCommandLine(arguments, Environment::Current());
  if (!parsed.ok()) return Complain(parsed.status().message(), kExitUsage);
  if (const auto* print = std::get_if<PrintText>(&*parsed)) {
    std::fputs(print->text.c_str(), stdout);
    return 0;
  }
  if (const auto* status = std::get_if<StatusOptions>(&*parsed)) return ShowStatus(*status);
  if (const auto* policy = std::get_if<PolicyOptions>(&*parsed)) return SwitchPolicy(*policy);
  if (const auto* budget = std::get_if<BudgetOptions>(&*parsed)) return SwitchBudget(*budget);
  if (const auto* limit = std::get_if<LimitOptions>(&*parsed)) return SwitchLimit(*limit);
  if (const auto* drain = std::get_if<DrainOptions>(&*parsed)) return SwitchDrain(*drain);
  if (const auto* look = std::get_if<LookOptions>(&*parsed)) {
    if (const auto* top = std::get_if<TopOptions>(look)) return RunTop(*top);
    if (const auto* explain = std::get_if<ExplainOptions>(look)) return RunExplain(*explain);
    return RunReportCommand(std::get<ReportOptions>(*look));
  }
  if (const auto* check = std::get_if<CheckLogOptions>(&*parsed)) {
    Output output;
    output.code = CheckLog(check->file, output.out, output.err);
    return Print(output);
  }
  const Result<Layout> layout = Layout::Find();
  if (!layout.ok()) return Complain(layout.status().message(), 1);
  if (const auto* offline = std::get_if<OfflineOptions>(&*parsed)) {
    return Print(RunOffline(*offline, layout->simgpu));
  }
  if (const auto* doctor = std::get_if<DoctorOptions>(&*parsed)) {
    return RunDoctor(*doctor, *layout, Environment::Current());
  }
  if (const auto* page = std::get_if<PageOptions>(&*parsed)) return ShowPage(*page, *layout);
  if (const auto* run = std::get_if<RunOptions>(&*parsed)) {
    return run->observe ? RunObserved(*run, *layout) : RunJob(*run, *layout);
  }
  return RunDemo(std::get<DemoOptions>(*parsed), *layout);
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  // As kubectl calls its plugins.
  const std::string name = argc > 0 ? argv[0] : "";
  const bool plugin = name.substr(name.rfind('/') + 1) == "kubectl-sluice";
  const int code =
      plugin ? sluice::cli::RunClusterCommand(arguments, sluice::cli::Environment::Current())
             : sluice::cli::Main(arguments);
  // Whatever the answer was, nobody has it.
  const sluice::Status written = sluice::FlushOutput(stdout);
  return written.ok() ? code : sluice::cli::Complain(written.message(), sluice::cli::kExitUsage);
}
