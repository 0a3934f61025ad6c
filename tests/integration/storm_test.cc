// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Daemon, keeper and clients are killed in any order, while memory is lent. A job is lost only by
// being killed itself, or with a daemon that has no keeper at that moment.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "common/bytes.h"
#include "tests/support/restart_bed.h"

namespace sluice::testing {
namespace {

constexpr uint64_t kSeed = 20261128;
/// Jobs side by side. Their peaks do not fit together.
constexpr size_t kJobs = 3;
/// Kills on one test bed: each daemon has a log of its own.
constexpr unsigned kKillsOnABed = 20;
/// Iterations of all jobs between two kills, at most; often none.
constexpr uint64_t kMostIterations = 80;

/// How many kills: 40 unless SLUICE_STORM says otherwise (the soak asks for 300).
unsigned Kills() {
  const char* text = ::getenv("SLUICE_STORM");
  return text == nullptr ? 40 : static_cast<unsigned>(std::stoul(text));
}

std::vector<std::string> Command() {
  return {Program("WORKLOAD"),
          "--iterations",
          "50",
          "--blocks",
          "12",
          "--block-bytes",
          "512KiB",
          "--base-bytes",
          "1MiB",
          "--seed",
          "7",
          "--sync",
          "iteration",
          "--progress"};
}

/// What was killed, and which jobs with it.
struct Toll {
  unsigned daemons = 0;
  unsigned keepers = 0;
  unsigned clients = 0;
  unsigned mortal = 0;  // daemons without a keeper
  size_t finished = 0;  // jobs that came to their end
  size_t excused = 0;   // jobs whose daemon died without a keeper
  uint64_t lent = 0;    // bytes, within iterations
  unsigned all() const { return daemons + keepers + clients; }
};

class Storm {
 public:
  Storm(unsigned kills, std::string digest, std::mt19937_64* random, Toll* toll)
      : kills_(kills), digest_(std::move(digest)), random_(*random), toll_(*toll) {}

  void Run() {
    AwaitKeeper(bed_);
    StartJobs(&jobs_);
    Finish(jobs_, 5 * kRestartWaitMs, [this](cli::JobGroup& jobs) { Step(&jobs); });
    EXPECT_EQ(killed_, kills_);
    for (size_t i = 0; i < jobs_.jobs().size(); ++i) ExpectItsDue(i);
    const nlohmann::json last = AwaitStatus(bed_, NoJobs);
    EXPECT_EQ(last.at("free_bytes"), last.at("pool_bytes")) << last.dump(1);
    bed_.StopDaemon();
    EXPECT_EQ(bed_.GpuStats().oracle_violations, 0u);
    for (const auto& log : bed_.logs()) {
      const scheduler::AuditReport report = log->Audit();
      EXPECT_TRUE(report.ok()) << log->path() << "\n" << Violations(report);
      toll_.lent += report.lent_bytes_within_iterations;
    }
  }

 private:
  static BedOptions Options() {
    BedOptions options = SmallBed();
    options.gpu_memory = "96MiB";
    // What a daemon has in host memory ends with it: another matter (docs/operations/failures.md).
    options.noded_flags = {"--host-memory", "0"};
    return options;
  }
  static std::vector<size_t> Alive(cli::JobGroup& jobs) {
    std::vector<size_t> alive;
    for (size_t i = 0; i < jobs.jobs().size(); ++i) {
      if (!jobs.jobs()[i].ended()) alive.push_back(i);
    }
    return alive;
  }
  static uint64_t Iterations(cli::JobGroup& jobs) {
    uint64_t sum = 0;
    for (const cli::JobProcess& job : jobs.jobs()) sum += job.out().size();
    return sum;
  }
  /// So that there are kJobs, each registered with the daemon: a program that is about to be
  /// started by a launcher which loses its daemon is not started, and says why.
  void StartJobs(cli::JobGroup* jobs) {
    while (Alive(*jobs).size() < kJobs) {
      const auto highest = [](const nlohmann::json& status) {
        uint32_t most = 0;
        for (const char* list : {"jobs", "ended"}) {
          for (const nlohmann::json& job : status.at(list)) {
            most = std::max(most, job.at("id").get<uint32_t>());
          }
        }
        return most;
      };
      const uint32_t before = std::max(last_id_, highest(bed_.Status()));
      jobs->Add(bed_.Start({.label = "job " + std::to_string(jobs->jobs().size()),
                            .command = Command(),
                            .run_flags = {"--limit", "8MiB", "--request", "2MiB"}}));
      last_id_ = highest(AwaitStatus(
          bed_, [&](const nlohmann::json& status) { return highest(status) > before; }));
    }
  }

