// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "noderuntime/daemon/daemon.h"
#include "tests/fuzz/fuzz_client.h"
#include "tests/support/fake_gpu.h"

namespace sluice::fuzz {

/// Its only user is this process, which lives as long as the world does, or until it is said to
/// have ended.
class FuzzDevice : public testing::FakeGpu {
 public:
  explicit FuzzDevice(scheduler::Units pool_units);
  bool IsUsedBy(pid_t) override { return used; }
  bool used = true;
};

/// The whole daemon in this process, under a clock that only Pass moves: its sockets, its parsing,
/// its flow, its ledger. One job of it is honest and must never notice the others; those are for
/// the fuzzer to play. Whatever is wrong is said by violation().
class DaemonWorld {
 public:
  static constexpr uint64_t kUnit = 4096;
  static constexpr scheduler::Units kPoolUnits = 32;
  static constexpr flow::JobId kHonest = 1;
  static constexpr scheduler::Units kHonestLimit = 8;
  static constexpr size_t kMaxJobs = 5;      // as many as the audit's brute force covers
  static constexpr size_t kMaxClients = 12;  // connections of the fuzzer's at a time

  struct Options {
    scheduler::Units pool_units = kPoolUnits;
    std::string policy = "flow";
    std::string claims = "steps";
    bool fuzzers_jobs = true;  // two jobs for the fuzzer, registered
  };

  /// `dir` is emptied. `faults`: defects that have to show.
  DaemonWorld(const std::string& dir, const flow::FaultPlan& faults, const Options& options);
  DaemonWorld(const std::string& dir, const flow::FaultPlan& faults)
      : DaemonWorld(dir, faults, Options()) {}
  ~DaemonWorld();

  /// One turn of the daemon's loop, and a look at everything that must hold.
  void Turn();
  void Turns(int count) {
    for (int i = 0; i < count; ++i) Turn();
  }
  void Pass(uint64_t ns);
  /// From now on, each wake-up of a connection costs the daemon's thread as much; nothing at first.
  static void WakeupsCost(uint64_t cpu_ns);
  /// The honest job gives a unit back behind a fence, or raises the mark and asks for it again.
  void HonestStep();
  /// The honest job asks for a unit more and gives that back behind a fence, which it reaches: it
  /// has its memory where it was.
  void HonestTurn();
  /// Who connects from now on is another process than those before.
  static void BeginProcess();
  /// The latest of them ends, and the GPU is done with it: what it held is free afterwards.
  void EndProcess();
  /// Everybody leaves; the event log is audited.
  void End();

  /// Registers one more job of the fuzzer's, if the daemon lets it. Its launcher stays.
  void Register(uint64_t limit_bytes, uint64_t request_bytes, uint32_t gpu);
  void Connect(size_t job);
  /// A connection that has shaken hands.
  void Open(size_t job);
  void HangUp(size_t client);
  void ConnectControl();
  size_t jobs() const { return paths_.size(); }
  /// Of the fuzzer's jobs: where it is to connect.
  const std::string& path(size_t job) const { return paths_.at(job); }
  const flow::Flow& flow() const { return daemon_->flow(); }
  FuzzDevice& gpu() { return device_; }
  std::vector<FuzzClient>& clients() { return clients_; }
  FuzzClient* client(size_t at) {
    return clients_.empty() ? nullptr : &clients_[at % clients_.size()];
  }
  /// What the ledger thinks that the fuzzer's jobs hold, for releases that are not refused.
  scheduler::Extents HeldByOthers() const;
  const std::array<uint8_t, 16>& device() const { return device_.info().uuid; }

  const std::optional<std::string>& violation() const { return violation_; }
  void Violate(const std::string& text);

 private:
  std::string RegisterAt(FuzzClient* launcher, uint64_t limit_bytes, uint64_t request_bytes,
                         uint32_t gpu);
  bool Handshake(FuzzClient* client);
  void HonestLease(scheduler::Units units);
  void Check();
  void CheckHonest();
  void CheckTheDead();

  std::string dir_;
  FuzzDevice device_;
  std::unique_ptr<noded::Daemon> daemon_;
  std::optional<std::string> violation_;

  std::optional<FuzzClient> honest_launcher_;
  std::optional<FuzzClient> honest_;
  scheduler::Extents book_;  // what the honest job was granted and has not released
  std::optional<scheduler::Extent> released_;  // behind a fence that is not reached
  uint64_t honest_mark_ = 0;
  uint32_t seq_ = 0;

  std::vector<FuzzClient> launchers_;
  std::vector<std::string> paths_;
  std::vector<FuzzClient> clients_;
  bool ending_ = false;                               // a process ends
  std::map<flow::JobId, scheduler::Extents> leased_;  // at the last look
  scheduler::Extents dead_;                           // leased by somebody when his session ended
};

}  // namespace sluice::fuzz
