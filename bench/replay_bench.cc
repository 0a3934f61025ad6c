// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/replay_case.h"
#include "bench/replay_report.h"
#include "noderuntime/cli/offline/files.h"
#include "scheduler/policy/policies.h"

namespace sluice::bench {
namespace {

/// In the smallest pool of four in which the processes do not run out of memory: half and three
/// quarters of the way from taking turns to both peaks, both peaks, and half as much again.
Result<ReplayRow> MeasurePair(ReplayPair pair, const ReplayMachine& machine,
                              const ReplaySetting& setting, double seconds) {
  ReplayRow row;
  row.pair = pair.name();
  row.policy = setting.policy;
  for (const scheduler::Units quarters : {2u, 3u, 4u, 6u}) {
    pair.pool_units = pair.least_pool + (pair.both_peaks - pair.least_pool) * quarters / 4;
    row.pool_units = pair.pool_units;
    const Result<Replayed> model = SimulatePair(pair, machine.machine, setting);
    if (!model.ok()) return model.status().Annotate(row.pair);
    row.model = *model;
    const Result<Replayed> live = RunPair(pair, machine, setting, row.model, seconds);
    if (live.ok()) {
      row.live = *live;
      row.error.clear();
      return row;
    }
    row.error = live.status().message();
    if (live.status().code() != StatusCode::kResourceExhausted) break;
    row.refused.push_back(pair.pool_units);
  }
  return row;
}

Result<std::vector<ReplayModel>> ModelsOf(const std::vector<std::string>& jobs,
                                          const Machine& machine, scheduler::Placing placing) {
  std::vector<ReplayModel> models;
  for (const std::string& text : jobs) {
    const Result<cli::TracedJob> job = cli::ParseTracedJob(text);
    if (!job.ok()) return job.status();
    Result<ReplayModel> model = MakeReplayModel(*job, machine, placing);
    if (!model.ok()) return model.status();
    models.push_back(*std::move(model));
  }
  return models;
}

int Main(int argc, char** argv) {
  CLI::App app("How good the model of scheduler/simulate is: pairs of jobs in it and as processes");
  std::vector<std::string> policies;
  for (const scheduler::PolicyEntry& policy : scheduler::Policies()) {
    policies.emplace_back(policy.name);
  }
  std::string claims = "steps";
  size_t first = 1;
  size_t last = 12;
  double seconds = 1.2;
  double time_scale = 3;
  std::string placing_name = "pieces";
  std::vector<std::string> jobs;
  std::string json;
  std::string logs;
  CLI::Option* const own =
      app.add_option(
             "JOB", jobs,
             "Two memory traces, each with the samples of its batch (FILE:BATCH), instead of "
             "the twelve pairs")
          ->expected(2);
  app.add_option("--policy", policies, "Which of the registered ones")
      ->check(CLI::IsMember(policies));
  app.add_option("--claims", claims, "What others may count on: contract, steps or curve (steps)")
      ->check(CLI::IsMember(scheduler::ClaimsNames()));
  app.add_option("--first", first, "The first of the pairs")
      ->excludes(own)
      ->check(CLI::Range(1, 12));
  app.add_option("--last", last, "The last of the pairs")->excludes(own)->check(CLI::Range(1, 12));
  app.add_option("--seconds", seconds, "GPU time in which both run, in simulated seconds")
      ->check(CLI::Range(0.2, 60.0));
  app.add_option("--time-scale", time_scale, "Real seconds per simulated second")
      ->check(CLI::Range(0.1, 100.0));
  app.add_option(
         "--placing", placing_name,
         "How blocks lie: pieces (a unit is a handle, as on a node by default) or runs (each a "
         "run of the pool) (pieces)")
      ->check(CLI::IsMember({"pieces", "runs"}));
  app.add_option("--json", json, "Keep the figures in this file");
  app.add_option("--logs", logs, "Keep the event logs of both sides in this folder")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  const auto complain = [](const Status& status) {
    std::fprintf(stderr, "sluice_replay_bench: %s\n", status.message().c_str());
    return 2;
  };
  const scheduler::Placing placing = *scheduler::FindPlacing(placing_name);
  const Result<ReplayMachine> machine = MakeReplayMachine(time_scale);
  if (!machine.ok()) return complain(machine.status());
  const Result<std::vector<ReplayModel>> models = jobs.empty()
                                                      ? MakeReplayModels(machine->machine, placing)
                                                      : ModelsOf(jobs, machine->machine, placing);
  if (!models.ok()) return complain(models.status());
  const std::vector<ReplayPair> pairs =
      jobs.empty() ? MakeReplayPairs(*models)
                   : std::vector{MakeReplayPair(models->front(), models->back())};
  std::vector<ReplayRow> rows;
  std::fputs(ReplayHead().c_str(), stdout);
  for (const std::string& policy : policies) {
    for (size_t i = first - 1; i < std::min(last, pairs.size()); ++i) {
      ReplaySetting setting{policy, *scheduler::FindClaims(claims), placing, ""};
      if (!logs.empty()) setting.logs = logs + "/" + policy + "-" + std::to_string(i + 1);
      const Result<ReplayRow> row = MeasurePair(pairs[i], *machine, setting, seconds);
      if (!row.ok()) return complain(row.status());
      std::fputs(ReplayLines(*row).c_str(), stdout);
      std::fflush(stdout);
      rows.push_back(*row);
    }
  }
  const ReplayVerdict verdict = Judge(rows);
  std::fputs(verdict.text.c_str(), stdout);
  if (!json.empty()) {
    const Status status =
        cli::WriteWholeFile(json, ReplayJson(rows, *machine, claims, placing).dump(2) + "\n");
    if (!status.ok()) return complain(status);
  }
  return verdict.met ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
