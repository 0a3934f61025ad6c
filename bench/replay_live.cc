// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "bench/median.h"
#include "bench/replay_case.h"
#include "noderuntime/cli/daemon_process.h"
#include "noderuntime/cli/job_process.h"
#include "noderuntime/cli/layout.h"
#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/simulated_gpu.h"
#include "noderuntime/cli/work_dir.h"
#include "noderuntime/eventlog/record_json.h"
#include "scheduler/audit/audit.h"

namespace sluice::bench {
namespace {

using scheduler::EventKind;
using scheduler::JobId;
using scheduler::Record;

/// Iterations until a job has a profile, and until its claim is cut close behind gates.
constexpr uint64_t kUnmeasured = 12;
constexpr size_t kCareful = 4;
constexpr size_t kLeastMeasured = 4;
constexpr double kLeastShared = 18;  // iterations of the slower job
constexpr int kOutOfMemory = 3;      // exit code of sluice-replay
constexpr int kTimeoutMs = 300'000;
constexpr int kLooks = 1000;

/// The processes of one run and what they leave; all gone with the object.
class LiveRun {
 public:
  static Result<LiveRun> Start(const ReplayPair& pair, const ReplayMachine& machine,
                               const ReplaySetting& setting) {
    Result<cli::Layout> layout = cli::Layout::Find();
    if (!layout.ok()) return layout.status();
    Result<cli::WorkDir> work = cli::WorkDir::Create("");
    if (!work.ok()) return work.status();
    LiveRun run(std::move(*layout), std::move(*work));
    const uint64_t pool = pair.pool_units * kReplayUnit;
    if (Status status = cli::WriteWholeFile(run.work_.File("machine"), machine.text); !status.ok())
      return status;
    Result<cli::SimulatedGpu> gpu =
        cli::SimulatedGpu::Up(run.layout_, run.work_.File("gpu"),
                              pool + 4 * machine.machine.context_bytes, run.work_.File("machine"));
    if (!gpu.ok()) return gpu.status();
    run.gpu_.emplace(std::move(*gpu));
    cli::DaemonOptions daemon;
    daemon.program = run.layout_.Program("sluice-noded");
    daemon.runtime_dir = run.work_.File("run");
    daemon.log_file = run.work_.File("noded.log");
    const bool pieces = setting.placing == scheduler::Placing::kPieces;
    daemon.flags = {"--pool",       std::to_string(pool),
                    "--lease-unit", std::to_string(kReplayUnit),
                    "--handle",     std::to_string(pieces ? kReplayUnit : pool),
                    "--event-log",  run.log(),
                    "--keeper",     "off",
                    "--policy",     setting.policy,
                    "--claims",     std::string(scheduler::ClaimsName(setting.claims))};
    if (Status made = cli::MakeRuntimeDir(daemon.runtime_dir); !made.ok()) return made;
    Result<cli::DaemonProcess> started = cli::DaemonProcess::Start(daemon, run.environment());
    if (!started.ok()) return started.status();
    run.daemon_.emplace(std::move(*started));
    return run;
  }

  std::string log() const { return work_.File("events.jsonl"); }

  Result<cli::JobProcess> Job(const ReplayModel& model, const std::string& label,
                              uint64_t iterations) const {
    cli::SpawnOptions spawn;
    spawn.environment = environment();
    spawn.argv = {layout_.Program("sluice"),
                  "run",
                  "--runtime-dir",
                  work_.File("run"),
                  "--",
                  layout_.Program("sluice-replay"),
                  model.file,
                  "--batch",
                  std::to_string(model.batch),
                  "--iterations",
                  std::to_string(iterations),
                  "--machine",
                  work_.File("machine"),
                  "--pattern",
                  "sparse",
                  "--json"};
    return cli::JobProcess::Start(label, std::move(spawn));
  }

