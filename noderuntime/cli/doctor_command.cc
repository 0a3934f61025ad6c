// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/doctor_command.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "noderuntime/cli/child.h"
#include "noderuntime/cli/daemon_client.h"
#include "noderuntime/doctor/checks.h"
#include "noderuntime/doctor/probe.h"
#include "noderuntime/gpu/probe.h"

namespace sluice::cli {
namespace {

constexpr char kMpsFolder[] = "/tmp/nvidia-mps";
constexpr char kPluginFolder[] = "/var/lib/kubelet/device-plugins";
constexpr char kSmallProgram[] = "/bin/true";

/// Whether a program runs with the library in it and without a word.
std::string ProbeLibrary(const std::string& library, Environment environment) {
  if (::access(library.c_str(), R_OK) != 0) return std::strerror(errno);
  if (library.find_first_of(": ") != std::string::npos) {
    return "its path holds a space or a colon, which LD_PRELOAD cannot express";
  }
  SpawnOptions options;
  options.argv = {kSmallProgram};
  environment.Unset("SLUICE_SOCKET");
  environment.Prepend("LD_PRELOAD", library);
  options.environment = std::move(environment);
  const Result<CommandOutput> ran = RunCommand(std::move(options));
  if (!ran.ok()) return ran.status().message();
  if (!ran->err.empty()) return ran->err.substr(0, ran->err.find('\n'));
  return ran->status.ok() ? ""
                          : std::string(kSmallProgram) + " ends with " + ran->status.Describe();
}

void ProbeDaemon(const std::string& runtime_dir, doctor::Facts* facts) {
  facts->runtime_dir = runtime_dir;
  if (Status made = MakeRuntimeDir(runtime_dir); !made.ok()) {
    facts->runtime_dir_problem = made.message();
    return;
  }
  Result<DaemonClient> client = DaemonClient::Connect(DaemonSocket(runtime_dir));
  if (client.status().code() == StatusCode::kPermissionDenied) {
    facts->runtime_dir_problem = client.status().message();
    return;
  }
  const auto silent = [facts](const Status& status) {
    facts->daemon = doctor::Facts::Daemon::kSilent;
    facts->daemon_problem = status.message();
  };
  if (!client.ok()) {
    // Its queue is full of those that it does not answer.
    if (client.status().code() == StatusCode::kInternal) return silent(client.status());
    // Only looked for: a keeper serves one daemon, and that is not us.
    const bool keeper = std::filesystem::exists(runtime_dir + "/keeper.sock");
    facts->daemon = keeper ? doctor::Facts::Daemon::kDied : doctor::Facts::Daemon::kNone;
    return;
  }
  const Result<std::string> text = client->FetchStatus();
  if (!text.ok()) return silent(text.status());
  facts->daemon = doctor::Facts::Daemon::kRuns;
  const auto status = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object() || !status.contains("jobs")) return;
  const auto keeper = status.find("keeper");
  if (keeper != status.end() && keeper->is_object() &&
      keeper->value("pid", nlohmann::json(0)).is_null()) {
    facts->keeper_missing_s = keeper->value("missing_ms", uint64_t{0}) / 1000;
  }
  for (const auto& job : status["jobs"]) {
    if (job.contains("pid") && job["pid"].is_number_integer()) {
      facts->own_processes.push_back(job["pid"].get<pid_t>());
    }
  }
}

}  // namespace

int RunDoctor(const DoctorOptions& options, const Layout& layout, const Environment& environment) {
  doctor::Facts facts;
  gpu::ProbeDriver(&facts);
  doctor::ProbeMachine(environment.Get("CUDA_MPS_PIPE_DIRECTORY").value_or(kMpsFolder),
                       kPluginFolder, &facts);
  facts.library = layout.library;
  facts.library_problem = ProbeLibrary(layout.library, environment);
  facts.keeper_program = ::access(layout.Program("sluice-keeper").c_str(), X_OK) == 0;
  ProbeDaemon(options.runtime_dir, &facts);
  const std::vector<doctor::Finding> findings = doctor::Judge(facts);
  std::fputs((options.json ? doctor::RenderJson(findings) : doctor::RenderText(findings)).c_str(),
             stdout);
  return doctor::Healthy(findings) ? 0 : 1;
}

}  // namespace sluice::cli
