// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "common/bytes.h"
#include "noderuntime/cli/daemon_client.h"
#include "tests/support/peer.h"
#include "tests/support/raw_client.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;

BedOptions SmallPool() {
  BedOptions options;
  options.gpu_memory = "64MiB";
  options.pool = "16MiB";
  return options;
}

std::vector<std::string> Workload(std::vector<std::string> flags) {
  flags.insert(flags.begin(), Program("WORKLOAD"));
  return flags;
}

/// Lines of a job's standard error that the library wrote.
std::vector<std::string> SluiceLines(const cli::JobProcess& job) {
  std::vector<std::string> lines;
  for (const std::string& line : job.err()) {
    if (line.starts_with("sluice")) lines.push_back(line);
  }
  return lines;
}

bool Says(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST(Limits, MoreThanTheLimitIsRefusedAtOnceAndPeersDoNotNotice) {
  TestBed bed(SmallPool());
  Peer peer(bed);
  peer.AwaitProfile();
  const cli::JobProcess job =
      bed.Run({.label = "job",
               .command = Workload({"--over-limit", "6MiB", "--blocks", "4", "--iterations", "3"}),
               .run_flags = {"--limit", "4MiB"}});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_EQ(Value(job.out(), "over_limit"), "CUDA_ERROR_OUT_OF_MEMORY");
  const std::vector<std::string> said = SluiceLines(job);
  EXPECT_TRUE(Says(said, "limit")) << Describe(job);
  EXPECT_TRUE(Says(said, "4.0 MiB")) << Describe(job);
  peer.FinishAndCompare();
}

TEST(Limits, AtOnceMeansWithoutWaitingForOthers) {
  TestBed bed(SmallPool());
  const cli::JobProcess job = bed.Run({.label = "job",
                                       .command = Workload({"--over-limit", "12MiB", "--one-shot"}),
                                       .run_flags = {"--limit", "8MiB"}});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  // A denial needs one round trip; waiting for memory is bounded by seconds.
  EXPECT_LT(Number(job.out(), "over_limit_us"), 900'000u);
}

TEST(Limits, AJobThatExceedsItsLimitInItsCycleIsToldSo) {
  TestBed bed(SmallPool());
  Peer peer(bed);
  peer.AwaitProfile();
  const cli::JobProcess job =
      bed.Run({.label = "job",
               .command = Workload({"--blocks", "8", "--block-bytes", "512KiB", "--iterations",
                                    "40", "--grow-at", "20:4MiB"}),
               .run_flags = {"--limit", "6MiB"}});
  EXPECT_EQ(job.status().code, 4) << Describe(job);
  EXPECT_TRUE(Says(SluiceLines(job), "limit")) << Describe(job);
  peer.FinishAndCompare();
}

// Who holds memory is asked for patience, not for an excuse: the second job goes on as soon as the
// first one ends, and says meanwhile whom it waits for.
TEST(Limits, WhatIsLentOutIsWaitedForAndSaidAloud) {
  BedOptions options = SmallPool();
  options.noded_flags = {"--patience", "5"};
  TestBed bed(options);
  InputPipe input = MakeInputPipe();
  cli::JobGroup group;
  group.Add(bed.Start({.label = "holder",
                       .command = Workload({"--one-shot", "--hold", "--block-bytes", "12MiB"}),
                       .run_flags = {"--limit", "13MiB"},
                       .input = input.read_end.get()}));
  bool waited = false;
  const auto observe = [&](cli::JobGroup& running) {
    const bool holding = Says(running.jobs().front().out(), "holding");
    if (holding && running.jobs().size() == 1) {
      running.Add(bed.Start({.label = "waiter",
                             .command = Workload({"--one-shot", "--block-bytes", "10MiB"}),
                             .run_flags = {"--limit", "11MiB"}}));
    }
    if (running.jobs().size() == 2 && !waited && !SluiceLines(running.jobs()[1]).empty()) {
      waited = true;
      // Longer than any bound that the daemon has for jobs that do nothing.
      EXPECT_FALSE(bed.log().Await(
          [&](const auto&) { return bed.log().Find(EventKind::kLeave, 2).has_value(); }, 10'000));
      input.write_end.reset();
    }
  };
  Finish(group, 60'000, observe);
  ASSERT_EQ(group.jobs().size(), 2u);
  const cli::JobProcess& waiter = group.jobs()[1];
  EXPECT_TRUE(group.jobs()[0].status().ok()) << Describe(group.jobs()[0]);
  EXPECT_TRUE(waiter.status().ok()) << Describe(waiter);
  const std::vector<std::string> said = SluiceLines(waiter);
  ASSERT_TRUE(waited) << Describe(waiter);
  EXPECT_TRUE(Says({said.front()}, "wait")) << said.front();
  EXPECT_TRUE(Says({said.front()}, "workload")) << "does not name the holder: " << said.front();
  EXPECT_TRUE(Says({said.front()}, "MiB")) << said.front();
}

TEST(Limits, JobsThatDoNotFitTogetherWaitForEachOtherAndGoOn) {
  TestBed bed(SmallPool());
  cli::JobGroup group;
  for (const char* seed : {"1", "2"}) {
    group.Add(bed.Start({.label = seed,
                         .command = Workload({"--blocks", "20", "--block-bytes", "512KiB",
                                              "--iterations", "60", "--seed", seed})}));
  }
  Finish(group);
  for (const cli::JobProcess& job : group.jobs()) {
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    EXPECT_EQ(Value(job.out(), "mismatches"), "0");
  }
  bed.StopDaemon();
  const scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  size_t waits = 0;
  for (const scheduler::Record& record : bed.log().Read()) {
    waits += record.event == scheduler::EventKind::kWait;
  }
  EXPECT_GT(waits, 0u);
}

TEST(Limits, WithoutADaemonTheFirstAllocationFailsWithOneLine) {
  BedOptions options = SmallPool();
  options.start_noded = false;
  const TestBed bed(options);
  const cli::JobProcess job =
      bed.Run({.label = "job",
               .command = Workload({"--one-shot"}),
               .environment = {{"SLUICE_SOCKET", bed.work().File("nobody.sock")},
                               {"LD_PRELOAD", Program("LIBRARY")}},
               .under_sluice = false});
  EXPECT_EQ(job.status().code, 4) << Describe(job);
  const std::vector<std::string> said = SluiceLines(job);
  ASSERT_EQ(said.size(), 1u) << Describe(job);
  EXPECT_NE(said.front().find("nobody.sock"), std::string::npos) << said.front();
}

// Dropping the variable that names the grant must not be a way to the whole GPU.
TEST(Limits, WithoutASocketTheFirstAllocationFailsWithOneLine) {
  const TestBed bed(SmallPool());
  const cli::JobProcess job = bed.Run({.label = "job",
                                       .command = Workload({"--one-shot"}),
                                       .environment = {{"LD_PRELOAD", Program("LIBRARY")}},
                                       .under_sluice = false});
  EXPECT_EQ(job.status().code, 4) << Describe(job);
  const std::vector<std::string> said = SluiceLines(job);
  ASSERT_EQ(said.size(), 1u) << Describe(job);
  EXPECT_NE(said.front().find("SLUICE_SOCKET"), std::string::npos) << said.front();
}

/// A job without a program, whose sessions a test speaks for line by line.
class SpokenJob {
 public:
  SpokenJob(const TestBed& bed, const cli::JobRequest& wanted)
      : bed_(bed), launcher_(*cli::DaemonClient::Connect(cli::DaemonSocket(bed.runtime_dir()))) {
    Result<cli::JobGrant> grant = launcher_.Register(wanted);
    if (!grant.ok()) throw std::runtime_error(grant.status().message());
    grant_ = std::move(*grant);
  }
  void Begin() {
    client_.emplace(grant_.socket);
    client_->Send(HelloBytes(bed_.Status().at("gpu_uuid").get<std::string>()));
    welcome_ = client_->Receive(kAnswerMs);
    ASSERT_TRUE(welcome_.has_value() && welcome_->type() == protocol::FrameType::kWelcome);
    ASSERT_TRUE(client_->Receive(kAnswerMs).has_value());
    client_->Send(FrameBytes(protocol::FrameType::kReady, {}));
  }
  void Lease(uint32_t units) {
    protocol::Lease lease = {};
    lease.units = units;
    lease.contiguous = 1;
    Send(protocol::FrameType::kLease, lease);
  }
  void Release(uint32_t units) {
    protocol::Release release = {};
    release.extents = 1;
    release.extent[0] = {0, units};
    Send(protocol::FrameType::kRelease, release,
         offsetof(protocol::Release, extent) + sizeof(protocol::Extent));
  }
  void Charge(uint64_t bytes) {
    protocol::Charge charge = {};
    charge.family = static_cast<uint32_t>(protocol::Family::kPhysical);
    charge.bytes = bytes;
    Send(protocol::FrameType::kCharge, charge);
    Expect(protocol::FrameType::kCharged);
  }
  void Uncharge(uint64_t bytes) {
    protocol::Uncharge uncharge = {};
    uncharge.family = static_cast<uint32_t>(protocol::Family::kPhysical);
    uncharge.bytes = bytes;
    Send(protocol::FrameType::kUncharge, uncharge);
  }
  /// The session's goodbye.
  void Part() {
    client_->Send(FrameBytes(protocol::FrameType::kBye, {}));
    client_.reset();
  }
  /// The next answer, behind what is only said.
  void Expect(protocol::FrameType type) {
    for (;;) {
      const auto answer = client_->Receive(kAnswerMs);
      ASSERT_TRUE(answer.has_value() && !answer->bytes.empty()) << "the session is over";
      if (answer->type() == protocol::FrameType::kNotice) continue;
      EXPECT_EQ(answer->type(), type) << answer->text();
      return;
    }
  }
  nlohmann::json Now() const {
    const nlohmann::json status = bed_.Status();
    for (const auto& job : status.at("jobs")) {
      if (job.at("id") == grant_.job) return job;
    }
    return {};
  }
  /// As `sluice status` shows it, which is what the ledger has.
  uint64_t limit() const { return Now().at("limit_bytes"); }
  void AwaitPhase(const std::string& phase) const {
    for (int i = 0; i < 10'000 && Now().at("phase") != phase; ++i) {
    }
    EXPECT_EQ(Now().at("phase"), phase);
  }
  void ExpectRefused(const std::string& size, const std::string& least) const {
    const uint64_t before = limit();
    const cli::CommandOutput said = Order(size);
    EXPECT_NE(said.status.code, 0) << said.out;
    EXPECT_NE(said.err.find("allowed: from " + least), std::string::npos) << said.err;
    EXPECT_EQ(limit(), before);
  }
  void ExpectTaken(const std::string& size, uint64_t bytes) const {
    const cli::CommandOutput said = Order(size);
    EXPECT_EQ(said.status.code, 0) << said.err;
    EXPECT_EQ(limit(), bytes);
  }

 private:
  static constexpr int kAnswerMs = 60'000;

  cli::CommandOutput Order(const std::string& size) const {
    return bed_.Sluice({"limit", std::to_string(grant_.job), size});
  }
  template <typename Frame>
  void Send(protocol::FrameType type, const Frame& frame, size_t bytes = sizeof(Frame)) {
    const auto* at = reinterpret_cast<const uint8_t*>(&frame);
    ASSERT_TRUE(client_->Send(FrameBytes(type, {at + sizeof(protocol::Header), at + bytes})));
  }

  const TestBed& bed_;
  cli::DaemonClient launcher_;
  cli::JobGrant grant_;
  std::optional<RawClient> client_;
  std::optional<RawClient::Answer> welcome_;  // its pages live as long as this
};

/// What a job has outside the pool counts from the moment on in which somebody gives it a limit.
TEST(Limits, AnOrderCountsWhatAJobWithoutALimitHasOutside) {
  TestBed bed(SmallPool());
  SpokenJob job(bed, {0, 0, 0, "both"});
  ASSERT_NO_FATAL_FAILURE(job.Begin());
  job.Lease(16);
  ASSERT_NO_FATAL_FAILURE(job.Expect(protocol::FrameType::kGrant));
  ASSERT_NO_FATAL_FAILURE(job.Charge(12 * kMiB));
  job.ExpectRefused("5MiB", "16.0 MiB");
  job.Uncharge(kMiB);
  // An answer behind it, so that the daemon has read it.
  ASSERT_NO_FATAL_FAILURE(job.Charge(kMiB / 4));
  job.ExpectRefused("15MiB", "15.2 MiB");
  job.ExpectTaken("16MiB", 16 * kMiB);
  job.Uncharge(11 * kMiB);
  ASSERT_NO_FATAL_FAILURE(job.Charge(1));
  job.ExpectTaken("5MiB", 5 * kMiB);
}

TEST(Limits, AnOrderForAJobBetweenTwoSessionsLeavesWhatIsLeft) {
  TestBed bed(SmallPool());
  SpokenJob job(bed, {8 * kMiB, 0, 0, "rests"});
  ASSERT_NO_FATAL_FAILURE(job.Begin());
  ASSERT_NO_FATAL_FAILURE(job.Charge(3 * kMiB));
  job.Part();
  job.AwaitPhase("resting");
  job.ExpectRefused("2MiB", "3.0 MiB");
  job.ExpectTaken("4MiB", 4 * kMiB);
  ASSERT_NO_FATAL_FAILURE(job.Begin());
  job.Lease(4);
  ASSERT_NO_FATAL_FAILURE(job.Expect(protocol::FrameType::kGrant));
  EXPECT_EQ(job.limit(), 4 * kMiB);
  job.Lease(1);
  ASSERT_NO_FATAL_FAILURE(job.Expect(protocol::FrameType::kDeny));
}

TEST(Limits, AnOrderForAJobThatWaitsHoldsWhenItIsAnswered) {
  TestBed bed(SmallPool());
  SpokenJob measured(bed, {13 * kMiB, 0, 0, "measured"});
  ASSERT_NO_FATAL_FAILURE(measured.Begin());
  measured.Lease(4);
  ASSERT_NO_FATAL_FAILURE(measured.Expect(protocol::FrameType::kGrant));
  SpokenJob begins(bed, {8 * kMiB, 2 * kMiB, 0, "begins"});
  ASSERT_NO_FATAL_FAILURE(begins.Begin());
  ASSERT_NO_FATAL_FAILURE(begins.Charge(3 * kMiB));
  begins.ExpectRefused("2MiB", "3.0 MiB");
  begins.ExpectTaken("4MiB", 4 * kMiB);
  // There is no room for its request beside that limit.
  SpokenJob waits(bed, {10 * kMiB, 5 * kMiB, 0, "waits"});
  ASSERT_NO_FATAL_FAILURE(waits.Begin());
  ASSERT_NO_FATAL_FAILURE(waits.Charge(6 * kMiB));
  waits.ExpectRefused("5MiB", "6.0 MiB");
  waits.ExpectTaken("7MiB", 7 * kMiB);
  measured.Release(4);
  measured.Part();
  begins.Lease(5);
  ASSERT_NO_FATAL_FAILURE(begins.Expect(protocol::FrameType::kDeny));
  begins.Part();
  waits.AwaitPhase("unprofiled");
  EXPECT_EQ(waits.limit(), 7 * kMiB);
  waits.Lease(5);
  ASSERT_NO_FATAL_FAILURE(waits.Expect(protocol::FrameType::kDeny));
  waits.Lease(4);
  ASSERT_NO_FATAL_FAILURE(waits.Expect(protocol::FrameType::kGrant));
  bed.StopDaemon();
  const scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
}

}  // namespace
}  // namespace sluice::testing
