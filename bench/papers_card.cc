// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/papers_card.h"

#include <algorithm>
#include <cmath>

#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/offline/simulate.h"
#include "scheduler/policy/policies.h"
#include "scheduler/simulate/max_batch.h"
#include "scheduler/simulate/tune.h"
#include "scheduler/trace/parse.h"

namespace sluice::bench {

namespace simulate = scheduler::simulate;
using scheduler::Units;
using simulate::JobRun;
using simulate::Outcome;
using simulate::Workload;

namespace {

constexpr uint32_t kPagedIterations = 20;

std::vector<JobRun> RunsOf(const std::vector<Workload>& jobs) {
  std::vector<JobRun> runs;
  for (const Workload& job : jobs) runs.push_back({&job, 0});
  return runs;
}

}  // namespace

const std::vector<std::string>& ModelNames() {
  static const std::vector<std::string> names = {"resnet50",     "resnet152", "nasnetalarge",
                                                 "inception_v3", "bert-base", "tacotron2"};
  return names;
}

const std::vector<std::string>& TraceNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = ModelNames();
    all.insert(all.end(), {"resnet110", "gnmt", "rhn"});
    return all;
  }();
  return names;
}

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const scheduler::PolicyEntry& entry : scheduler::Policies()) {
    if (entry.name != "temporal") names.emplace_back(entry.name);
  }
  return names;
}

scheduler::GateOptions GatesEvery(double split_gib, uint64_t peak_bytes) {
  const double parts = std::round(static_cast<double>(peak_bytes) / (split_gib * kGibibyte));
  scheduler::GateOptions gates = simulate::WorkloadOptions().gates;
  gates.max_gates = 128;  // as printed: none is joined with its neighbour
  gates.groups_per_peak = static_cast<uint32_t>(std::max(1.0, parts));
  return gates;
}

Result<Traces> ReadTraces() {
  Traces traces;
  for (const std::string& name : TraceNames()) {
    const std::string file = SLUICE_BENCH_REPO_DATA "/traces/" + name + ".trace";
    const Result<std::string> text = cli::ReadWholeFile(file);
    if (!text.ok()) return text.status();
    auto trace = scheduler::trace::ParseTrace(*text);
    if (!trace.ok()) return trace.status().Annotate(file);
    traces.emplace(name, *std::move(trace));
  }
  return traces;
}

Result<Card> Card::Load(const std::string& name, const Traces& traces, SharingVariant variant) {
  const std::string file = SLUICE_BENCH_MACHINES "/" + name + ".machine";
  const Result<std::string> text = cli::ReadWholeFile(file);
  if (!text.ok()) return text.status();
  Result<Machine> machine = ParseMachine(*text, file);
  if (!machine.ok()) return machine.status();
  machine->sharing = Sharing::kMps;
  machine->sharing_variant = variant;
  return Card(*std::move(machine), traces);
}

uint64_t Card::PoolBytes(size_t jobs) const {
  return machine_.memory - std::min(machine_.memory, jobs * machine_.context_bytes);
}

Workload Card::Job(const std::string& model, uint64_t batch, simulate::Touched touched) const {
  simulate::WorkloadOptions options;
  options.unit_bytes = unit_bytes;
  options.gates = gates;
  options.touched = touched;
  return simulate::MakeWorkload(model, traces_->at(model), batch, machine_, options).value();
}

bool Card::Fits(const std::vector<std::string>& models,
                const std::vector<uint64_t>& batches) const {
  std::vector<Workload> jobs;
  for (size_t i = 0; i < models.size(); ++i) jobs.push_back(Job(models[i], batches[i]));
  return simulate::LeastPool(RunsOf(jobs)) * unit_bytes <= PoolBytes(models.size());
}

uint64_t Card::Alone(const std::string& model) const {
  // Beyond what any of the cards holds: the smallest iteration has a megabyte per sample.
  constexpr uint64_t kMost = uint64_t{1} << 17;
  return simulate::LargestBatch(kMost, [&](uint64_t batch) { return Fits({model}, {batch}); })
      .value_or(0);
}

std::vector<uint64_t> Card::Bound(const std::vector<std::string>& models) const {
  std::vector<uint64_t> alone;
  for (const std::string& model : models) alone.push_back(Alone(model));
  if (std::find(alone.begin(), alone.end(), 0u) != alone.end()) return {};
  const auto first = simulate::LargestBatch(alone.front(), [&](uint64_t batch) {
    return Fits(models, simulate::BatchesAt(alone, batch));
  });
  return first ? simulate::BatchesAt(alone, *first) : std::vector<uint64_t>();
}

