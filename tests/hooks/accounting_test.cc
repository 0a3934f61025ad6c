// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>

#include "tests/hooks/hook_fixture.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// Of each job; the soak asks for 500 000.
uint64_t Calls() {
  const char* text = ::getenv("SLUICE_CALLS");
  return text == nullptr ? 10'000 : std::stoull(text);
}

/// Quiet points that a job has been through.
uint64_t QuietPoints(const cli::JobProcess& job) {
  const auto& out = job.out();
  return static_cast<uint64_t>(std::count_if(
      out.begin(), out.end(), [](const std::string& line) { return line.starts_with("quiet="); }));
}

/// Two jobs that call everything at random and send each other memory (churn.cc). Each checks
/// itself at its quiet points: program, daemon and device agree, and no limit is exceeded. Here:
/// that this was so often enough, that limits held between two quiet points as well, by every line
/// of the ledger's log, that no kernel touched what its job did not hold, and that nothing is left.
struct Churn {
  struct How {
    bool keeper = false;
    /// Physical memory is made of the pool's units: the first job's unless it could be exported,
    /// the second one's in any case.
    bool leases = false;
    /// Each thread has a context of its own beside the shared one, which comes and goes.
    bool contexts = false;
  };
  explicit Churn(const How& wanted) : how(wanted), bed(Options(wanted)) {
    const std::string own = bed.work().File("exchange-");
    for (const std::string seed : {"1", "2"}) {
      const std::string peer = seed == "1" ? "2" : "1";
      JobSpec spec{.label = "churn " + seed,
                   .command = {Program("HOOKS"), "--gtest_filter=Churn.Accounting"},
                   .run_flags = {"--limit", "24MiB", "--request", "24MiB"},
                   .environment = {{"SLUICE_TEST_SEED", seed},
                                   {"SLUICE_TEST_CALLS", std::to_string(Calls())},
                                   {"SLUICE_TEST_OWN_SOCKET", own + seed},
                                   {"SLUICE_TEST_PEER_SOCKET", own + peer}}};
      if (how.leases) spec.environment.emplace_back("SLUICE_TEST_LEASES", "1");
      if (how.leases && seed == "2") spec.environment.emplace_back("SLUICE_PHYSICAL", "lease");
      if (how.contexts) spec.environment.emplace_back("SLUICE_TEST_CONTEXTS", "1");
      jobs.Add(bed.Start(spec));
    }
  }
  static BedOptions Options(const How& how) {
    BedOptions options;
    if (how.leases) options.unit = options.handle;
    options.gpu_memory = how.contexts ? "192MiB" : "128MiB";
    options.pool = "48MiB";
    // The first one waits for the second, and shows no sign of life meanwhile.
    options.noded_flags = Flags(hooks::kContext);
    options.keeper = how.keeper;
    return options;
  }
  static std::vector<std::string> Flags(uint64_t context) {
    return {"--context", std::to_string(context), "--patience", "1"};
  }
  void Run(const cli::JobGroup::Observer& observer = nullptr) {
    Finish(jobs, Calls() > 10'000 ? 3'000'000 : 300'000, observer);
  }
  void ExpectAllWell() {
    uint64_t imports = 0;
    for (const cli::JobProcess& job : jobs.jobs()) {
      ASSERT_TRUE(job.status().ok()) << Describe(job);
      std::printf("%s: %llu calls, %llu quiet points, %llu refused, %llu graphs, %llu imports\n",
                  job.label().c_str(), Figure(job, "calls"),
                  static_cast<unsigned long long>(QuietPoints(job)),  // NOLINT: printf
                  Figure(job, "refused"), Figure(job, "graphs"), Figure(job, "imports"));
      EXPECT_GE(Number(job.out(), "calls"), Calls());
      // One after each thousand calls of all threads together; one step is at most a few calls.
      EXPECT_GE(QuietPoints(job), Calls() / 1100);
      EXPECT_GT(Number(job.out(), "refused"), 0u) << "no limit was ever reached";
      EXPECT_GT(Number(job.out(), "graphs"), 0u);
      imports += Number(job.out(), "imports");
      if (how.contexts) {
        std::printf("  %llu contexts, %llu blocks went from one to another, %llu ended with one\n",
                    Figure(job, "contexts"), Figure(job, "moved"), Figure(job, "ended"));
        EXPECT_GT(Number(job.out(), "contexts"), 1u) << "none came after another";
        EXPECT_GT(Number(job.out(), "moved"), 0u);
        EXPECT_GT(Number(job.out(), "ended"), 0u);
      }
      if (!how.leases) continue;
      std::printf("  %llu times physical memory of the pool, %llu reads through another mapping\n",
                  Figure(job, "leased"), Figure(job, "compared"));
      EXPECT_GT(Number(job.out(), "leased"), 0u);
      EXPECT_GT(Number(job.out(), "compared"), 0u);
      EXPECT_GT(Number(job.out(), "kept"), 0u) << "nobody tried to export what is lent";
    }
    // Beside leased memory, little else has room.
    if (!how.leases) {
      EXPECT_GT(imports, 0u) << "nothing went from one job to the other";
    }
    EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);
    const nlohmann::json status = bed.Status();
    EXPECT_EQ(status.at("outside_bytes"), 0);
    EXPECT_EQ(status.at("free_bytes"), status.at("pool_bytes"));
    for (const auto& log : bed.logs()) {
      const scheduler::AuditReport report = log->Audit();
      EXPECT_TRUE(report.ok()) << log->path() << "\n" << Violations(report);
      EXPECT_EQ(report.over_limit_moments, 0u) << log->path();
    }
  }
  static unsigned long long Figure(const cli::JobProcess& job, const char* key) {  // NOLINT: printf
    return Number(job.out(), key);
  }

  How how;
  TestBed bed;
  cli::JobGroup jobs;
};

