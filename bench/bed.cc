// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/bed.h"

#include <fstream>

#include "noderuntime/cli/child.h"

namespace sluice::bench {
namespace {

// A launch costs what the simulated driver's own code costs, so that a hook of nanoseconds shows.
constexpr const char* kMachine = "launch_ns = 0\n";

}  // namespace

Result<std::unique_ptr<Bed>> Bed::Start(const std::vector<std::string>& flags) {
  Result<cli::Layout> layout = cli::Layout::Find();
  if (!layout.ok()) return layout.status();
  Result<cli::WorkDir> work = cli::WorkDir::Create("");
  if (!work.ok()) return work.status();
  std::unique_ptr<Bed> bed(new Bed(std::move(*layout), std::move(*work)));
  if (const Status gpu = bed->StartGpu(); !gpu.ok()) return gpu;
  if (const Status daemon = bed->StartDaemon(flags); !daemon.ok()) return daemon;
  return bed;
}

Bed::~Bed() {
  daemon_.reset();
  // It may hold a mount, which must go before the folder can.
  if (gpu_is_up_) static_cast<void>(Control({"down", work_.File("gpu")}));
}

cli::Environment Bed::environment() const {
  cli::Environment environment = cli::Environment::Current();
  environment.Unset("LD_PRELOAD");
  environment.Set("SLUICE_SIMGPU", work_.File("gpu"));
  environment.Prepend("LD_LIBRARY_PATH", layout_.simgpu);
  return environment;
}

Status Bed::StartGpu() {
  const std::string machine = work_.File("machine");
  std::ofstream(machine) << kMachine;
  const Status up = Control({"up", work_.File("gpu"), "--memory", "64MiB", "--machine", machine});
  gpu_is_up_ = up.ok();
  return up;
}

Status Bed::StartDaemon(const std::vector<std::string>& flags) {
  cli::DaemonOptions options;
  options.program = Program("sluice-noded");
  options.runtime_dir = runtime_dir();
  options.flags = {"--pool", "48MiB", "--lease-unit", "256KiB", "--handle", "2MiB"};
  options.flags.insert(options.flags.end(), flags.begin(), flags.end());
  options.log_file = work_.File("noded.log");
  if (const Status made = cli::MakeRuntimeDir(runtime_dir()); !made.ok()) return made;
  Result<cli::DaemonProcess> daemon = cli::DaemonProcess::Start(options, environment());
  if (!daemon.ok()) return daemon.status();
  daemon_.emplace(std::move(*daemon));
  return {};
}

Status Bed::Control(std::vector<std::string> arguments) const {
  cli::SpawnOptions spawn;
  spawn.argv = {Program("simgpu-ctl")};
  spawn.argv.insert(spawn.argv.end(), arguments.begin(), arguments.end());
  spawn.environment = cli::Environment::Current();
  Result<cli::CommandOutput> output = cli::RunCommand(std::move(spawn));
  if (!output.ok()) return output.status();
  if (output->status.ok()) return {};
  return Status(StatusCode::kUnavailable, "simgpu-ctl " + arguments.front() + ": " + output->err);
}

}  // namespace sluice::bench
