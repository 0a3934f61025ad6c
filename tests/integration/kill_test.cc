// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "tests/support/peer.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;
using scheduler::JobId;
using scheduler::Record;

constexpr int kWaitMs = 20'000;
constexpr uint64_t kSeed = 20261121;
/// What the peer computes while a dead job's child lives: time enough to be given its memory.
constexpr size_t kIterationsBesideAChild = 5;

/// How many kills: 50 unless SLUICE_KILLS says otherwise (the soak asks for 300).
unsigned Kills() {
  const char* text = ::getenv("SLUICE_KILLS");
  return text == nullptr ? 50 : static_cast<unsigned>(std::stoul(text));
}

/// Long enough to be profiled after a fifth of it and to lend for the rest.
std::vector<std::string> Victim(const std::string& blocks) {
  return {
      Program("WORKLOAD"), "--iterations", "60",     "--blocks", blocks, "--block-bytes", "512KiB",
      "--base-bytes",      "1MiB",         "--seed", "7"};
}
/// Its peak is 7 MiB: with the peer's 11 MiB more than the pool, so that memory is lent.
const char kBlocks[] = "12";
/// Its peak is 2 MiB: the peer can go on at once beside what stays with its child, wherever that
/// lies.
const char kBlocksBesideAChild[] = "2";
/// Its peak is 3 MiB: what is free beside that has room for the peer's claim, and not in every
/// shape that the peer may ask for.
const char kPiecesBesideAChild[] = "4";
/// Its peak is 4 MiB: the peer's need fits beside that, and its claim, with a margin, does not.
const char kLittleBesideAChild[] = "6";

/// What became of a dead job's units between two records of the log.
struct Estate {
  scheduler::Units units = 0;  // that it held when it died
  bool freed = false;
  std::string granted;  // says which unit was the first to go to somebody; empty: none did
};

Estate EstateOf(const std::vector<Record>& records, JobId job, size_t death, size_t end) {
  const std::vector<bool> held = UnitsHeld(records, job, death);
  Estate estate;
  estate.units = static_cast<scheduler::Units>(std::count(held.begin(), held.end(), true));
  for (size_t i = death; i < end; ++i) {
    estate.freed = estate.freed || (records[i].event == EventKind::kFree && records[i].job == job);
    if (records[i].event != EventKind::kGrant && records[i].event != EventKind::kGate) continue;
    for (const scheduler::Extent& extent : records[i].extents) {
      for (scheduler::Units unit = extent.offset; unit < extent.end(); ++unit) {
        if (!held.at(unit) || !estate.granted.empty()) continue;
        estate.granted = "unit " + std::to_string(unit) + " to job " +
                         std::to_string(records[i].job) + " in record " + std::to_string(i);
      }
    }
  }
  return estate;
}

/// One daemon and one long-lived job; many others come and are killed beside it.
class KillBed {
 public:
  /// `faults` go to a daemon into which defects can be planted; without any it is the real one.
  explicit KillBed(const std::vector<std::string>& flags = {},
                   const std::vector<std::string>& faults = {}) {
    BedOptions options;
    options.gpu_memory = "64MiB";
    options.pool = "16MiB";
    if (!faults.empty()) options.noded = Program("NODED_WITH_FAULTS");
    options.noded_flags = flags;
    options.noded_flags.insert(options.noded_flags.end(), faults.begin(), faults.end());
    bed_ = std::make_unique<TestBed>(options);
    peer_ = std::make_unique<Peer>(*bed_);
    peer_->AwaitProfile();
    gpu_bytes_before_ = GpuBytes();
  }

  /// How many driver calls a victim makes when nobody stops it, by the line that says so.
  uint64_t OperationsOf(const std::vector<std::string>& command,
                        const std::string& line = "operations") {
    const cli::JobProcess whole =
        bed_->Run({.label = "victim alone", .command = command, .under_sluice = false});
    EXPECT_TRUE(whole.status().ok()) << Describe(whole);
    return Number(whole.out(), line);
  }

