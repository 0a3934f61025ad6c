// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/simulate_options.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "scheduler/trace/trace.h"

namespace sluice::cli {

Result<TracedJob> ParseTracedJob(const std::string& text) {
  const size_t colon = text.rfind(':');
  TracedJob job;
  if (colon != std::string::npos && colon > 0) {
    job.file = text.substr(0, colon);
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, job.batch);
    if (error == std::errc() && rest == end && job.batch >= 1 &&
        job.batch <= scheduler::trace::kMaxBatch) {
      return job;
    }
  }
  return Status(StatusCode::kInvalidArgument,
                "JOB: '" + text + "'; allowed: a memory trace and the samples of its batch, as " +
                    "resnet50.trace:64, from 1 to " + std::to_string(scheduler::trace::kMaxBatch));
}

SimulateFlags::SimulateFlags(CLI::App& app)
    : app_(app.add_subcommand("simulate",
                              "Would these jobs fit on one GPU, and how fast would they be?")),
      scenario_(app_) {
  app_->add_option("JOB", jobs_, "A memory trace and the samples of its batch: FILE:BATCH")
      ->required();
  app_->add_option("--stagger", stagger_, "Each job begins so much after the one before it (0ms)");
  app_->add_flag("--json", json_, "Results as JSON");
}

bool SimulateFlags::chosen() const { return app_->parsed(); }

Result<SimulateOptions> SimulateFlags::Options() const {
  SimulateOptions options;
  options.json = json_;
  for (const std::string& text : jobs_) {
    Result<TracedJob> job = ParseTracedJob(text);
    if (!job.ok()) return job.status();
    options.jobs.push_back(*std::move(job));
  }
  if (app_->count("--stagger") != 0) {
    const Result<double> ns = Nanoseconds(stagger_, "--stagger");
    if (!ns.ok()) return ns.status();
    options.stagger_ns = *ns;
  }
  Result<ScenarioOptions> scenario = scenario_.Options();
  if (!scenario.ok()) return scenario.status();
  options.scenario = *std::move(scenario);
  return options;
}

}  // namespace sluice::cli
