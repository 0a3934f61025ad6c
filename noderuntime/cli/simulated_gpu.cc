// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/simulated_gpu.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "noderuntime/cli/child.h"

namespace sluice::cli {
namespace {

/// Runs simgpu-ctl; a failure carries what it said.
Result<std::string> Control(const Layout& layout, std::vector<std::string> arguments) {
  SpawnOptions spawn;
  spawn.argv = {layout.Program("simgpu-ctl")};
  spawn.argv.insert(spawn.argv.end(), arguments.begin(), arguments.end());
  spawn.environment = Environment::Current();
  Result<CommandOutput> output = RunCommand(std::move(spawn));
  if (!output.ok()) return output.status();
  if (!output->status.ok()) {
    return Status(StatusCode::kUnavailable,
                  "simgpu-ctl " + arguments.front() + ": " + output->err + output->out);
  }
  return std::move(output->out);
}

}  // namespace

Result<SimulatedGpu> SimulatedGpu::Up(const Layout& layout, const std::string& dir,
                                      uint64_t memory_bytes, const std::string& machine_file,
                                      unsigned gpus) {
  const auto up = Control(layout, {"up", dir, "--gpus", std::to_string(gpus), "--memory",
                                   std::to_string(memory_bytes), "--machine", machine_file});
  if (!up.ok()) return up.status();
  return SimulatedGpu(layout, dir);
}

SimulatedGpu::SimulatedGpu(SimulatedGpu&& other) noexcept
    : layout_(std::move(other.layout_)), dir_(std::exchange(other.dir_, {})) {}

SimulatedGpu::~SimulatedGpu() {
  // It may hold a mount, which must go before the folder can.
  if (!dir_.empty()) static_cast<void>(Control(layout_, {"down", dir_}));
}

Environment SimulatedGpu::Select(Environment environment) const {
  environment.Set("SLUICE_SIMGPU", dir_);
  environment.Prepend("LD_LIBRARY_PATH", layout_.simgpu);
  return environment;
}

Result<GpuStats> SimulatedGpu::Stats(unsigned gpu) const {
  const auto text = Control(layout_, {"stats", dir_, "--gpu", std::to_string(gpu), "--json"});
  if (!text.ok()) return text.status();
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  uint64_t busy_ns = 0;
  uint64_t idle_ns = 0;  // between the first operation and the last
  GpuStats stats;
  for (const auto& [key, into] : {std::pair{"busy_ns", &busy_ns}, std::pair{"idle_ns", &idle_ns},
                                  std::pair{"oracle_violations", &stats.oracle_violations},
                                  std::pair{"memory_used", &stats.memory_used}}) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number_unsigned()) {
      return Status(StatusCode::kInternal,
                    std::string("simgpu-ctl stats: no number '") + key + "'");
    }
    *into = json[key].get<uint64_t>();
  }
  stats.span_ns = busy_ns + idle_ns;
  return stats;
}

}  // namespace sluice::cli