  /// Runs a victim until it kills itself, then waits for the daemon to have everything back.
  void KillAt(std::vector<std::string> command, uint64_t operation, bool fork_child) {
    SCOPED_TRACE("operation " + std::to_string(operation) + (fork_child ? ", with a child" : ""));
    command.insert(command.end(), {"--kill-self-at-op", std::to_string(operation)});
    if (fork_child) command.insert(command.end(), {"--fork-at-launch", "1"});
    const size_t start = log().Read().size();
    InputPipe child_input = MakeInputPipe();
    cli::JobProcess victim = Start(command, child_input);
    Finish(victim, 60'000);
    ASSERT_EQ(victim.status().signal, SIGKILL) << Describe(victim);
    const std::optional<JobId> job = AdmittedSince(start);
    if (!job) {
      ASSERT_FALSE(fork_child) << Describe(victim);
      AwaitOnlyPeer();
      return;  // it died before it had a session
    }
    if (fork_child) {
      ASSERT_NE(Value(victim.out(), "forked"), "") << Describe(victim);
      const Estate estate = EstateBesideTheChild(*job);
      EXPECT_GT(estate.units, 0u);
      EXPECT_FALSE(estate.freed) << "freed while a forked child holds the memory";
      EXPECT_EQ(estate.granted, "") << "granted while a forked child holds the memory";
    }
    child_input.write_end.reset();
    ASSERT_TRUE(log().Await(
        [&](const std::vector<Record>& records) {
          return std::any_of(records.begin() + static_cast<std::ptrdiff_t>(start), records.end(),
                             [&](const Record& record) {
                               return record.job == *job && (record.event == EventKind::kFree ||
                                                             record.event == EventKind::kLeave);
                             });
        },
        kWaitMs))
        << "not freed\n"
        << Describe(victim);
    ExpectNothingGrantedBeforeFree(*job);
    ExpectNothingLeaks(*job);
  }

  /// Kills a job that holds `bytes` and has a forked child, and reports as KillAt() checks.
  Estate KillHolding(const std::string& bytes) {
    InputPipe child_input = MakeInputPipe();
    const std::optional<JobId> job = KillHolder(bytes, child_input);
    return job ? EstateBesideTheChild(*job) : Estate();
  }

  /// The same where so little is left that the peer cannot go on: it is refused what it needs.
  Estate KillHoldingWhatThePeerNeeds(const std::string& bytes) {
    InputPipe child_input = MakeInputPipe();
    const std::optional<JobId> job = KillHolder(bytes, child_input);
    if (!job) return {};
    const cli::JobProcess& peer = peer_->AwaitOutOfMemory();
    EXPECT_TRUE(std::any_of(peer.err().begin(), peer.err().end(), [](const std::string& line) {
      return line.find("a process that it started lives on") != std::string::npos;
    })) << Describe(peer);
    const std::vector<Record>& records = log().Read();
    const auto death = log().Find(EventKind::kDeath, *job);
    return death ? EstateOf(records, *job, *death, records.size()) : Estate();
  }

  scheduler::AuditReport ExpectAllWell() {
    peer_->FinishAndCompare();
    return ExpectSoundLog();
  }
  scheduler::AuditReport ExpectSoundLog() {
    bed_->StopDaemon();
    EXPECT_EQ(bed_->GpuStats().oracle_violations, 0u);
    const scheduler::AuditReport report = log().Audit();
    EXPECT_TRUE(report.ok()) << Violations(report);
    return report;
  }

  /// Of the jobs that died holding memory: all, those behind a gate that their profile opened, and
  /// those with units that the GPU was not known to be done with.
  struct Deaths {
    size_t all = 0;
    size_t behind_gates = 0;
    size_t with_open_fences = 0;
  };
  Deaths CountDeaths() {
    Deaths deaths;
    std::map<JobId, bool> gated;
    std::map<JobId, std::set<scheduler::ReleaseId>> open;
    for (const Record& record : log().Read()) {
      if (record.event == EventKind::kGate) gated[record.job] = record.profiled;
      if (record.event == EventKind::kRelease) open[record.job].insert(record.release);
      if (record.event == EventKind::kFenced) open[record.job].erase(record.release);
      if (record.event != EventKind::kDeath || record.job == peer_->job()) continue;
      ++deaths.all;
      deaths.behind_gates += size_t{gated[record.job]};
      deaths.with_open_fences += size_t{!open[record.job].empty()};
    }
    return deaths;
  }

 private:
  EventLog& log() { return bed_->log(); }

  std::optional<JobId> KillHolder(const std::string& bytes, InputPipe& child_input) {
    const size_t start = log().Read().size();
    cli::JobGroup group;
    group.Add(Start({Program("WORKLOAD"), "--one-shot", "--block-bytes", bytes, "--hold",
                     "--fork-at-launch", "1"},
                    child_input));
    Finish(group, 60'000, [](cli::JobGroup& running) {
      const cli::JobProcess& victim = running.jobs().front();
      const bool holding =
          std::find(victim.out().begin(), victim.out().end(), "holding") != victim.out().end();
      if (holding && !victim.ended()) victim.Signal(SIGKILL);
    });
    EXPECT_EQ(group.jobs().front().status().signal, SIGKILL) << Describe(group.jobs().front());
    const std::optional<JobId> job = AdmittedSince(start);
    if (!job) ADD_FAILURE() << Describe(group.jobs().front());
    return job;
  }

