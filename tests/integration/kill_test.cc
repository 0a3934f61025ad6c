// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <memory>
#include <random>

#include "tests/support/peer.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;
using scheduler::JobId;
using scheduler::Record;

constexpr int kWaitMs = 20'000;
constexpr uint64_t kSeed = 20261121;

/// How many kills: 50 unless SLUICE_KILLS says otherwise (the soak asks for 200).
unsigned Kills() {
  const char* text = ::getenv("SLUICE_KILLS");
  return text == nullptr ? 50 : static_cast<unsigned>(std::stoul(text));
}

std::vector<std::string> Victim(const std::vector<std::string>& extra) {
  std::vector<std::string> command = {
      Program("WORKLOAD"), "--iterations", "10",     "--blocks", "12", "--block-bytes", "512KiB",
      "--base-bytes",      "1MiB",         "--seed", "7"};
  command.insert(command.end(), extra.begin(), extra.end());
  return command;
}

/// One daemon and one long-lived job; many others come and are killed beside it.
class KillTest : public ::testing::Test {
 protected:
  KillTest() {
    BedOptions options;
    options.gpu_memory = "64MiB";
    options.pool = "16MiB";  // the peer's peak is 11 MiB, the victim's 7 MiB
    bed_ = std::make_unique<TestBed>(options);
    peer_ = std::make_unique<Peer>(*bed_);
    peer_->AwaitProfile();
    gpu_bytes_before_ = GpuBytes();
  }

  /// Runs a victim until it kills itself, then waits for the daemon to have everything back.
  void KillAt(uint64_t operation, bool fork_child) {
    SCOPED_TRACE("operation " + std::to_string(operation) + (fork_child ? ", with a child" : ""));
    std::vector<std::string> extra = {"--kill-self-at-op", std::to_string(operation)};
    if (fork_child) extra.insert(extra.end(), {"--fork-at-launch", "1"});
    InputPipe child_input = MakeInputPipe();
    EventLog& log = bed_->log();
    const size_t start = log.Read().size();
    cli::JobProcess victim = bed_->Run({.label = "victim",
                                        .command = Victim(extra),
                                        .run_flags = {"--limit", "8MiB", "--request", "2MiB"},
                                        .input = child_input.read_end.get()});
    child_input.read_end.reset();
    ASSERT_EQ(victim.status().signal, SIGKILL) << Describe(victim);
    const std::optional<JobId> job = AdmittedSince(start);
    if (!job) {
      ASSERT_FALSE(fork_child) << Describe(victim);
      AwaitOnlyPeer();
      return;  // it died before it had a session
    }
    const auto gone = [&](const std::vector<Record>& records) {
      return std::any_of(records.begin() + static_cast<std::ptrdiff_t>(start), records.end(),
                         [&](const Record& record) {
                           return record.job == *job && (record.event == EventKind::kFree ||
                                                         record.event == EventKind::kLeave);
                         });
    };
    if (fork_child) {
      ASSERT_NE(Value(victim.out(), "forked"), "") << Describe(victim);
      ASSERT_TRUE(log.Await(
          [&](const auto&) { return log.Find(EventKind::kDeath, *job).has_value(); }, kWaitMs));
      // The daemon has seen the death; if it were wrong, it would have freed before it answers
      // this.
      bed_->Status();
      EXPECT_FALSE(gone(log.Read())) << "freed while a forked child holds the memory";
    }
    child_input.write_end.reset();
    ASSERT_TRUE(log.Await(gone, kWaitMs)) << "not freed\n" << Describe(victim);
    ExpectNothingGrantedBeforeFree(*job);
    ExpectNothingLeaks(*job);
  }

  std::optional<JobId> AdmittedSince(size_t start) {
    const std::vector<Record>& records = bed_->log().Read();
    for (size_t i = start; i < records.size(); ++i) {
      if (records[i].event == EventKind::kAdmit) return records[i].job;
    }
    return std::nullopt;
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
    EventLog& log = bed_->log();
    const auto death = log.Find(EventKind::kDeath, job);
    if (!death) return;  // it never had a session
    const auto freed = log.Find(EventKind::kFree, job);
    const std::vector<Record>& records = log.Read();
    const std::vector<bool> held = UnitsHeld(records, job, *death);
    for (size_t i = *death; i < freed.value_or(records.size()); ++i) {
      if (records[i].event != EventKind::kGrant && records[i].event != EventKind::kGate) continue;
      for (const scheduler::Extent& extent : records[i].extents) {
        for (scheduler::Units unit = extent.offset; unit < extent.end(); ++unit) {
          ASSERT_FALSE(held.at(unit)) << "unit " << unit << " granted in record " << i;
        }
      }
    }
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

  uint64_t GpuBytes() { return bed_->gpu().Stats().at("memory_used").get<uint64_t>(); }

  std::unique_ptr<TestBed> bed_;
  std::unique_ptr<Peer> peer_;
  uint64_t gpu_bytes_before_ = 0;
};

TEST_F(KillTest, NothingLeaksAndThePeerComputesTheSame) {
  // How many driver calls a victim makes when nobody stops it.
  const cli::JobProcess whole =
      bed_->Run({.label = "victim alone", .command = Victim({}), .under_sluice = false});
  ASSERT_TRUE(whole.status().ok()) << Describe(whole);
  const uint64_t operations = Number(whole.out(), "operations");

  std::mt19937_64 random(kSeed);
  for (unsigned i = 0; i < Kills() && !HasFailure(); ++i) {
    // A quarter with a child: those die after their first launches, so that there is one.
    const bool fork_child = i % 4 == 3;
    const uint64_t first = fork_child ? operations / 4 : 1;
    ASSERT_NO_FATAL_FAILURE(KillAt(first + random() % (operations - first), fork_child));
  }

  peer_->FinishAndCompare();
  bed_->StopDaemon();
  EXPECT_EQ(bed_->gpu().Stats().at("oracle_violations"), 0);
  const scheduler::AuditReport report = bed_->log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
}

}  // namespace
}  // namespace sluice::testing
