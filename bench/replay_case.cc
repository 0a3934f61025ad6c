// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/replay_case.h"

#include <algorithm>
#include <utility>

#include "bench/median.h"
#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/offline/scenario.h"
#include "noderuntime/eventlog/record_json.h"
#include "scheduler/audit/replay.h"

namespace sluice::bench {
namespace {

using scheduler::Units;

struct Batch {
  const char* model;
  uint64_t samples;
};
constexpr Batch kBatches[] = {{"resnet50", 16}, {"inception_v3", 16}, {"bert-base", 4},
                              {"resnet152", 8}, {"nasnetalarge", 2},  {"tacotron2", 2}};

constexpr size_t kPairs[][2] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5},
                                {1, 1}, {1, 3}, {2, 3}, {2, 4}, {3, 4}, {1, 5}};

/// Real time on a machine of two cores: slow enough that waking up costs next to nothing of it.
constexpr const char* kMachine = R"(name = V100-like, slowed down
flops_per_s = 15.7e12
memory_bytes_per_s = 900000000000
cost.default = 5000 + 0
launch_ns = 6000
alloc_ns = 200
launch_queue = 1024
sharing = time-slice
quantum_ns = 2000000
context_bytes = 4MiB
)";

/// `sluice simulate` for jobs that place their blocks as the processes do.
Result<cli::Scenario> ScenarioOf(const Machine& machine, scheduler::Placing placing,
                                 Units pool_units, const scheduler::simulate::Setting& setting) {
  cli::ScenarioOptions options;
  options.unit_bytes = kReplayUnit;
  options.pool_bytes = pool_units * kReplayUnit;
  options.placing = placing;
  options.policy = setting.policy.policy;
  options.setting = setting;
  options.iterations = 20;
  options.record = true;
  return cli::Scenario::On(machine, options);
}

}  // namespace

Result<ReplayMachine> MakeReplayMachine(double time_scale) {
  ReplayMachine made;
  // So that a unit may be a handle.
  made.text = kMachine + ("granularity = " + std::to_string(kReplayUnit)) +
              "\ntime_scale = " + std::to_string(time_scale) + "\n";
  Result<Machine> machine = ParseMachine(made.text, "the machine of bench/replay");
  if (!machine.ok()) return machine.status();
  made.machine = *std::move(machine);
  return made;
}

Result<ReplayModel> MakeReplayModel(const cli::TracedJob& job, const Machine& machine,
                                    scheduler::Placing placing) {
  ReplayModel model;
  model.file = job.file;
  model.batch = job.batch;
  const Result<cli::NamedTrace> trace = cli::ReadTrace(model.file);
  if (!trace.ok()) return trace.status();
  model.name = trace->name;
  const Result<cli::Scenario> scenario = ScenarioOf(machine, placing, 1, {});
  if (!scenario.ok()) return scenario.status();
  Result<scheduler::simulate::Workload> workload = scenario->Make(*trace, model.batch);
  if (!workload.ok()) return workload.status().Annotate(model.file);
  model.workload = *std::move(workload);
  return model;
}

Result<std::vector<ReplayModel>> MakeReplayModels(const Machine& machine,
                                                  scheduler::Placing placing) {
  std::vector<ReplayModel> models;
  for (const Batch& batch : kBatches) {
    const std::string file =
        std::string(SLUICE_BENCH_REPO_DATA) + "/traces/" + batch.model + ".trace";
    Result<ReplayModel> model = MakeReplayModel({file, batch.samples}, machine, placing);
    if (!model.ok()) return model.status();
    models.push_back(*std::move(model));
  }
  return models;
}

ReplayPair MakeReplayPair(const ReplayModel& first, const ReplayModel& second) {
  ReplayPair pair;
  pair.jobs = {&first, &second};
  const scheduler::simulate::Workload& a = first.workload;
  const scheduler::simulate::Workload& b = second.workload;
  pair.least_pool = a.base_units + b.base_units +
                    std::max(a.plan.peak_units - a.base_units, b.plan.peak_units - b.base_units);
  pair.both_peaks = a.plan.peak_units + b.plan.peak_units;
  return pair;
}

