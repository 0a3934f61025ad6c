// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/scenario.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/bytes.h"
#include "common/machine_file.h"
#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/offline/format.h"
#include "scheduler/policy/policies.h"
#include "scheduler/simulate/tune.h"
#include "scheduler/trace/parse.h"

namespace sluice::cli {
namespace {

using scheduler::Placing;
using scheduler::Units;
using scheduler::simulate::JobRun;
using scheduler::simulate::Outcome;
using scheduler::simulate::Touched;
using scheduler::simulate::Workload;

std::vector<JobRun> RunsOf(const std::vector<Workload>& jobs, double stagger_ns = 0) {
  std::vector<JobRun> runs;
  runs.reserve(jobs.size());
  for (const Workload& job : jobs) {
    runs.push_back({&job, static_cast<double>(runs.size()) * stagger_ns});
  }
  return runs;
}

double AloneNs(const Workload& job) { return job.alone_ns + job.gap_ns; }

/// What a way with slices of residence is compared with has none to be measured over.
scheduler::simulate::Options WhereAllStay(scheduler::simulate::Options options) {
  options.setting.policy.residents = 0;
  return options;
}

}  // namespace

Result<NamedTrace> ReadTrace(const std::string& file) {
  const Result<std::string> text = ReadWholeFile(file);
  if (!text.ok()) return text.status();
  Result<scheduler::trace::Trace> trace = scheduler::trace::ParseTrace(*text);
  if (!trace.ok()) return trace.status().Annotate(file);
  return NamedTrace{std::filesystem::path(file).stem().string(), *std::move(trace)};
}

Result<Scenario> Scenario::Load(const ScenarioOptions& options, const std::string& shipped) {
  Result<Machine> machine = ReadNamedMachine(options.gpu, shipped);
  if (!machine.ok()) return machine.status().Annotate("--gpu");
  return On(*std::move(machine), options);
}

Result<Scenario> Scenario::On(Machine machine, const ScenarioOptions& options) {
  Scenario scenario;
  scenario.asked_ = options;
  scenario.machine_ = std::move(machine);
  if (options.sharing) scenario.machine_.sharing = *options.sharing;
  if (options.sharing_variant) scenario.machine_.sharing_variant = *options.sharing_variant;
  if (options.switch_ns) scenario.machine_.switch_ns = *options.switch_ns;
  if (!options.pool_bytes && scenario.machine_.memory == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "--pool: needed, for " + options.gpu + " does not say how much memory it has");
  }
  return scenario;
}

uint64_t Scenario::PoolBytes(size_t jobs) const {
  if (asked_.pool_bytes) return *asked_.pool_bytes;
  return machine_.memory - std::min(machine_.memory, jobs * machine_.context_bytes);
}

uint64_t Scenario::UsableBytes(size_t jobs) const {
  const uint64_t pool = PoolBytes(jobs);
  const Units budget = asked_.setting.budget;
  return budget == 0 ? pool : std::min(pool, budget * asked_.unit_bytes);
}

Units Scenario::WholeUnits(uint64_t bytes) const {
  return static_cast<Units>(std::min<uint64_t>(bytes / asked_.unit_bytes, UINT32_MAX));
}

std::string Scenario::HowPlaced() const {
  if (asked_.placing == Placing::kPacked) return "";
  return " and --placing " + std::string(scheduler::PlacingName(asked_.placing));
}

Result<Workload> Scenario::Make(const NamedTrace& trace, uint64_t batch, Touched touched) const {
  scheduler::simulate::WorkloadOptions options;
  options.unit_bytes = asked_.unit_bytes;
  options.gates.max_gates = asked_.max_gates;
  options.gates.placing = asked_.placing;
  if (asked_.placing != Placing::kPacked) {
    options.granule_bytes = scheduler::simulate::kClientGranuleBytes;
  }
  options.gap_ns = asked_.gap_ns;
  options.touched = touched;
  Result<Workload> workload =
      scheduler::simulate::MakeWorkload(trace.name, trace.trace, batch, machine_, options);
  return workload.ok() ? std::move(workload) : workload.status().Annotate(trace.name);
}

Result<std::vector<Workload>> Scenario::Make(const std::vector<NamedTrace>& traces,
                                             const std::vector<uint64_t>& batches) const {
  const auto make = [&](Touched touched) -> Result<std::vector<Workload>> {
    std::vector<Workload> jobs;
    for (size_t i = 0; i < traces.size(); ++i) {
      Result<Workload> job = Make(traces[i], batches[i], touched);
      if (!job.ok()) return job.status();
      jobs.push_back(*std::move(job));
    }
    return jobs;
  };
  Result<std::vector<Workload>> jobs = make(Touched::kNothing);
  return jobs.ok() && Pages(*jobs) ? make(Touched::kKept) : jobs;
}

scheduler::simulate::Options Scenario::Options(size_t jobs) const {
  scheduler::simulate::Options options;
  options.unit_bytes = asked_.unit_bytes;
  options.pool_units = WholeUnits(PoolBytes(jobs));
  options.setting = asked_.setting;
  options.setting.policy.policy = asked_.policy;
  options.most_credit_ns = asked_.most_credit_ns;
  options.iterations = asked_.iterations;
  options.claim_margin = asked_.placing != Placing::kPacked;
  options.record = asked_.record;
  if (asked_.finds_residents || asked_.setting.policy.residents != 0) {
    options.host.units = asked_.host_units.value_or(options.pool_units);
    options.host.bytes_per_ns = static_cast<double>(machine_.copy_bytes_per_s) / 1e9;
  }
  return options;
}