  cli::JobProcess Start(const std::vector<std::string>& command, InputPipe& input) {
    cli::JobProcess victim = bed_->Start({.label = "victim",
                                          .command = command,
                                          .run_flags = {"--limit", "8MiB", "--request", "2MiB"},
                                          .input = input.read_end.get()});
    input.read_end.reset();
    return victim;
  }

  std::optional<JobId> AdmittedSince(size_t start) {
    const std::vector<Record>& records = log().Read();
    for (size_t i = start; i < records.size(); ++i) {
      if (records[i].event == EventKind::kAdmit) return records[i].job;
    }
    return std::nullopt;
  }

  /// From its death until the peer has gone on for a while; the child lives all that time.
  Estate EstateBesideTheChild(JobId job) {
    EXPECT_TRUE(log().Await(
        [&](const auto&) { return log().Find(EventKind::kDeath, job).has_value(); }, kWaitMs));
    EXPECT_TRUE(peer_->AwaitIterations(kIterationsBesideAChild))
        << "the peer stands still beside the quarantine\n"
        << bed_->Status().dump(1);
    const auto death = log().Find(EventKind::kDeath, job);
    if (!death) return {};
    return EstateOf(log().Read(), job, *death, log().Read().size());
  }

  /// Until the daemon knows of no job but the peer: each question is a round trip through its loop.
  void AwaitOnlyPeer() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kWaitMs);
    while (bed_->Status().at("jobs").size() > 1) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << bed_->Status().dump(1);
    }
  }

  /// The dead job's units go to nobody before its last holder is gone.
  void ExpectNothingGrantedBeforeFree(JobId job) {
    const auto death = log().Find(EventKind::kDeath, job);
    if (!death) return;  // it never had a session
    const auto freed = log().Find(EventKind::kFree, job);
    const std::vector<Record>& records = log().Read();
    EXPECT_EQ(EstateOf(records, job, *death, freed.value_or(records.size())).granted, "");
  }

  void ExpectNothingLeaks(JobId job) {
    ASSERT_NO_FATAL_FAILURE(AwaitOnlyPeer());
    const nlohmann::json status = bed_->Status();
    uint64_t held = 0;
    for (const nlohmann::json& other : status.at("jobs")) {
      EXPECT_NE(other.at("id"), job) << status.dump(1);
      held += other.at("held_bytes").get<uint64_t>();
    }
    EXPECT_EQ(status.at("free_bytes").get<uint64_t>() + held,
              status.at("pool_bytes").get<uint64_t>())
        << status.dump(1);
    EXPECT_EQ(GpuBytes(), gpu_bytes_before_);
  }

  uint64_t GpuBytes() { return bed_->GpuStats().memory_used; }

  std::unique_ptr<TestBed> bed_;
  std::unique_ptr<Peer> peer_;
  uint64_t gpu_bytes_before_ = 0;
};

TEST(Kill, NothingLeaksAndThePeerComputesTheSame) {
  KillBed bed;
  const uint64_t operations = bed.OperationsOf(Victim(kBlocks));
  const uint64_t operations_beside_a_child = bed.OperationsOf(Victim(kBlocksBesideAChild));
  std::mt19937_64 random(kSeed);
  for (unsigned i = 0; i < Kills() && !::testing::Test::HasFailure(); ++i) {
    if (i % 4 != 3) {
      ASSERT_NO_FATAL_FAILURE(
          bed.KillAt(Victim(kBlocks), 1 + random() % (operations - 1), /*fork_child=*/false));
      continue;
    }
    // A quarter with a child: those die after their first launches, so that there is one.
    const uint64_t first = operations_beside_a_child / 4;
    ASSERT_NO_FATAL_FAILURE(bed.KillAt(Victim(kBlocksBesideAChild),
                                       first + random() % (operations_beside_a_child - first),
                                       /*fork_child=*/true));
  }
  EXPECT_GT(bed.ExpectAllWell().lent_bytes_within_iterations, 0u);
  const auto deaths = bed.CountDeaths();
  std::printf("%zu died holding memory, %zu behind a gate of their profile, %zu with open fences\n",
              deaths.all, deaths.behind_gates, deaths.with_open_fences);
  EXPECT_GE(5 * deaths.behind_gates, deaths.all) << "too few were lending when they died";
  // About one in twenty.
  if (deaths.all >= 150) {
    EXPECT_GT(deaths.with_open_fences, 0u);
  }
}

