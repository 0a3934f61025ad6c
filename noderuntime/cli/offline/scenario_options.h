// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/machine.h"
#include "common/status.h"
#include "noderuntime/cli/offline/setting_options.h"
#include "scheduler/profile/gates.h"
#include "scheduler/simulate/simulate.h"

namespace CLI {
class App;
}

namespace sluice::cli {

/// The GPU, its pool and how it is shared: what the commands that simulate have in common.
struct ScenarioOptions {
  std::string gpu = "v100-32";     // a machine file, or the name of one that came with the program
  std::optional<Sharing> sharing;  // else the machine's
  std::optional<SharingVariant> sharing_variant;  // else the machine's
  std::optional<uint64_t> switch_ns;              // in time slices; else the machine's
  std::optional<uint64_t> pool_bytes;  // else the GPU's memory less a context for each job
  uint64_t unit_bytes = uint64_t{8} << 20;
  double gap_ns = 0;
  uint32_t max_gates = scheduler::GateOptions().max_gates;
  /// Not packed: jobs ask for and claim as much as on a node, where blocks are placed as they come.
  scheduler::Placing placing = scheduler::Placing::kPacked;
  /// "auto", "spatial", or a name of scheduler/policy.
  std::string policy = "auto";
  scheduler::simulate::Setting setting;  // but for its policy's name; with auto its claims alone
  bool finds_residents = false;          // `auto` may keep bases in host memory by turns
  std::optional<scheduler::Units> host_units;  // for such bases; else as many as the pool
  std::optional<double> most_credit_ns;
  uint32_t iterations = 6;
  bool record = false;  // Outcome::records
};

/// "5ms", "250us": a time as people write it. An error names `field`.
Result<double> Nanoseconds(const std::string& text, const char* field);

/// The words of the command line on their way to ScenarioOptions.
class ScenarioFlags {
 public:
  explicit ScenarioFlags(CLI::App* app);
  ScenarioFlags(const ScenarioFlags&) = delete;  // the command line writes into it
  ScenarioFlags& operator=(const ScenarioFlags&) = delete;

  /// After the command line was read.
  Result<ScenarioOptions> Options() const;

 private:
  CLI::App* app_;
  ScenarioOptions options_;
  SettingFlags setting_;
  std::string sharing_;
  std::string variant_;
  std::string switch_;
  std::string pool_;
  std::string unit_;
  std::string credit_;
  std::string gap_;
  std::string placing_;
};

}  // namespace sluice::cli