Status Scenario::CheckPool(size_t jobs) const {
  const uint64_t pool = PoolBytes(jobs);
  const uint64_t unit = asked_.unit_bytes;
  if (pool < unit && PoolBytes(1) >= unit) {
    return Status(StatusCode::kResourceExhausted,
                  "the pool has " + FormatBytes(pool) + ": " + std::to_string(jobs) +
                      " contexts of " + FormatBytes(machine_.context_bytes) +
                      " leave no more of the GPU; allowed: fewer jobs, or --pool");
  }
  const auto beyond = [&](const char* flag, uint64_t bytes) {
    return Status(StatusCode::kInvalidArgument,
                  std::string(flag) + ": " + FormatBytes(bytes) + " is more than the pool of " +
                      FormatBytes(pool) + "; allowed: at most that, or with a larger --pool");
  };
  if (pool < unit) return beyond("--unit", unit);
  if (asked_.setting.budget > pool / unit) return beyond("--budget", asked_.setting.budget * unit);
  const uint64_t soft = asked_.setting.policy.soft_budget;
  return soft > pool / unit ? beyond("--soft-budget", soft * unit) : Status();
}

/// A slice for each job is simulated. Nobody is to wait for that to find out that it was too much.
Status Scenario::CheckSlices(size_t jobs) const {
  const scheduler::simulate::Options options = Options(jobs);
  const scheduler::Config& config = options.setting.policy;
  const double most_ns = options.most_ns / static_cast<double>(jobs);
  if (config.residents == 0 || config.residents >= jobs) return Status();
  if (static_cast<double>(config.slice_ns) < most_ns) return Status();
  return Status(StatusCode::kInvalidArgument,
                Format("--slice: %.1f s for each of %zu jobs is longer than the %.0f s that are "
                       "simulated; allowed: below %.1f s",
                       static_cast<double>(config.slice_ns) / 1e9, jobs, options.most_ns / 1e9,
                       most_ns / 1e9));
}

bool Scenario::Fits(const std::vector<Workload>& jobs) const {
  uint64_t units = 0;
  for (const Workload& job : jobs) units += job.plan.peak_units;
  if (asked_.policy != "spatial") units = scheduler::simulate::LeastPool(RunsOf(jobs));
  return units <= WholeUnits(UsableBytes(jobs.size()));
}

bool Scenario::Pages(const std::vector<Workload>& jobs) const {
  return asked_.policy == scheduler::kSpatialPolicy && !Fits(jobs);
}

Result<Scenario::Answer> Scenario::Share(std::vector<Workload> jobs, double stagger_ns) const {
  const bool tight = asked_.placing != Placing::kPacked &&
                     WithinPool(&jobs, WholeUnits(UsableBytes(jobs.size())), asked_.unit_bytes);
  Result<Answer> answer = Play(jobs, stagger_ns);
  if (answer.ok()) answer->tight = tight;
  if (answer.ok() || answer.status().code() != StatusCode::kResourceExhausted) return answer;
  const bool spatial = asked_.policy == scheduler::kSpatialPolicy;
  if (!CheckPool(jobs.size()).ok() || !(spatial || Fits(jobs))) return answer;
  // There is memory for them, so it was simulated time that they ran out of.
  const Workload& longest = *std::max_element(
      jobs.begin(), jobs.end(),
      [](const Workload& a, const Workload& b) { return AloneNs(a) < AloneNs(b); });
  const scheduler::simulate::Options options = Options(jobs.size());
  return Status(StatusCode::kInvalidArgument,
                Format("the run is longer than the %.0f s that are simulated: an iteration of %s "
                       "takes %.1f s alone, and of each job there are %u; allowed: smaller batches "
                       "(a smaller --pool), fewer --iterations, less --gap or --stagger",
                       options.most_ns / 1e9, longest.name.c_str(), AloneNs(longest) / 1e9,
                       options.warm_up + options.iterations));
}

Result<Scenario::Answer> Scenario::Play(const std::vector<Workload>& jobs,
                                        double stagger_ns) const {
  if (Status status = CheckPool(jobs.size()); !status.ok()) return status;
  if (Status status = CheckSlices(jobs.size()); !status.ok()) return status;
  Answer answer;
  const std::vector<JobRun> runs = RunsOf(jobs, stagger_ns);
  scheduler::simulate::Options options = Options(jobs.size());
  answer.unlimited = UnlimitedThroughput(runs, machine_, WhereAllStay(options));
  if (asked_.policy == scheduler::kAutoPolicy) {
    scheduler::simulate::TuneOptions tuning;
    tuning.claims = asked_.setting.claims;
    Result<scheduler::simulate::Tuned> tuned = Tune(runs, machine_, options, tuning);
    if (!tuned.ok()) return tuned.status();
    answer.setting = tuned->setting;
    answer.temporal = tuned->temporal;
    answer.outcome = std::move(tuned->outcome);
    return answer;
  }
  answer.setting = options.setting;
  if (asked_.policy == scheduler::kSpatialPolicy) {
    options.managed = false;
    if (Pages(jobs)) {
      options.paging = scheduler::simulate::PagingOptions::Of(machine_);
      options.warm_up = scheduler::simulate::kPagingWarmUp;
    }
    answer.paged = options.paging.has_value();
  }
  Result<Outcome> outcome = Simulate(runs, machine_, options);
  if (!outcome.ok()) return outcome.status();
  answer.outcome = *std::move(outcome);
  options.managed = true;
  options.paging.reset();
  options.setting.policy.policy = "temporal";
  const Result<Outcome> temporal = Simulate(runs, machine_, WhereAllStay(options));
  if (temporal.ok()) answer.temporal = temporal->Throughput();
  return answer;
}

}  // namespace sluice::cli
