// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdio>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "noderuntime/cli/check_log.h"
#include "noderuntime/cli/daemon_client.h"
#include "noderuntime/cli/demo_console.h"
#include "noderuntime/cli/doctor_command.h"
#include "noderuntime/cli/job_lookup.h"
#include "noderuntime/cli/launcher.h"
#include "noderuntime/cli/observed_run.h"
#include "noderuntime/cli/offline/run.h"
#include "noderuntime/cli/options.h"
#include "noderuntime/cli/status_table.h"

namespace sluice::cli {
namespace {

int Complain(const std::string& text, int code) {
  std::fprintf(stderr, "sluice: %s\n", text.c_str());
  return code;
}

Result<DaemonClient> Connect(const std::string& runtime_dir) {
  Result<DaemonClient> client = DaemonClient::Connect(DaemonSocket(runtime_dir));
  if (client.ok()) return client;
  const StatusCode code = client.status().code();
  if (code != StatusCode::kNotFound && code != StatusCode::kUnavailable) return client;
  return Status(code, "no daemon runs in " + runtime_dir +
                          "; 'sluice run' starts one, or name another folder with --runtime-dir");
}

int SwitchPolicy(const PolicyOptions& options) {
  Result<DaemonClient> client = Connect(options.runtime_dir);
  if (!client.ok()) return Complain(client.status().message(), 1);
  const Result<uint32_t> lanes = client->SetPolicy(options.policy, options.lanes);
  if (!lanes.ok()) return Complain(lanes.status().message(), 1);
  std::printf("policy %s, %u lanes\n", options.policy.c_str(), *lanes);
  return 0;
}

int SwitchBudget(const BudgetOptions& options) {
  Result<DaemonClient> client = Connect(options.runtime_dir);
  if (!client.ok()) return Complain(client.status().message(), 1);
  const auto budget = client->SetBudget(options.bytes);
  if (!budget.ok()) return Complain(budget.status().message(), 1);
  const std::string size = FormatBytes(budget->bytes);
  if (budget->in_force == budget->bytes) {
    std::printf("budget %s\n", size.c_str());
  } else {
    std::printf(
        "budget %s as soon as jobs inside their iterations have ended them; sluice status "
        "tells\n",
        size.c_str());
  }
  return 0;
}

int SwitchLimit(const LimitOptions& options) {
  Result<DaemonClient> client = Connect(options.runtime_dir);
  if (!client.ok()) return Complain(client.status().message(), 1);
  const Result<std::string> json = client->FetchStatus();
  if (!json.ok()) return Complain(json.status().message(), 1);
  const Result<uint32_t> job = FindJob(*json, options.job);
  if (!job.ok()) return Complain(job.status().message(), 1);
  const Result<uint64_t> limit = client->SetLimit(*job, options.bytes);
  if (!limit.ok()) return Complain(limit.status().message(), 1);
  std::printf("job %u, limit %s\n", *job, FormatBytes(*limit).c_str());
  return 0;
}

int SwitchDrain(const DrainOptions& options) {
  Result<DaemonClient> client = Connect(options.runtime_dir);
  if (!client.ok()) return Complain(client.status().message(), 1);
  const auto drained = client->Drain(options.on);
  if (!drained.ok()) return Complain(drained.status().message(), 1);
  std::printf("drain %s, %u jobs are there\n", drained->on ? "on" : "off", drained->jobs);
  return 0;
}

int ShowStatus(const StatusOptions& options) {
  Result<DaemonClient> client = Connect(options.runtime_dir);
  if (!client.ok()) return Complain(client.status().message(), 1);
  const Result<std::string> json = client->FetchStatus();
  if (!json.ok()) return Complain(json.status().message(), 1);
  const Result<std::string> text = options.json ? json : RenderStatus(*json);
  if (!text.ok()) return Complain(text.status().message(), 1);
  std::fputs(text->c_str(), stdout);
  if (options.json && !text->ends_with('\n')) std::fputc('\n', stdout);
  return 0;
}

int Print(const Output& output) {
  std::fputs(output.out.c_str(), stdout);
  std::fputs(output.err.c_str(), stderr);
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
  if (const auto* run = std::get_if<RunOptions>(&*parsed)) {
    return run->observe ? RunObserved(*run, *layout) : RunJob(*run, *layout);
  }
  return RunDemo(std::get<DemoOptions>(*parsed), *layout);
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) { return sluice::cli::Main({argv + 1, argv + argc}); }