Together Card::Run(const Jobs& jobs, const std::string& how, uint64_t pool_bytes) const {
  return Share(jobs, how, pool_bytes, simulate::PagingOptions::Of(machine_));
}

Together Card::Page(const Jobs& jobs, const std::string& how,
                    const simulate::PagingOptions& paging) const {
  return Share(jobs, how, 0, paging);
}

std::vector<Workload> Card::Workloads(const Jobs& jobs, simulate::Touched touched) const {
  std::vector<Workload> workloads;
  for (size_t i = 0; i < jobs.models.size(); ++i) {
    workloads.push_back(Job(jobs.models[i], jobs.batches[i], touched));
  }
  return workloads;
}

simulate::Options Card::OptionsFor(size_t jobs, uint64_t pool_bytes) const {
  simulate::Options options;
  options.unit_bytes = unit_bytes;
  options.pool_units =
      static_cast<Units>((pool_bytes == 0 ? PoolBytes(jobs) : pool_bytes) / unit_bytes);
  options.setting.claims = scheduler::Claims::kCurve;
  return options;
}

Result<Outcome> Card::Recorded(const Jobs& jobs, const std::string& how, uint64_t pool_bytes,
                               const std::vector<simulate::BudgetChange>& changes) const {
  const std::vector<Workload> workloads = Workloads(jobs, simulate::Touched::kNothing);
  const std::vector<JobRun> runs = RunsOf(workloads);
  simulate::Options options = OptionsFor(runs.size(), pool_bytes);
  if (how == "auto") {
    const auto tuned = simulate::Tune(runs, machine_, options);
    if (!tuned.ok()) return tuned.status();
    options.setting = tuned->setting;
  } else {
    options.setting.policy.policy = how;
  }
  if (!changes.empty()) {
    options.setting.budget = options.pool_units;
    options.pool_units = static_cast<Units>(PoolBytes(runs.size()) / unit_bytes);
    options.budget_changes = changes;
  }
  options.record = true;
  return simulate::Simulate(runs, machine_, options);
}

Together Card::Share(const Jobs& jobs, const std::string& how, uint64_t pool_bytes,
                     const simulate::PagingOptions& paging) const {
  const simulate::Touched touched = how == "paging"           ? simulate::Touched::kKept
                                    : how == "paging at best" ? simulate::Touched::kBlocks
                                                              : simulate::Touched::kNothing;
  const std::vector<Workload> workloads = Workloads(jobs, touched);
  const std::vector<JobRun> runs = RunsOf(workloads);
  simulate::Options options = OptionsFor(runs.size(), pool_bytes);
  Together together;
  if (how == "unlimited") {
    together.throughput = simulate::UnlimitedThroughput(runs, machine_, options);
    return together;
  }
  Result<Outcome> outcome = Status(StatusCode::kInternal, "not run");
  const bool by_turns = how == "auto by turns";
  if (by_turns) {
    options.host.units = options.pool_units;
    options.host.bytes_per_ns = static_cast<double>(machine_.copy_bytes_per_s) / 1e9;
  }
  if (how == "auto" || by_turns) {
    auto tuned = simulate::Tune(runs, machine_, options);
    if (tuned.ok()) together.shared_by = cli::Describe(tuned->setting, unit_bytes);
    outcome = tuned.ok() ? Result<Outcome>(std::move(tuned->outcome)) : tuned.status();
  } else {
    options.setting.policy.policy = how;
    if (how == "paging" || how == "paging at best") {
      options.warm_up = simulate::kPagingWarmUp;
      options.iterations = kPagedIterations;
      options.managed = false;
      options.paging = paging;
    }
    outcome = simulate::Simulate(runs, machine_, options);
  }
  if (!outcome.ok()) {
    together.error = outcome.status().message();
    return together;
  }
  together.throughput = outcome->Throughput();
  together.most_held_bytes =
      static_cast<double>(outcome->most_held) * static_cast<double>(unit_bytes);
  double iterations = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const simulate::JobOutcome& job = outcome->jobs[i];
    iterations += job.iterations;
    together.samples_per_s += static_cast<double>(jobs.batches[i]) / job.iteration_ns * 1e9;
    together.waited_part += job.waited_ns / outcome->elapsed_ns / static_cast<double>(runs.size());
  }
  together.moved_bytes = static_cast<double>(outcome->paging.moved_bytes()) / iterations;
  return together;
}

}  // namespace sluice::bench
