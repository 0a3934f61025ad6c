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

/// sluice max-batch FILE...
struct MaxBatchOptions {
  std::vector<std::string> files;
  ScenarioOptions scenario;
  uint32_t keep_percent = 0;  // of the throughput that unlimited memory gives; 0: not asked for
  bool json = false;
};

/// The words of the command line on their way to MaxBatchOptions.
class MaxBatchFlags {
 public:
  explicit MaxBatchFlags(CLI::App& app);

  bool chosen() const;
  /// After the command line was read.
  Result<MaxBatchOptions> Options() const;

 private:
  CLI::App* app_;
  MaxBatchOptions options_;
  ScenarioFlags scenario_;
};

}  // namespace sluice::cli
