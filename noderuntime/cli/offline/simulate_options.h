// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "noderuntime/cli/offline/scenario_options.h"

namespace CLI {
class App;
}

namespace sluice::cli {

/// A memory trace at a batch size.
struct TracedJob {
  std::string file;
  uint64_t batch = 0;
};
/// "FILE:BATCH". The last colon counts: a file's name may have some.
Result<TracedJob> ParseTracedJob(const std::string& text);

/// sluice simulate FILE:BATCH...
struct SimulateOptions {
  std::vector<TracedJob> jobs;
  ScenarioOptions scenario;
  double stagger_ns = 0;  // each job begins so much after the one before it
  bool json = false;
};

/// The words of the command line on their way to SimulateOptions.
class SimulateFlags {
 public:
  explicit SimulateFlags(CLI::App& app);

  bool chosen() const;
  /// After the command line was read.
  Result<SimulateOptions> Options() const;

 private:
  CLI::App* app_;
  std::vector<std::string> jobs_;
  std::string stagger_;
  bool json_ = false;
  ScenarioFlags scenario_;
};

}  // namespace sluice::cli
