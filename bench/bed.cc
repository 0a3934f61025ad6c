// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/bed.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "noderuntime/cli/daemon_client.h"

namespace sluice::bench {
namespace {

// A launch costs what the simulated driver's own code costs, so that a hook of nanoseconds shows.
constexpr const char* kMachine = "launch_ns = 0\n";
// For contexts, beside the pool.
constexpr uint64_t kSpareBytes = 16u << 20;

}  // namespace

Result<std::unique_ptr<Bed>> Bed::Start(const BedOptions& options) {
  Result<cli::Layout> layout = cli::Layout::Find();
  if (!layout.ok()) return layout.status();
  Result<cli::WorkDir> work = cli::WorkDir::Create("");
  if (!work.ok()) return work.status();
  std::unique_ptr<Bed> bed(new Bed(std::move(*layout), std::move(*work)));
  const Status gpu = bed->StartGpu(options.pool_bytes + kSpareBytes);
  if (!gpu.ok()) return gpu;
  if (const Status daemon = bed->StartDaemon(options); !daemon.ok()) return daemon;
  return bed;
}

cli::Environment Bed::environment() const {
  cli::Environment environment = cli::Environment::Current();
  environment.Unset("LD_PRELOAD");
  return gpu_->Select(std::move(environment));
}

Result<Job> Bed::Register(const std::string& name, uint64_t limit_bytes) const {
  Result<cli::DaemonClient> launcher = cli::DaemonClient::Connect(cli::DaemonSocket(runtime_dir()));
  if (!launcher.ok()) return launcher.status();
  Result<cli::JobGrant> grant = launcher->Register({.limit_bytes = limit_bytes, .name = name});
  if (!grant.ok()) return grant.status();
  return Job{std::move(*launcher).Release(), std::move(grant->socket)};
}

Result<nlohmann::json> Bed::FetchStatus() const {
  Result<cli::DaemonClient> daemon = cli::DaemonClient::Connect(cli::DaemonSocket(runtime_dir()));
  if (!daemon.ok()) return daemon.status();
  const Result<std::string> text = daemon->FetchStatus();
  if (!text.ok()) return text.status();
  nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return Status(StatusCode::kInternal, "the daemon's state is not a JSON object");
}

// "GPU-01234567-89ab-...": the bytes of the device in order.
Result<std::array<uint8_t, 16>> Bed::GpuUuid() const {
  const Result<nlohmann::json> status = FetchStatus();
  if (!status.ok()) return status.status();
  std::string digits = status->value("gpu_uuid", "");
  std::erase(digits, '-');
  std::array<uint8_t, 16> uuid{};
  if (digits.size() != 3 + 2 * uuid.size()) {
    return Status(StatusCode::kInternal, "the daemon does not name its GPU");
  }
  for (size_t i = 0; i < uuid.size(); ++i) {
    uuid[i] = static_cast<uint8_t>(std::stoul(digits.substr(3 + 2 * i, 2), nullptr, 16));
  }
  return uuid;
}

Status Bed::StartGpu(uint64_t memory_bytes) {
  const std::string machine = work_.File("machine");
  std::ofstream(machine) << kMachine;
  Result<cli::SimulatedGpu> gpu =
      cli::SimulatedGpu::Up(layout_, work_.File("gpu"), memory_bytes, machine);
  if (!gpu.ok()) return gpu.status();
  gpu_.emplace(std::move(*gpu));
  return {};
}

Status Bed::StartDaemon(const BedOptions& options) {
  cli::DaemonOptions daemon;
  daemon.program = Program("sluice-noded");
  daemon.runtime_dir = runtime_dir();
  daemon.flags = {"--pool",       std::to_string(options.pool_bytes),
                  "--lease-unit", std::to_string(options.unit_bytes),
                  "--handle",     std::to_string(options.handle_bytes)};
  daemon.flags.insert(daemon.flags.end(), options.flags.begin(), options.flags.end());
  daemon.log_file = work_.File("noded.log");
  if (const Status made = cli::MakeRuntimeDir(runtime_dir()); !made.ok()) return made;
  Result<cli::DaemonProcess> started = cli::DaemonProcess::Start(daemon, environment());
  if (!started.ok()) return started.status();
  daemon_.emplace(std::move(*started));
  return {};
}

}  // namespace sluice::bench
