// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "noderuntime/cli/daemon_process.h"
#include "noderuntime/cli/environment.h"
#include "noderuntime/cli/job_process.h"
#include "noderuntime/cli/layout.h"
#include "noderuntime/cli/simulated_gpu.h"
#include "noderuntime/cli/work_dir.h"
#include "tests/support/event_log.h"

namespace sluice::testing {

/// A path that CMake passed to the test, for example Program("WORKLOAD"). Throws when it is not
/// set: tests never search for what they run.
std::string Program(const std::string& variable);

struct BedOptions {
  std::string gpu_memory = "64MiB";
  unsigned gpus = 1;  // that many alike; the daemon manages the first
  /// The text of a machine file, or its path when it begins with '/'; empty: the defaults.
  std::string machine;
  std::string pool = "48MiB";
  std::string unit = "256KiB";
  std::string handle = "2MiB";
  std::vector<std::string> noded_flags;  // beyond pool, lease unit, handle, event log, oracle
  std::string noded;                     // another program in the place of sluice-noded
  bool start_noded = true;
  bool keeper = false;         // what a killed daemon leaves outlives it (RestartDaemon)
  std::string keeper_program;  // another one in the place of sluice-keeper
  std::string keeper_dies;     // when, if that is the mortal one; empty: never
  bool oracle = true;          // and poison
};

struct JobSpec {
  std::string label = {};
  std::vector<std::string> command = {};
  std::vector<std::string> run_flags = {};  // of `sluice run`
  std::vector<std::pair<std::string, std::string>> environment = {};
  bool under_sluice = true;
  int input = -1;  // standard input; -1: /dev/null
};

/// A simulated GPU, a daemon and jobs, in a folder of their own that is removed afterwards. What
/// fails while it is built up throws std::runtime_error, which fails the test.
class TestBed {
 public:
  explicit TestBed(const BedOptions& options = {});

  cli::JobProcess Start(const JobSpec& spec) const;
  /// Runs one job to its end.
  cli::JobProcess Run(const JobSpec& spec, int timeout_ms = 60'000) const;
  /// Runs `sluice` with these arguments and --runtime-dir.
  cli::CommandOutput Sluice(std::vector<std::string> arguments) const;

  nlohmann::json Status() const;
  /// Ends the daemon in an orderly way; the event log is complete afterwards.
  void StopDaemon();
  /// Kills the daemon.
  void KillDaemon();
  /// Starts another one in its place, with a log of its own, which is log() from then on.
  void StartDaemon();
  /// Of daemons that are started from here on, in the place of BedOptions::noded_flags.
  void SetFlags(std::vector<std::string> flags) { options_.noded_flags = std::move(flags); }
  void RestartDaemon() {
    KillDaemon();
    StartDaemon();
  }

  EventLog& log() { return *logs_.back(); }
  /// Of all daemons, the first one's first.
  std::vector<std::unique_ptr<EventLog>>& logs() { return logs_; }
  cli::GpuStats GpuStats(unsigned gpu = 0) const;
  const cli::WorkDir& work() const { return work_; }
  std::string runtime_dir() const { return work_.File("run"); }
  std::string daemon_log() const { return work_.File("noded.log"); }
  cli::Environment environment() const;
  pid_t daemon_pid() const { return daemon_->pid(); }

 private:
  cli::WorkDir work_;
  cli::Layout layout_;
  bool oracle_;
  std::optional<cli::SimulatedGpu> gpu_;
  BedOptions options_;
  std::vector<std::unique_ptr<EventLog>> logs_;
  std::optional<cli::DaemonProcess> daemon_;
};

/// Runs jobs that were started to their ends. Fails the test when they take too long.
void Finish(cli::JobGroup& jobs, int timeout_ms = 120'000,
            const cli::JobGroup::Observer& observer = nullptr);
void Finish(cli::JobProcess& job, int timeout_ms = 120'000);

/// Of the line "key=value"; empty when there is none.
std::string Value(const std::vector<std::string>& lines, const std::string& key);
uint64_t Number(const std::vector<std::string>& lines, const std::string& key);

/// A job's whole output, for the message of a failing test.
std::string Describe(const cli::JobProcess& job);

/// Jobs have gone: the ledger's log is sound, no kernel touched what its job did not hold, and all
/// memory is back.
void ExpectAllGivenBack(TestBed& bed);

/// A pipe: the read end as a job's standard input, the write end kept until the job may end.
struct InputPipe {
  UniqueFd read_end;
  UniqueFd write_end;
};
InputPipe MakeInputPipe();

}  // namespace sluice::testing