  void Step(cli::JobGroup* jobs) {
    if (::testing::Test::HasFailure()) return jobs->KillAll();
    if (down_) {
      // Those whose daemon is gone for good come to an end by themselves.
      if (!Alive(*jobs).empty()) return;
      bed_.StartDaemon();
      last_id_ = 0;
      down_ = false;
    }
    if (killed_ == kills_) return;  // who is there comes to its end
    StartJobs(jobs);
    if (Iterations(*jobs) < next_kill_) return;
    Kill(jobs);
    next_kill_ = Iterations(*jobs) + random_() % 2 * (random_() % kMostIterations);
  }

  void Kill(cli::JobGroup* jobs) {
    switch (random_() % 3) {
      case 0:
        return KillDaemon();
      case 1:
        return KillKeeper(jobs);
      default:
        return KillClient(jobs);
    }
  }
  void KillDaemon() {
    // Whether it has a keeper is known: nobody else ends one. It may not have heard of the last
    // end.
    AwaitKeeper(bed_, last_killed_);
    ++killed_, ++toll_.daemons;
    bed_.RestartDaemon();
    EXPECT_EQ(bed_.Status().at("figures").at("adopted"), 1);
  }
  void KillKeeper(cli::JobGroup* jobs) {
    const pid_t keeper = AwaitKeeper(bed_, last_killed_);
    last_killed_ = keeper;
    // Now and then the daemon in the same moment: before it hears of that.
    const bool both = killed_ + 1 < kills_ && random_() % 5 == 0;
    if (both) StopTheDaemon();
    ++killed_, ++toll_.keepers;
    ASSERT_EQ(::kill(keeper, SIGKILL), 0);
    if (!both) return;
    ++killed_, ++toll_.daemons, ++toll_.mortal;
    bed_.KillDaemon();
    down_ = true;
    for (const size_t job : Alive(*jobs)) excused_.insert(job);
  }
  void StopTheDaemon() const {
    ASSERT_EQ(::kill(bed_.daemon_pid(), SIGSTOP), 0);
    siginfo_t info = {};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(bed_.daemon_pid()), &info, WSTOPPED | WNOWAIT), 0);
  }
  void KillClient(cli::JobGroup* jobs) {
    const std::vector<size_t> alive = Alive(*jobs);
    ++killed_, ++toll_.clients;
    const size_t victim = alive[random_() % alive.size()];
    jobs->jobs()[victim].Signal(SIGKILL);
    victims_.insert(victim);
  }

  void ExpectItsDue(size_t index) {
    const cli::JobProcess& job = jobs_.jobs()[index];
    if (victims_.contains(index)) return;
    if (excused_.contains(index)) {
      ++toll_.excused;
      return;
    }
    ++toll_.finished;
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    EXPECT_EQ(Value(job.out(), "mismatches"), "0") << Describe(job);
    EXPECT_EQ(Value(job.out(), "digest"), digest_) << Describe(job);
  }

  const unsigned kills_;
  const std::string digest_;
  std::mt19937_64& random_;
  Toll& toll_;
  TestBed bed_{Options()};
  cli::JobGroup jobs_;
  std::set<size_t> victims_;
  std::set<size_t> excused_;
  unsigned killed_ = 0;
  uint64_t next_kill_ = 0;
  uint32_t last_id_ = 0;
  pid_t last_killed_ = 0;  // keeper
  bool down_ = false;      // the daemon, which had no keeper
};

std::string DigestAlone() {
  BedOptions options = SmallBed();
  options.start_noded = false;
  options.oracle = false;
  const TestBed bed(options);
  const cli::JobProcess alone =
      bed.Run({.label = "alone", .command = Command(), .under_sluice = false});
  EXPECT_TRUE(alone.status().ok()) << Describe(alone);
  return Value(alone.out(), "digest");
}

TEST(Storm, NoJobIsLostThatHadAKeeper) {
  const std::string digest = DigestAlone();
  std::mt19937_64 random(kSeed);
  Toll toll;
  for (unsigned left = Kills(); left > 0 && !::testing::Test::HasFailure();) {
    const unsigned kills = std::min(left, kKillsOnABed);
    Storm(kills, digest, &random, &toll).Run();
    left -= kills;
  }
  std::printf(
      "%u kills: %u daemons (%u without a keeper), %u keepers, %u clients; %zu jobs came to their "
      "end, %zu had a daemon that died without a keeper; %.1f MiB lent within iterations\n",
      toll.all(), toll.daemons, toll.mortal, toll.keepers, toll.clients, toll.finished,
      toll.excused, static_cast<double>(toll.lent) / static_cast<double>(kMiB));
  EXPECT_EQ(toll.all(), Kills());
  EXPECT_GT(toll.finished, 0u);
  EXPECT_GT(toll.lent, 0u);
}

}  // namespace
}  // namespace sluice::testing