TEST(Accounting, LedgerProgramAndDeviceAgree) {
  Churn churn({});
  churn.Run();
  churn.ExpectAllWell();
}

// The same where a unit of the pool is a handle of its own: physical memory of the programs' own is
// lent, too, and is charged only where it has to be the driver's. Beside it contexts come and go,
// which use what the pool lends, and take with them what belongs to them.
TEST(Accounting, TheyAgreeOnLeasedPhysicalMemoryAndBesideOtherContexts) {
  Churn churn({.leases = true, .contexts = true});
  churn.Run();
  churn.ExpectAllWell();
}

// The daemon is killed in the middle, three times: what it did not read is said to the next one,
// and what that one thinks is right again at the next quiet point.
void ExpectAgreementBehindRestarts(const Churn::How& how) {
  Churn churn(how);
  constexpr uint64_t kRestarts = 3;
  uint64_t restarts = 0;
  churn.Run([&](cli::JobGroup& running) {
    const uint64_t quiet = QuietPoints(running.jobs().front());
    const uint64_t due = (restarts + 1) * (Calls() / 1000) / (kRestarts + 1);
    if (restarts == kRestarts || quiet < std::max<uint64_t>(due, 1)) return;
    ++restarts;
    // What was charged for a context stays, whatever the next daemon is told that one costs.
    const bool dearer = restarts == 2 && !how.contexts;
    churn.bed.SetFlags(Churn::Flags(dearer ? 3 * hooks::kContext : hooks::kContext));
    churn.bed.RestartDaemon();
  });
  EXPECT_EQ(restarts, kRestarts);
  churn.ExpectAllWell();
}

TEST(Accounting, TheyAgreeBehindARestartBesideOtherContexts) {
  ExpectAgreementBehindRestarts({.keeper = true, .contexts = true});
}

TEST(Accounting, TheyAgreeOnLeasedPhysicalMemoryBehindARestart) {
  ExpectAgreementBehindRestarts({.keeper = true, .leases = true});
}

}  // namespace
}  // namespace sluice::testing