std::vector<ReplayPair> MakeReplayPairs(const std::vector<ReplayModel>& models) {
  std::vector<ReplayPair> pairs;
  for (const auto& [first, second] : kPairs) {
    pairs.push_back(MakeReplayPair(models[first], models[second]));
  }
  return pairs;
}

Result<Replayed> SimulatePair(const ReplayPair& pair, const Machine& machine,
                              const ReplaySetting& setting) {
  scheduler::simulate::Setting told;
  told.policy.policy = setting.policy;
  told.claims = setting.claims;
  // As on a node. Where jobs take turns they do so anyway, and no flag says it.
  if (!scheduler::TakesTurns(told.policy)) {
    told.drain = scheduler::simulate::Drain::kWhenOthersAreThere;
  }
  const Result<cli::Scenario> scenario =
      ScenarioOf(machine, setting.placing, pair.pool_units, told);
  if (!scenario.ok()) return scenario.status();
  const Result<cli::Scenario::Answer> answer =
      scenario->Share({pair.jobs[0]->workload, pair.jobs[1]->workload});
  if (!answer.ok()) return answer.status();
  const scheduler::simulate::Outcome& outcome = answer->outcome;
  constexpr size_t kWarmUp = scheduler::simulate::Options().warm_up;
  Replayed result;
  uint64_t from = 0;
  for (size_t i = 0; i < 2; ++i) {
    const scheduler::simulate::JobOutcome& job = outcome.jobs[i];
    result.jobs[i].iterations = job.iterations;
    result.jobs[i].mean_ms = job.iteration_ns / 1e6;
    std::vector<double> lengths;
    for (size_t k = kWarmUp + 1; k < job.ends_ns.size(); ++k) {
      lengths.push_back((job.ends_ns[k] - job.ends_ns[k - 1]) / 1e6);
    }
    result.jobs[i].median_ms = Median(std::move(lengths));
    from = std::max(from, static_cast<uint64_t>(job.ends_ns[kWarmUp]));
  }
  const Status read = MeasureHeld(outcome.records, from, UINT64_MAX, &result);
  if (!read.ok()) return read;
  Replayed whole;
  if (Status all = MeasureHeld(outcome.records, 0, UINT64_MAX, &whole); !all.ok()) return all;
  for (size_t i = 0; i < 2; ++i) {
    result.jobs[i].most_held = outcome.jobs[i].most_held;
    if (whole.jobs[i].most_held == outcome.jobs[i].most_held) continue;
    return Status(StatusCode::kInternal, "the model's event log says something else than it does");
  }
  if (setting.logs.empty()) return result;
  std::string log;
  for (const scheduler::Record& record : outcome.records) log += eventlog::ToJson(record) + "\n";
  if (Status kept = cli::WriteWholeFile(setting.logs + ".model.jsonl", log); !kept.ok())
    return kept;
  return result;
}

Status MeasureHeld(const std::vector<scheduler::Record>& records, uint64_t from, uint64_t to,
                   Replayed* result) {
  using scheduler::audit::Cell;
  if (records.empty() || records.front().event != scheduler::EventKind::kPool) {
    return Status(StatusCode::kInvalidArgument, "the event log does not begin with its pool");
  }
  scheduler::audit::Replay replay(records.front().units);
  for (size_t k = 1; k < records.size(); ++k) {
    replay.Apply(records[k]);
    if (records[k].t_ns < from || records[k].t_ns > to) continue;
    Units both = 0;
    for (size_t i = 0; i < 2; ++i) {
      const auto id = static_cast<scheduler::JobId>(i + 1);
      const auto known = replay.jobs().find(id);
      if (known == replay.jobs().end()) continue;
      ReplayedJob& job = result->jobs[i];
      const Units granted = replay.Count(id, Cell::kLeased);
      const Units used = granted + replay.Count(id, Cell::kUnfenced);
      job.most_granted = std::max(job.most_granted, granted);
      job.most_used = std::max(job.most_used, used);
      job.most_held = std::max(job.most_held, known->second.held);
      both += known->second.held;
    }
    result->most_held = std::max(result->most_held, both);
  }
  return {};
}

}  // namespace sluice::bench
