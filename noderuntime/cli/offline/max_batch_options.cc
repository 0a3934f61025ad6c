// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/max_batch_options.h"

#include <CLI/CLI.hpp>

#include "noderuntime/cli/validators.h"

namespace sluice::cli {

MaxBatchFlags::MaxBatchFlags(CLI::App& app)
    : app_(app.add_subcommand("max-batch",
                              "The largest batches at which these jobs fit on one GPU together")),
      scenario_(app_) {
  app_->add_option("FILE", options_.files, "A memory trace for each job")->required();
  app_->add_option("--keep", options_.keep_percent,
                   "And the largest at which they keep so many percent of the throughput that "
                   "unlimited memory would give")
      ->check(Integer(1, 100));
  app_->add_flag("--json", options_.json, "Results as JSON");
}

bool MaxBatchFlags::chosen() const { return app_->parsed(); }

Result<MaxBatchOptions> MaxBatchFlags::Options() const {
  MaxBatchOptions options = options_;
  Result<ScenarioOptions> scenario = scenario_.Options();
  if (!scenario.ok()) return scenario.status();
  options.scenario = *std::move(scenario);
  return options;
}

}  // namespace sluice::cli