  /// Ids are given in the order of admission.
  Status AwaitJob(JobId job) const {
    for (int look = 0; look < kLooks; ++look) {
      const Result<std::vector<Record>> records = eventlog::ReadLogFile(log());
      if (records.ok() && std::any_of(records->begin(), records->end(), [job](const Record& r) {
            return r.job == job && r.event == EventKind::kAdmit;
          }))
        return {};
      ::usleep(20'000);
    }
    return Status(StatusCode::kInternal, "job " + std::to_string(job) + " does not come");
  }

  Status Stop() { return daemon_->Stop(); }

 private:
  LiveRun(cli::Layout layout, cli::WorkDir work)
      : layout_(std::move(layout)), work_(std::move(work)) {}
  cli::Environment environment() const {
    cli::Environment environment = gpu_->Select(cli::Environment::Current());
    environment.Unset("LD_PRELOAD");
    return environment;
  }

  // In the order in which they need each other.
  cli::Layout layout_;
  cli::WorkDir work_;
  std::optional<cli::SimulatedGpu> gpu_;
  std::optional<cli::DaemonProcess> daemon_;
};

/// What the log says of a job, by the daemon's clock.
struct Course {
  uint64_t settled_ns = 0;  // behind some gated iterations: its claim is cut close
  uint64_t end_ns = 0;
};

Result<Course> CourseOf(const std::vector<Record>& records, JobId job) {
  Course course;
  size_t gates = 0;
  for (const Record& record : records) {
    if (record.job != job) continue;
    if (record.event == EventKind::kGate && record.profiled && ++gates == kCareful) {
      course.settled_ns = record.t_ns;
    }
    if (record.event == EventKind::kLeave || record.event == EventKind::kDeath) {
      course.end_ns = record.t_ns;
    }
  }
  if (course.settled_ns == 0 || course.end_ns == 0) {
    return Status(StatusCode::kInternal, "job " + std::to_string(job) + " opened " +
                                             std::to_string(gates) + " gates with a profile, of " +
                                             std::to_string(kCareful) + " that are needed");
  }
  return course;
}

/// Iterations of the stretch in which both jobs were at work with their profiles. What is known of
/// an iteration is how long it took on the GPU; when it was follows from those behind it and the
/// job's end. A live node's cycle need not be the trace's: it may find a shorter one inside.
Result<Replayed> Measure(const std::vector<Record>& records, double time_scale,
                         const std::array<std::vector<double>, 2>& iteration_ms) {
  const auto failed = [](const std::string& text) { return Status(StatusCode::kInternal, text); };
  uint64_t from = 0;
  uint64_t to = UINT64_MAX;
  std::array<uint64_t, 2> ends{};
  for (size_t i = 0; i < 2; ++i) {
    const Result<Course> course = CourseOf(records, static_cast<JobId>(i + 1));
    if (!course.ok()) return course.status();
    from = std::max(from, course->settled_ns);
    to = std::min(to, course->end_ns);
    ends[i] = course->end_ns;
  }
  Replayed result;
  for (size_t i = 0; i < 2; ++i) {
    std::vector<double> measured;
    auto end_ns = static_cast<double>(ends[i]);
    for (size_t k = iteration_ms[i].size(); k-- > 0;) {
      const double length_ns = iteration_ms[i][k] * 1e6 * time_scale;
      // Half an iteration at either end is for what is only nearly known.
      const bool inside = end_ns - length_ns * 3 / 2 >= static_cast<double>(from) &&
                          end_ns + length_ns / 2 <= static_cast<double>(to);
      if (inside) measured.push_back(iteration_ms[i][k]);
      end_ns -= length_ns;
    }
    if (measured.size() < kLeastMeasured) {
      return failed("the jobs overlapped in few iterations: job " + std::to_string(i + 1) + " in " +
                    std::to_string(measured.size()) + " of its " +
                    std::to_string(iteration_ms[i].size()) + ", both were at work for " +
                    std::to_string(to > from ? (to - from) / 1'000'000 : 0) + " ms");
    }
    ReplayedJob& job = result.jobs[i];
    job.iterations = static_cast<uint32_t>(measured.size());
    for (const double ms : measured) job.mean_ms += ms / static_cast<double>(measured.size());
    job.median_ms = Median(std::move(measured));
  }
  const scheduler::AuditReport report = scheduler::Audit(records);
  if (!report.ok()) return failed("the event log breaks a rule; sluice check-log would say which");
  if (Status read = MeasureHeld(records, from, to, &result); !read.ok()) return read;
  return result;
}

}  // namespace

Result<Replayed> RunPair(const ReplayPair& pair, const ReplayMachine& machine,
                         const ReplaySetting& setting, const Replayed& expected, double seconds) {
  Result<LiveRun> run = LiveRun::Start(pair, machine, setting);
  if (!run.ok()) return run.status();
  cli::JobGroup group;
  const double longest_ms = std::max(expected.jobs[0].mean_ms, expected.jobs[1].mean_ms);
  const double shared_ms = std::max(seconds * 1e3, kLeastShared * longest_ms);
  for (size_t i = 0; i < 2; ++i) {
    const auto shared = static_cast<uint64_t>(std::ceil(shared_ms / expected.jobs[i].mean_ms));
    Result<cli::JobProcess> job = run->Job(*pair.jobs[i], pair.jobs[i]->name, kUnmeasured + shared);
    if (!job.ok()) return job.status();
    group.Add(std::move(*job));
    if (Status admitted = run->AwaitJob(static_cast<JobId>(i + 1)); !admitted.ok()) return admitted;
  }
  if (Status ran = group.Run(nullptr, -1, kTimeoutMs); !ran.ok()) return ran;
  std::array<std::vector<double>, 2> iteration_ms;
  for (size_t i = 0; i < 2; ++i) {
    const cli::JobProcess& job = group.jobs()[i];
    if (job.status().code == kOutOfMemory) {
      return Status(StatusCode::kResourceExhausted, job.label() + ": out of memory");
    }
    if (!job.status().ok() || job.out().empty()) {
      const std::string why = job.err().empty() ? "no word" : job.err().back();
      return Status(StatusCode::kInternal, job.label() + " failed: " + why);
    }
    const auto json = nlohmann::json::parse(job.out().back(), nullptr, false);
    if (!json.is_object()) return Status(StatusCode::kInternal, job.label() + ": no report");
    iteration_ms[i] = json.at("iteration_ms").get<std::vector<double>>();
  }
  if (Status stopped = run->Stop(); !stopped.ok()) return stopped;
  const Result<std::vector<Record>> records = eventlog::ReadLogFile(run->log());
  if (!records.ok()) return records.status();
  if (!setting.logs.empty()) {
    const Result<std::string> log = cli::ReadWholeFile(run->log());
    if (!log.ok()) return log.status();
    const Status kept = cli::WriteWholeFile(setting.logs + ".processes.jsonl", *log);
    if (!kept.ok()) return kept;
  }
  return Measure(*records, machine.machine.time_scale, iteration_ms);
}

}  // namespace sluice::bench
