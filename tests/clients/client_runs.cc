// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/clients/client_runs.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "common/bytes.h"

namespace sluice::testing {
namespace {

constexpr int kTimeoutMs = 400'000;
constexpr uint64_t kContexts = 16 * kMiB;  // of two programs and the daemon, 4 MiB each, and some

/// The programs' own caches lie in the test's folder: what an earlier build compiled must not be
/// what is tested.
JobSpec Spec(const TestBed& bed, const ClientRun& run) {
  JobSpec spec{.label = run.label, .command = run.command, .environment = run.environment};
  spec.environment.emplace_back("CACHEDB", bed.work().File("tinygrad-cache.db"));
  return spec;
}

/// Runs with the same key print the same.
std::string Key(const ClientRun& run) {
  std::string key = run.label;
  for (const std::string& word : run.command) key += '\n' + word;
  for (const auto& [name, value] : run.environment) key += '\n' + name + '=' + value;
  return key;
}

}  // namespace

void ClientTest::SetUp() {
  for (const std::string& program : {Python(), Ffmpeg(), Clang()}) {
    if (::access(program.c_str(), X_OK) != 0) {
      GTEST_SKIP() << "NOT RUN: there is no " << program
                   << "; `scripts/check clients` installs it and runs these tests";
    }
  }
}

std::string Python() { return Program("PYTHON"); }
std::string Ffmpeg() { return Program("FFMPEG"); }
std::string Clang() { return Program("CLANG"); }
std::string SourceFile(const std::string& path) { return Program("SOURCE") + "/" + path; }

std::vector<Lines> RunUnhooked(const std::vector<ClientRun>& runs) {
  // What a program prints alone is asked for by several tests of one program.
  static std::map<std::string, Lines> known;
  std::vector<std::unique_ptr<TestBed>> beds;
  cli::JobGroup group;
  std::vector<std::string> started;
  for (const ClientRun& run : runs) {
    const std::string key = Key(run);
    if (known.contains(key) || std::find(started.begin(), started.end(), key) != started.end()) {
      continue;
    }
    BedOptions options;
    options.gpu_memory = "1GiB";
    options.start_noded = false;
    beds.push_back(std::make_unique<TestBed>(options));
    JobSpec spec = Spec(*beds.back(), run);
    spec.under_sluice = false;
    group.Add(beds.back()->Start(spec));
    started.push_back(key);
  }
  Finish(group, kTimeoutMs);
  for (size_t i = 0; i < started.size(); ++i) {
    const cli::JobProcess& job = group.jobs()[i];
    EXPECT_TRUE(job.ended() && job.status().ok()) << Describe(job);
    EXPECT_FALSE(job.out().empty()) << Describe(job);
    known[started[i]] = job.out();
  }
  std::vector<Lines> printed;
  for (const ClientRun& run : runs) printed.push_back(known.at(Key(run)));
  return printed;
}

Lines RunUnhooked(const ClientRun& run) { return RunUnhooked(std::vector{run}).front(); }

scheduler::AuditReport RunHooked(const std::vector<ClientRun>& runs,
                                 const std::vector<Lines>& expected, uint64_t pool_bytes) {
  BedOptions options;
  options.pool = std::to_string(pool_bytes);
  options.gpu_memory = std::to_string(pool_bytes + kContexts);
  TestBed bed(options);
  cli::JobGroup group;
  for (const ClientRun& run : runs) {
    JobSpec spec = Spec(bed, run);
    spec.run_flags = run.run_flags;
    group.Add(bed.Start(spec));
  }
  Finish(group, kTimeoutMs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const cli::JobProcess& job = group.jobs()[i];
    EXPECT_TRUE(job.ended() && job.status().ok()) << Describe(job);
    EXPECT_EQ(job.out(), expected[i]) << Describe(job);
  }
  bed.StopDaemon();
  EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);
  scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  EXPECT_EQ(report.jobs.size(), runs.size()) << "a program ran without Sluice";
  for (const auto& [id, job] : report.jobs) {
    EXPECT_GT(job.peak_units, 0u) << job.name << " leased nothing";
  }
  return report;
}

void ExpectPeaksDoNotFit(const scheduler::AuditReport& report) {
  scheduler::Units sum = 0;
  for (const auto& [id, job] : report.jobs) sum += job.peak_units;
  EXPECT_GT(sum, report.pool_units);
}

}  // namespace sluice::testing
