// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/test_bed.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/bytes.h"

namespace sluice::testing {
namespace {

template <typename T>
T Must(Result<T> result, const std::string& what) {
  if (!result.ok()) throw std::runtime_error(what + ": " + result.status().message());
  return std::move(*result);
}

/// A temporary folder; with SLUICE_TEST_KEEP=DIR one below it that stays, for looking at a failure.
std::string KeptFolder() {
  static int count = 0;
  const char* keep = ::getenv("SLUICE_TEST_KEEP");
  return keep == nullptr ? "" : std::string(keep) + "/" + std::to_string(++count);
}

}  // namespace

std::string Program(const std::string& variable) {
  const char* value = ::getenv(("SLUICE_TEST_" + variable).c_str());
  if (value == nullptr || *value == '\0') {
    throw std::runtime_error("SLUICE_TEST_" + variable + " is not set; run this test with ctest");
  }
  return value;
}

TestBed::TestBed(const BedOptions& options)
    : work_(Must(cli::WorkDir::Create(KeptFolder()), "test bed")),
      layout_(cli::Layout::At(Program("BIN"))),
      oracle_(options.oracle) {
  std::string machine = options.machine;
  if (!machine.starts_with('/')) {
    machine = work_.File("machine");
    std::ofstream(machine) << options.machine;
  }
  const uint64_t memory = Must(ParseBytes(options.gpu_memory, "gpu_memory"), "test bed");
  gpu_.emplace(
      Must(cli::SimulatedGpu::Up(layout_, work_.File("gpu"), memory, machine, options.gpus),
           "simulated GPU"));
  const ::sluice::Status made = cli::MakeRuntimeDir(runtime_dir());
  if (!made.ok()) throw std::runtime_error(made.message());
  if (!options.keeper_dies.empty()) {
    std::ofstream(runtime_dir() + "/keeper-dies") << options.keeper_dies;
  }
  options_ = options;
  if (options.start_noded) StartDaemon();
}

void TestBed::StartDaemon() {
  const std::string number = logs_.empty() ? "" : "-" + std::to_string(logs_.size());
  logs_.push_back(std::make_unique<EventLog>(work_.File("events" + number + ".jsonl")));
  cli::DaemonOptions daemon;
  daemon.program = options_.noded.empty() ? layout_.Program("sluice-noded") : options_.noded;
  daemon.runtime_dir = runtime_dir();
  daemon.log_file = daemon_log();
  daemon.flags = {"--pool",   options_.pool,   "--lease-unit", options_.unit,
                  "--handle", options_.handle, "--event-log",  log().path()};
  if (oracle_) daemon.flags.insert(daemon.flags.end(), {"--oracle", "--poison"});
  // A bed that is torn down kills its daemon; what a keeper holds then would outlive the bed.
  if (options_.keeper) {
    daemon.flags.insert(daemon.flags.end(),
                        {"--keeper",
                         options_.keeper_program.empty() ? layout_.Program("sluice-keeper")
                                                         : options_.keeper_program,
                         "--keeper-linger", "2"});
  } else {
    daemon.flags.insert(daemon.flags.end(), {"--keeper", "off"});
  }
  daemon.flags.insert(daemon.flags.end(), options_.noded_flags.begin(), options_.noded_flags.end());
  daemon_ = Must(cli::DaemonProcess::Start(daemon, environment()), "noded");
}

void TestBed::KillDaemon() {
  if (::kill(daemon_->pid(), SIGKILL) != 0) throw std::runtime_error("the daemon is gone already");
  while (!daemon_->Ended().has_value()) {
  }
  daemon_.reset();
}

cli::Environment TestBed::environment() const {
  cli::Environment environment = gpu_->Select(cli::Environment::Current());
  environment.Set("SLUICE_RUNTIME_DIR", runtime_dir());
  environment.Unset("LD_PRELOAD");
  if (oracle_) environment.Set("SLUICE_ORACLE", work_.File("oracle"));
  return environment;
}

cli::JobProcess TestBed::Start(const JobSpec& spec) const {
  cli::SpawnOptions options;
  options.environment = environment();
  options.input = spec.input;
  if (spec.under_sluice) {
    options.argv = {layout_.Program("sluice"), "run", "--runtime-dir", runtime_dir()};
    options.argv.insert(options.argv.end(), spec.run_flags.begin(), spec.run_flags.end());
    options.argv.push_back("--");
  } else {
    // What noded says about holders does not bind a program that it does not know.
    options.environment.Unset("SLUICE_ORACLE");
  }
  options.argv.insert(options.argv.end(), spec.command.begin(), spec.command.end());
  for (const auto& [name, value] : spec.environment) options.environment.Set(name, value);
  return Must(cli::JobProcess::Start(spec.label, std::move(options)), spec.label);
}

cli::JobProcess TestBed::Run(const JobSpec& spec, int timeout_ms) const {
  cli::JobProcess job = Start(spec);
  Finish(job, timeout_ms);
  return job;
}

cli::CommandOutput TestBed::Sluice(std::vector<std::string> arguments) const {
  cli::SpawnOptions options;
  options.argv = {layout_.Program("sluice")};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.environment = environment();
  return Must(cli::RunCommand(std::move(options)), "sluice");
}

nlohmann::json TestBed::Status() const {
  cli::DaemonClient client =
      Must(cli::DaemonClient::Connect(cli::DaemonSocket(runtime_dir())), "status");
  return nlohmann::json::parse(Must(client.FetchStatus(), "status"));
}

cli::GpuStats TestBed::GpuStats(unsigned gpu) const {
  return Must(gpu_->Stats(gpu), "simulated GPU");
}

void TestBed::StopDaemon() {
  const ::sluice::Status stopped = daemon_->Stop();
  daemon_.reset();
  EXPECT_TRUE(stopped.ok()) << stopped.message();
}

void Finish(cli::JobGroup& jobs, int timeout_ms, const cli::JobGroup::Observer& observer) {
  const ::sluice::Status done = jobs.Run(observer, -1, timeout_ms);
  if (done.ok()) return;
  std::string text;
  for (const cli::JobProcess& job : jobs.jobs()) text += Describe(job);
  ADD_FAILURE() << done.message() << "\n" << text;
}

void Finish(cli::JobProcess& job, int timeout_ms) {
  cli::JobGroup group;
  group.Add(std::move(job));
  Finish(group, timeout_ms);
  job = std::move(group.jobs().front());
}

std::string Value(const std::vector<std::string>& lines, const std::string& key) {
  for (const std::string& line : lines) {
    if (line.starts_with(key + "=")) return line.substr(key.size() + 1);
  }
  return "";
}

uint64_t Number(const std::vector<std::string>& lines, const std::string& key) {
  const std::string value = Value(lines, key);
  if (value.empty()) throw std::runtime_error("the program printed no " + key);
  return std::stoull(value);
}

std::string Describe(const cli::JobProcess& job) {
  std::string text =
      job.label() + ": " + (job.ended() ? job.status().Describe() : std::string("runs")) + "\n";
  for (const std::string& line : job.out()) text += "  | " + line + "\n";
  for (const std::string& line : job.err()) text += "  ! " + line + "\n";
  return text;
}

void ExpectAllGivenBack(TestBed& bed) {
  EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);
  const scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  // What a program had at its end is free when the daemon has seen that nothing of it is left, and
  // it looks for that in growing intervals.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point patience = Clock::now() + std::chrono::seconds(30);
  nlohmann::json status = bed.Status();
  const auto left = [&] {
    return status.at("free_bytes") != status.at("pool_bytes") || status.at("outside_bytes") != 0;
  };
  while (left() && Clock::now() < patience) status = bed.Status();
  EXPECT_EQ(status.at("outside_bytes"), 0);
  EXPECT_EQ(status.at("free_bytes"), status.at("pool_bytes")) << status.dump();
}

InputPipe MakeInputPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace sluice::testing
