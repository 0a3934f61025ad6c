// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/hooks/hook_fixture.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t standard) {
  const char* text = ::getenv(name);
  return text == nullptr ? standard : std::stoull(text);
}
/// Of each job; the soak asks for 500 000.
uint64_t Calls() { return FromEnvironment("SLUICE_CALLS", 10'000); }
/// Another one: other calls.
uint64_t Seed() { return FromEnvironment("SLUICE_SEED", 0); }

/// How often a job has said so.
uint64_t Times(const cli::JobProcess& job, const std::string& what) {
  const auto& out = job.out();
  return static_cast<uint64_t>(std::count_if(out.begin(), out.end(), [&](const std::string& line) {
    return line.starts_with(what + "=");
  }));
}
/// Quiet points that a job has been through.
uint64_t QuietPoints(const cli::JobProcess& job) { return Times(job, "quiet"); }

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
    /// Each thread has a context of its own and a green one beside the shared one. They come and
    /// go, and so does the shared one, with the library's session in it.
    bool contexts = false;
    /// The first job is alone, has company, is alone, and has company, which stays behind alone. So
    /// it feels pressure half of the time, and what it has changes hands when that begins.
    bool in_turn = false;
  };
  static constexpr uint64_t kParts = 4;

  explicit Churn(const How& settings) : how(settings), bed(Options(settings)) {
    Start("1", Calls(), -1);
    if (!how.in_turn) Start("2", Calls(), -1);
  }
  void Start(const std::string& number, uint64_t calls, int input) {
    const std::string own = bed.work().File("exchange-");
    const std::string peer = number == "1" ? "2" : "1";
    const uint64_t seed = 2 * Seed() + std::stoull(number) + 1000 * jobs.jobs().size();
    JobSpec spec{.label = "churn " + number + " with seed " + std::to_string(seed),
                 .command = {Program("HOOKS"), "--gtest_filter=Churn.Accounting"},
                 .run_flags = {"--limit", "24MiB", "--request", "24MiB"},
                 .environment = {{"SLUICE_TEST_SEED", std::to_string(seed)},
                                 {"SLUICE_TEST_CALLS", std::to_string(calls)},
                                 {"SLUICE_TEST_OWN_SOCKET", own + number},
                                 {"SLUICE_TEST_PEER_SOCKET", own + peer}},
                 .input = input};
    if (how.leases) spec.environment.emplace_back("SLUICE_TEST_LEASES", "1");
    if (how.leases && number == "2") spec.environment.emplace_back("SLUICE_PHYSICAL", "lease");
    if (how.contexts) spec.environment.emplace_back("SLUICE_TEST_CONTEXTS", "1");
    if (how.in_turn) {
      spec.environment.emplace_back("SLUICE_TEST_PARTS",
                                    std::to_string(number == "1" ? kParts : 1));
    }
    jobs.Add(bed.Start(spec));
    wanted.push_back(calls);
  }
  /// Company for the first job, until that has had enough of it.
  void SeeToCompany() {
    const cli::JobProcess& first = jobs.jobs().front();
    if (company.write_end.valid() && (first.ended() || Times(first, "alone") > companies)) {
      company.write_end.reset();
    }
    if (first.ended() || Times(first, "company") == companies) return;
    ++companies;
    company = MakeInputPipe();
    // The last one still has calls to make when the first job ends.
    const bool last = companies == kParts / 2;
    Start("2", last ? Calls() : Calls() / kParts, company.read_end.get());
  }
  static BedOptions Options(const How& how) {
    BedOptions options;
    if (how.leases) options.unit = options.handle;
    options.gpu_memory = how.contexts ? "192MiB" : "128MiB";
    // Both limits; and where one waits in the middle of an iteration until the other has begun,
    // that one's limit in one run, however the first one's claim lies.
    options.pool = how.in_turn ? "60MiB" : "48MiB";
    // The first one waits for the second, and shows no sign of life meanwhile.
    options.noded_flags = Flags(how, hooks::kContext);
    options.keeper = how.keeper;
    return options;
  }
  static std::vector<std::string> Flags(const How& how, uint64_t context) {
    std::vector<std::string> flags = {"--context", std::to_string(context), "--patience", "1"};
    // What a daemon that dies has in host memory is lost (ADR 16): integration.evict_test.
    if (how.keeper) flags.insert(flags.end(), {"--host-memory", "0"});
    return flags;
  }
  void Run(const cli::JobGroup::Observer& observer = nullptr) {
    Finish(jobs, Calls() > 10'000 ? 3'000'000 : 300'000, [&](cli::JobGroup& running) {
      if (how.in_turn) SeeToCompany();
      if (observer) observer(running);
    });
  }
  void ExpectAllWell() {
    uint64_t imports = 0;
    for (const cli::JobProcess& job : jobs.jobs()) {
      ASSERT_TRUE(job.status().ok()) << Describe(job);
      imports += Number(job.out(), "imports");
      const uint64_t calls = wanted[static_cast<size_t>(&job - jobs.jobs().data())];
      EXPECT_GE(Number(job.out(), "calls"), calls);
      // One after each thousand calls of all threads together; one step is at most a few calls.
      EXPECT_GE(QuietPoints(job), calls / 1100);
      Print(job);
      if (calls == Calls()) ExpectEverything(job);
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
  void Print(const cli::JobProcess& job) const {
    const auto figure = [&](const char* key) -> unsigned long long {  // NOLINT: printf
      return Number(job.out(), key);
    };
    std::printf("%s: %llu calls (%llu without pressure, %llu with it), %llu quiet points,",
                job.label().c_str(), figure("calls"), figure("calm"), figure("pressed"),
                static_cast<unsigned long long>(QuietPoints(job)));  // NOLINT: printf
    std::printf(" %llu refused, %llu graphs, %llu imports\n", figure("refused"), figure("graphs"),
                figure("imports"));
    if (how.contexts) {
      std::printf("  %llu contexts, %llu green ones, %llu ends of the shared one, %llu with the",
                  figure("contexts"), figure("greens"), figure("moves"), figure("carried"));
      std::printf(
          " session in another; %llu blocks went from one to another, %llu ended with one\n",
          figure("moved"), figure("ended"));
    }
    if (how.leases) {
      std::printf("  %llu times physical memory of the pool, %llu reads through another mapping\n",
                  figure("leased"), figure("compared"));
    }
  }
  /// One that had calls enough for everything to happen.
  void ExpectEverything(const cli::JobProcess& job) {
    const auto expect_some = [&](const char* key) { EXPECT_GT(Number(job.out(), key), 0u) << key; };
    expect_some("refused");  // at the limit
    expect_some("graphs");
    if (how.contexts) {
      EXPECT_GT(Number(job.out(), "contexts"), 1u) << "none came after another";
      for (const char* key : {"moved", "ended", "greens", "moves", "carried"}) expect_some(key);
    }
    if (how.leases) {
      for (const char* key : {"leased", "compared"}) expect_some(key);
      expect_some("kept");  // an export of what is lent, refused
    }
    if (how.in_turn && &job == &jobs.jobs().front()) {
      expect_some("calm");
      expect_some("pressed");
    }
  }

  How how;
  TestBed bed;
  cli::JobGroup jobs;
  std::vector<uint64_t> wanted;  // calls of each
  InputPipe company;
  uint64_t companies = 0;
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

// There is pressure only while there is another job, so the library goes from one way of keeping
// blocks and marks to the other and back.
TEST(Accounting, TheyAgreeWhilePressureComesAndGoesBesideOtherContexts) {
  Churn churn({.contexts = true, .in_turn = true});
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
    // `sluice run` that finds no daemon just then starts one of its own.
    if (running.jobs().back().out().empty()) return;
    ++restarts;
    // What was charged for a context stays, whatever the next daemon is told that one costs.
    const bool dearer = restarts == 2 && !how.contexts && !how.in_turn;
    churn.bed.SetFlags(Churn::Flags(how, dearer ? 3 * hooks::kContext : hooks::kContext));
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

TEST(Accounting, TheyAgreeOnLeasedPhysicalMemoryBehindARestartWhilePressureComesAndGoes) {
  ExpectAgreementBehindRestarts({.keeper = true, .leases = true, .in_turn = true});
}

}  // namespace
}  // namespace sluice::testing
