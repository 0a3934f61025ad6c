// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/demo_stages.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "common/bytes.h"
#include "noderuntime/cli/check_log.h"
#include "noderuntime/cli/daemon_process.h"
#include "noderuntime/cli/trainer_output.h"
#include "noderuntime/eventlog/record_json.h"

namespace sluice::cli {
namespace {

// Far more than any run needs; a run that hangs must not hang the demo.
constexpr int kRunTimeoutMs = 30 * 60 * 1000;
constexpr uint64_t kBigGpuBytes = kGiB;
/// What a context costs on the simulated GPU (its default machine), for every job and the daemon.
constexpr uint64_t kContextBytes = 4 * kMiB;
constexpr size_t kShownViolations = 3;
constexpr size_t kAllSamples = SIZE_MAX;

double WallSeconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// Why a job failed, in one line: its last words.
std::string LastWords(const JobProcess& job) {
  std::string words;
  for (const std::string& line : job.err()) {
    if (!line.empty()) words = line;
  }
  return words.empty() ? job.status().Describe() : words;
}

bool SaysOutOfMemory(const JobProcess& job) {
  return std::any_of(job.err().begin(), job.err().end(), [](const std::string& line) {
    return line.find("OUT_OF_MEMORY") != std::string::npos ||
           line.find("out of memory") != std::string::npos;
  });
}

}  // namespace

Demo::Demo(DemoOptions options, Layout layout, const WorkDir& work, const Interrupts& interrupts,
           DemoProgress& progress)
    : options_(std::move(options)),
      layout_(std::move(layout)),
      work_(work),
      interrupts_(interrupts),
      progress_(progress),
      plan_(PlanJobs(options_)) {}

Result<DemoResult> Demo::Run() {
  DemoResult result;
  result.options = options_;
  if (Status done = RunSolo(result); !done.ok()) return done;
  std::vector<uint64_t> peaks;
  for (const SoloResult& solo : result.solo) peaks.push_back(solo.peak_bytes);
  const Result<uint64_t> pool = PlanPool(options_, peaks);
  if (!pool.ok()) return pool.status();
  result.pool_bytes = *pool;
  progress_.Note("pool " + FormatBytes(*pool) + ", sum of the peaks " +
                 FormatBytes(result.peak_sum()));

  if (!options_.real_gpu) {
    if (Status done = RunCrowded(result); !done.ok()) return done;
  }
  const uint32_t all = options_.iterations;
  if (Status done = RunShared({"flow", "flow", true, all}, result, result.flow); !done.ok()) {
    return done;
  }
  if (Status done = RunShared({"temporal", "temporal", true, all}, result, result.temporal);
      !done.ok()) {
    return done;
  }
  const SharedPlan without_credit = {"credit-off", "flow", false, CreditOffIterations(all)};
  if (Status done = RunShared(without_credit, result, result.credit_off); !done.ok()) return done;
  return result;
}

Status Demo::RunSolo(DemoResult& result) {
  progress_.Stage("each job alone, without Sluice");
  for (const DemoJob& job : plan_) {
    const std::string name = "solo-" + std::to_string(result.solo.size() + 1);
    const auto gpu = PowerUp(name, kBigGpuBytes);
    if (!gpu.ok()) return gpu.status();
    const Environment environment = Environment::Current();
    Result<Outcome> outcome = RunTogether(name, {Trainer(job, options_.iterations)}, *gpu,
                                          environment, options_.iterations, false);
    if (!outcome.ok()) return outcome.status();
    const JobProcess& ended = outcome->jobs.front();
    if (!ended.status().ok()) {
      return Status(StatusCode::kInternal, job.label + " alone failed: " + LastWords(ended));
    }
    Result<TrainerOutput> output = ParseTrainerOutput(ended.out());
    if (!output.ok()) return output.status().Annotate(job.label);
    if (output->losses.size() != options_.iterations || !output->peak_bytes) {
      return Status(StatusCode::kInternal,
                    job.label + " alone: printed " + std::to_string(output->losses.size()) +
                        " losses and no summary, wanted " + std::to_string(options_.iterations));
    }
    if (!AllFinite(output->losses)) {
      return Status(StatusCode::kInternal,
                    job.label + " alone: its losses diverge, so that equality would prove nothing");
    }
    result.solo.push_back({job, std::move(output->losses), *output->peak_bytes, outcome->seconds});
    progress_.Note(job.label + " (" + job.model + ", seed " + std::to_string(job.seed) +
                   "): peak " + FormatBytes(*output->peak_bytes));
  }
  return {};
}

Status Demo::RunCrowded(DemoResult& result) {
  progress_.Stage("all jobs together, without Sluice, on a GPU with " +
                  FormatBytes(result.pool_bytes) + " for them");
  const auto gpu = PowerUp("crowded", result.pool_bytes + plan_.size() * kContextBytes);
  if (!gpu.ok()) return gpu.status();
  std::vector<std::vector<std::string>> commands;
  for (const DemoJob& job : plan_) commands.push_back(Trainer(job, options_.iterations));
  Result<Outcome> outcome = RunTogether("crowded", commands, *gpu, Environment::Current(),
                                        options_.iterations, /*stop_at_failure=*/true);
  if (!outcome.ok()) return outcome.status();
  CrowdedResult crowded;
  for (const JobProcess& job : outcome->jobs) {
    if (crowded.out_of_memory || job.status().ok() || !SaysOutOfMemory(job)) continue;
    crowded = {true, job.label(), LastWords(job)};
  }
  progress_.Note(crowded.out_of_memory ? crowded.job + " failed: " + crowded.line
                                       : "no job ran out of memory");
  result.crowded = std::move(crowded);
  return {};
}

Status Demo::RunShared(const SharedPlan& plan, DemoResult& result, SharedResult& shared) {
  progress_.Stage("all jobs together, with Sluice, policy " + plan.policy +
                  (plan.credit ? "" : ", launch-ahead without bound (credit off)"));
  shared.policy = plan.policy;
  shared.credit = plan.credit;
  shared.iterations = plan.iterations;
  const auto gpu = PowerUp(plan.name, result.pool_bytes + (plan_.size() + 1) * kContextBytes);
  if (!gpu.ok()) return gpu.status();
  Environment environment = Environment::Current();
  environment.Set("SLUICE_ORACLE", work_.File(plan.name + "/oracle"));

  DaemonOptions daemon;
  daemon.program = layout_.Program("sluice-noded");
  daemon.runtime_dir = work_.File(plan.name + "/runtime");
  daemon.log_file = work_.File(plan.name + "/noded.log");
  const std::string events = work_.File(plan.name + "/events.jsonl");
  daemon.flags = {"--pool",       std::to_string(result.pool_bytes),
                  "--lease-unit", std::to_string(kDemoUnitBytes),
                  "--handle",     std::to_string(kDemoHandleBytes),
                  "--policy",     plan.policy,
                  "--event-log",  events,
                  "--credit",     plan.credit ? "on" : "off"};
  if (!options_.real_gpu) daemon.flags.insert(daemon.flags.end(), {"--oracle", "--poison"});
  if (Status made = MakeRuntimeDir(daemon.runtime_dir); !made.ok()) return made;
  const Environment on_gpu = *gpu ? (*gpu)->Select(environment) : environment;
  Result<DaemonProcess> noded = DaemonProcess::Start(daemon, DaemonEnvironment(on_gpu, layout_));
  if (!noded.ok()) return noded.status();

  std::vector<std::vector<std::string>> commands;
  for (const DemoJob& job : plan_) {
    std::vector<std::string> command = {layout_.Program("sluice"), "run", "--runtime-dir",
                                        daemon.runtime_dir, "--"};
    const std::vector<std::string> trainer = Trainer(job, plan.iterations);
    command.insert(command.end(), trainer.begin(), trainer.end());
    commands.push_back(std::move(command));
  }
  Result<Outcome> outcome =
      RunTogether(plan.name, commands, *gpu, environment, plan.iterations, false);
  if (!outcome.ok()) return outcome.status();
  if (const auto ended = noded->Ended()) {
    return Status(StatusCode::kInternal, "sluice-noded ended during the run (" + ended->Describe() +
                                             "): " + LastLine(daemon.log_file));
  }
  if (Status stopped = noded->Stop(); !stopped.ok()) {
    return stopped.Annotate(LastLine(daemon.log_file));
  }

  shared.seconds = outcome->seconds;
  shared.oracle_violations = outcome->oracle_violations;
  for (size_t i = 0; i < plan_.size(); ++i) {
    const JobProcess& job = outcome->jobs[i];
    if (!job.status().ok() && shared.failure.empty()) {
      shared.failure = job.label() + ": " + LastWords(job);
    }
    const Result<TrainerOutput> output = ParseTrainerOutput(job.out());
    if (!output.ok()) return output.status().Annotate(job.label());
    std::vector<std::string> expected = result.solo[i].losses;
    expected.resize(std::min<size_t>(expected.size(), plan.iterations));
    const std::string difference = CompareLosses(expected, output->losses);
    if (!difference.empty() && shared.loss_difference.empty()) {
      shared.loss_difference = job.label() + ": " + difference;
    }
  }
  return ReadEvents(events, plan.name == "flow", result, shared);
}

Status Demo::ReadEvents(const std::string& file, bool keep_history, DemoResult& result,
                        SharedResult& shared) {
  const auto records = eventlog::ReadLogFile(file);
  if (!records.ok()) return records.status();
  const scheduler::AuditReport report = scheduler::Audit(*records, kAllSamples);
  shared.lent_bytes = report.lent_bytes_within_iterations;
  shared.over_budget_moments = report.over_budget_moments;
  shared.over_limit_moments = report.over_limit_moments;
  for (const scheduler::AuditViolation& violation : report.violations) {
    if (shared.violations.size() == kShownViolations) break;
    shared.violations.push_back("event log line " + std::to_string(violation.record + 1) + ": " +
                                violation.rule + ": " + violation.text);
  }
  if (keep_history) {
    std::vector<JobLabel> labels;
    for (const DemoJob& job : plan_) {
      const std::vector<std::string> command = Trainer(job, options_.iterations);
      labels.push_back({JobName(command.front(), {command.begin() + 1, command.end()}), job.label});
    }
    result.history = HistoryOf(*records, report, labels);
  }
  progress_.Note("lent within iterations: " + FormatBytes(shared.lent_bytes) +
                 ", violations: " + std::to_string(report.violations.size()) +
                 ", oracle violations: " + std::to_string(shared.oracle_violations));
  return {};
}

std::vector<std::string> Demo::Trainer(const DemoJob& job, uint32_t iterations) const {
  return TrainerCommand(layout_.Program("train"), job, iterations);
}

Result<std::optional<SimulatedGpu>> Demo::PowerUp(const std::string& name,
                                                  uint64_t memory_bytes) const {
  std::error_code error;
  std::filesystem::create_directories(work_.File(name), error);
  if (error) return Status(StatusCode::kInternal, work_.File(name) + ": " + error.message());
  if (options_.real_gpu) return std::optional<SimulatedGpu>();
  // Its kernels last about as long as a CPU needs for them. Were they declared faster, most of the
  // simulated time would be the host's own, which runs in real time.
  Result<SimulatedGpu> gpu = SimulatedGpu::Up(layout_, work_.File(name + "/gpu"), memory_bytes,
                                              layout_.simgpu + "/demo.machine");
  if (!gpu.ok()) return gpu.status();
  return std::optional<SimulatedGpu>(std::move(*gpu));
}

Result<Demo::Outcome> Demo::RunTogether(const std::string& name,
                                        const std::vector<std::vector<std::string>>& commands,
                                        const std::optional<SimulatedGpu>& gpu,
                                        const Environment& environment, uint32_t iterations,
                                        bool stop_at_failure) {
  JobGroup group;
  for (size_t i = 0; i < commands.size(); ++i) {
    SpawnOptions spawn;
    spawn.argv = commands[i];
    spawn.environment = gpu ? gpu->Select(environment) : environment;
    const std::string label = commands.size() == 1 ? name : "job " + std::to_string(i + 1);
    Result<JobProcess> job = JobProcess::Start(label, std::move(spawn));
    if (!job.ok()) return job.status();
    group.Add(std::move(*job));
  }
  const double started = WallSeconds();
  const auto observe = [&](JobGroup& running) {
    size_t done = 0;
    bool failed = false;
    for (const JobProcess& job : running.jobs()) {
      done += CountLosses(job.out());
      failed = failed || (job.ended() && !job.status().ok());
    }
    progress_.Advance(name, done, iterations * commands.size());
    if (failed && stop_at_failure) running.KillAll();
  };
  const Status ran = group.Run(observe, interrupts_.fd(), kRunTimeoutMs);
  for (const JobProcess& job : group.jobs()) Keep(name, job);
  if (!ran.ok()) return ran.Annotate(name);

  Outcome outcome;
  outcome.jobs = std::move(group.jobs());
  outcome.seconds = WallSeconds() - started;
  if (gpu) {
    const Result<GpuStats> stats = gpu->Stats();
    if (!stats.ok()) return stats.status();
    outcome.seconds = static_cast<double>(stats->span_ns) / 1e9;
    outcome.oracle_violations = stats->oracle_violations;
  }
  return outcome;
}

void Demo::Keep(const std::string& name, const JobProcess& job) const {
  std::string file = job.label();
  std::replace(file.begin(), file.end(), ' ', '-');
  std::ofstream log(work_.File(name + '/' + file + ".log"));
  for (const std::string& line : job.out()) log << line << '\n';
  for (const std::string& line : job.err()) log << "stderr: " << line << '\n';
  if (job.ended()) log << job.status().Describe() << '\n';
}

}  // namespace sluice::cli