// Children that hold the driver's files live on after each of so many deaths: 40 unless
// SLUICE_KILLS says otherwise (the soak asks for 300). Until the child is gone, nobody gets a unit.
TEST(Kill, AChildThatHoldsTheDriversFilesKeepsTheMemoryAtAnyMoment) {
  KillBed bed;
  const uint64_t operations = bed.OperationsOf(Victim(kBlocksBesideAChild));
  std::mt19937_64 random(kSeed + 1);
  const unsigned kills = ::getenv("SLUICE_KILLS") == nullptr ? 40 : Kills();
  for (unsigned i = 0; i < kills && !::testing::Test::HasFailure(); ++i) {
    const uint64_t first = operations / 4;  // after the first launches, so that there is a child
    ASSERT_NO_FATAL_FAILURE(bed.KillAt(Victim(kBlocksBesideAChild),
                                       first + random() % (operations - first),
                                       /*fork_child=*/true));
  }
  bed.ExpectAllWell();
}

// The same with a capture open on another stream for most of a victim's life: 10 moments unless
// SLUICE_KILLS says otherwise.
TEST(Kill, AtAnyMomentOfACapture) {
  KillBed bed;
  std::vector<std::string> victim = Victim(kBlocks);
  victim.emplace_back("--capture");
  const uint64_t operations = bed.OperationsOf(victim);
  EXPECT_GT(4 * bed.OperationsOf(victim, "operations_beside_a_capture"), 3 * operations);
  std::mt19937_64 random(kSeed + 2);
  const unsigned kills = ::getenv("SLUICE_KILLS") == nullptr ? 10 : Kills();
  for (unsigned i = 0; i < kills && !::testing::Test::HasFailure(); ++i) {
    ASSERT_NO_FATAL_FAILURE(
        bed.KillAt(victim, 1 + random() % (operations - 1), /*fork_child=*/false));
  }
  bed.ExpectAllWell();
}

// Beside children that keep more the peer goes on as well: after a second where it may meet its own
// fragmentation, and as soon as nobody waits for the child any more (here after 2 s) with a smaller
// claim. 4 deaths each; with SLUICE_KILLS a tenth of that, for each takes its seconds.
TEST(Kill, BesideAChildThatKeepsMuchThePeerGoesOn) {
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {kPiecesBesideAChild, {}}, {kLittleBesideAChild, {"--lease-wait", "2"}}};
  for (const auto& [blocks, flags] : cases) {
    SCOPED_TRACE(std::string("blocks: ") + blocks);
    KillBed bed(flags);
    const uint64_t operations = bed.OperationsOf(Victim(blocks));
    std::mt19937_64 random(kSeed + 3);
    const unsigned kills = ::getenv("SLUICE_KILLS") == nullptr ? 4 : (Kills() + 9) / 10;
    for (unsigned i = 0; i < kills && !::testing::Test::HasFailure(); ++i) {
      const uint64_t first = operations / 4;
      ASSERT_NO_FATAL_FAILURE(bed.KillAt(Victim(blocks), first + random() % (operations - first),
                                         /*fork_child=*/true));
    }
    bed.ExpectAllWell();
  }
}

// Less is left than the peer's peak: it is refused that, aloud and in time, and not waited out.
TEST(Kill, WhatAChildKeepsIsRefusedToThePeerInTheEnd) {
  KillBed bed({"--lease-wait", "2"});
  const Estate estate = bed.KillHoldingWhatThePeerNeeds("6MiB");
  EXPECT_GE(estate.units, 24u);
  EXPECT_FALSE(estate.freed);
  EXPECT_EQ(estate.granted, "");
  bed.ExpectSoundLog();
}

// What the tests above check beside a child can fail. The pool has less than the peer's peak beside
// what the victim holds, so that the peer cannot go on without the victim's units.
TEST(Kill, ASkippedQuarantineIsSeen) {
  KillBed bed({}, {"--fault", "skip_quarantine"});
  const Estate estate = bed.KillHolding("6MiB");
  EXPECT_GE(estate.units, 24u);
  EXPECT_TRUE(estate.freed);
  EXPECT_NE(estate.granted, "");
}

}  // namespace
}  // namespace sluice::testing
