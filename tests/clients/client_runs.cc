// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/clients/client_runs.h"

#include <unistd.h>

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

Lines RunUnhooked(const ClientRun& run) {
  BedOptions options;
  options.gpu_memory = "1GiB";
  options.start_noded = false;
  const TestBed bed(options);
  JobSpec spec = Spec(bed, run);
  spec.under_sluice = false;
  const cli::JobProcess job = bed.Run(spec, kTimeoutMs);
  EXPECT_TRUE(job.ended() && job.status().ok()) << Describe(job);
  EXPECT_FALSE(job.out().empty()) << Describe(job);
  return job.out();
}

scheduler::AuditReport RunHooked(const std::vector<ClientRun>& runs,
                                 const std::vector<Lines>& expected, const SharedPool& pool) {
  BedOptions options;
  options.pool = std::to_string(pool.bytes);
  options.gpu_memory = std::to_string(pool.bytes + kContexts);
  TestBed bed(options);
  cli::JobGroup group;
  const auto start_due = [&](cli::JobGroup& running) {
    while (
        running.jobs().size() < runs.size() &&
        (running.jobs().empty() || running.jobs().back().out().size() >= pool.lines_before_next)) {
      const ClientRun& run = runs[running.jobs().size()];
      JobSpec spec = Spec(bed, run);
      spec.run_flags = run.run_flags;
      running.Add(bed.Start(spec));
    }
  };
  start_due(group);
  Finish(group, kTimeoutMs, start_due);
  if (group.jobs().size() != runs.size()) {
    ADD_FAILURE() << "no more started after\n" << Describe(group.jobs().back());
    return {};
  }
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
