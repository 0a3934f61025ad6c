// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <variant>
#include <vector>

#include "intercept/protocol/page_access.h"
#include "noderuntime/flow/flow.h"

// From a mark to the next holder with two threads for the two processes: a client, whose GPU is
// late, and the daemon's own decisions over the same pages. The memory is an array of plain words:
// if what a mark promises did not reach whoever gets them next, a sanitizer would call it a race.

namespace sluice::protocol {
namespace {

constexpr uint32_t kUnits = 16;
constexpr size_t kUnitWords = 64;         // as shown to the sanitizer
constexpr uint64_t kUnitBytes = 1 << 20;  // as the daemon is told
constexpr uint32_t kSlots = 4;
constexpr uint32_t kUnitsPerRelease = 2;
constexpr uint32_t kUnitsPerMark = 3;
constexpr uint32_t kRounds = 200;
constexpr flow::JobId kJob = 1;

/// What a round's work leaves in a unit, and what the daemon does after it: the value of its first
/// word. No two are the same.
uint32_t Pattern(uint32_t round, uint32_t unit) { return (2 * round * kUnits + unit) * 1024; }
uint32_t Poison(uint32_t round) { return ((2 * round + 1) * kUnits) * 1024; }

/// One direction of the socket. Like it, it orders what was done before a frame was sent, and
/// nothing else: no edge leads back, and work that runs after the frame is covered by its mark
/// alone.
template <typename Frame>
class Direction {
 public:
  explicit Direction(size_t capacity) : frames_(capacity) {}
  void Send(Frame frame) {
    const size_t at = sent_.load(std::memory_order_relaxed);
    frames_.at(at) = std::move(frame);
    sent_.store(at + 1, std::memory_order_release);
  }
  /// Null: nothing has arrived.
  const Frame* Receive() {
    if (received_ == sent_.load(std::memory_order_acquire)) return nullptr;
    return &frames_[received_++];
  }

 private:
  std::vector<Frame> frames_;
  std::atomic<size_t> sent_{0};
  size_t received_ = 0;
};

struct Shared {
  std::unique_ptr<MarkPage> marks = std::make_unique<MarkPage>();
  std::unique_ptr<ClientPage> client = std::make_unique<ClientPage>();
  std::unique_ptr<DaemonPage> daemon = std::make_unique<DaemonPage>();
  std::vector<uint32_t> memory = std::vector<uint32_t>(kUnits * kUnitWords);
  Direction<std::variant<Lease, session::ReleaseFrame>> to_daemon{kRounds * (kUnits + 1) + 1};
  Direction<flow::Extents> to_client{kRounds + 1};
  /// How often the daemon has taken all frames and looked at all fences.
  std::atomic<uint64_t> looks{0};
  std::atomic<bool> client_done{false};

  // Word by word, and no two alike: compilers turn anything simpler into calls that the sanitizer
  // does not see.
  bool UnitIs(uint32_t unit, uint32_t first) const {
    for (uint32_t i = 0; i < kUnitWords; ++i) {
      if (memory[unit * kUnitWords + i] != first + i) return false;
    }
    return true;
  }
  void FillUnit(uint32_t unit, uint32_t first) {
    for (uint32_t i = 0; i < kUnitWords; ++i) memory[unit * kUnitWords + i] = first + i;
  }
};

/// The daemon's thread: the flow that users run, and the next holder of what it takes back.
class Daemon : public flow::FlowSink {
 public:
  Daemon(Shared* shared, bool ignore_fences) : shared_(*shared) {
    flow::FlowOptions options;
    options.pool_units = kUnits;
    options.unit_bytes = kUnitBytes;
    options.faults.ignore_fences = ignore_fences;
    flow_ = std::make_unique<flow::Flow>(options, this);
    flow_->Start({kJob, "client", 0, 0},
                 {shared_.marks.get(), shared_.client.get(), shared_.daemon.get()}, now_ns_);
  }

  void Run() {
    while (!shared_.client_done.load(std::memory_order_acquire)) {
      while (const auto* frame = shared_.to_daemon.Receive()) {
        if (const auto* lease = std::get_if<Lease>(frame)) {
          breaches_ += !flow_->OnLease(kJob, *lease, now_ns_).ok();
        } else {
          breaches_ +=
              !flow_->OnRelease(kJob, std::get<session::ReleaseFrame>(*frame), now_ns_).ok();
        }
      }
      flow_->Tick(++now_ns_);
      shared_.looks.fetch_add(1, std::memory_order_release);
      std::this_thread::yield();
    }
  }

  // The next holder starts here. It must find what the client's last work has left.
  void HolderChanged(const flow::Extents& extents, flow::JobId holder) override {
    if (holder != scheduler::kNoJob) return;
    for (const scheduler::Extent& extent : extents) {
      for (uint32_t unit = extent.offset; unit < extent.end(); ++unit) {
        const uint32_t round = ++rounds_[unit];
        taken_early_ += !shared_.UnitIs(unit, Pattern(round, unit));
        shared_.FillUnit(unit, Poison(round));
      }
    }
  }
  void Grant(flow::JobId, const flow::GrantAnswer& answer) override {
    shared_.to_client.Send(answer.extents);
  }
  void Charged(flow::JobId, uint32_t, uint64_t) override { ++breaches_; }
  void Deny(flow::JobId, uint32_t, DenyCode, const std::string&) override { ++breaches_; }
  void Notice(flow::JobId, uint32_t, const flow::Line&) override {}
  void Log(const scheduler::Record&) override {}

  uint32_t taken_early() const { return taken_early_; }
  uint32_t breaches() const { return breaches_; }
  uint32_t rounds(uint32_t unit) const { return rounds_[unit]; }

 private:
  Shared& shared_;
  std::unique_ptr<flow::Flow> flow_;
  uint64_t now_ns_ = 1;
  uint32_t rounds_[kUnits] = {};
  uint32_t taken_early_ = 0;
  uint32_t breaches_ = 0;
};

/// The client's thread, which is its late GPU as well: it gives everything back before any of the
/// work runs that the fences name.
class Client {
 public:
  explicit Client(Shared* shared) : shared_(*shared) {
    for (uint32_t unit = 0; unit < kUnits; ++unit) shared_.FillUnit(unit, Poison(0));
  }

  void Run() {
    AskForAll();
    for (uint32_t round = 1; round <= kRounds; ++round) {
      AwaitAll();
      Issue(round);
      AskForAll();
      const uint64_t looks = shared_.looks.load(std::memory_order_acquire);
      // One whole look after the frames: a daemon that does not wait for fences takes the units
      // now.
      while (shared_.looks.load(std::memory_order_acquire) < looks + 2) std::this_thread::yield();
      Execute(round);
    }
    AwaitAll();
    shared_.client_done.store(true, std::memory_order_release);
  }

  uint32_t found_foreign() const { return found_foreign_; }

 private:
  /// In stream order: `unit` is written or read, or a mark is raised.
  struct Work {
    enum Kind { kWrite, kRead, kMark } kind;
    uint32_t unit;
    uint32_t slot;
    uint64_t value;
  };

  void AskForAll() {
    Lease lease = {};
    lease.header.seq = ++seq_;
    lease.units = kUnits;
    lease.contiguous = 1;
    shared_.to_daemon.Send(lease);
  }

  void AwaitAll() {
    const flow::Extents* granted = nullptr;
    while ((granted = shared_.to_client.Receive()) == nullptr) std::this_thread::yield();
  }

  /// Each unit is written on one stream and read on another, so its fence has two terms.
  void Issue(uint32_t round) {
    std::vector<uint32_t> units(kUnits);
    std::iota(units.begin(), units.end(), 0);
    std::shuffle(units.begin(), units.end(), random_);
    queue_.clear();
    std::vector<session::ReleaseFrame> releases;
    for (uint32_t i = 0; i < kUnits; ++i) {
      const uint32_t unit = units[i];
      const uint32_t slots[] = {unit % kSlots, (unit + round % (kSlots - 1) + 1) % kSlots};
      queue_.push_back({Work::kWrite, unit, slots[0], 0});
      queue_.push_back({Work::kRead, unit, slots[1], 0});
      if (i % kUnitsPerRelease == 0) releases.emplace_back();
      releases.back().extents.push_back({unit, 1});
      for (const uint32_t slot : slots)
        releases.back().fence.push_back({slot, 0, marks_[slot] + 1});
      Push(OpKind::kLaunch, slots[0], random_());  // no cycle: the job stays without a profile
      Push(OpKind::kFree, slots[1], kUnitBytes);
      if (i % kUnitsPerMark == kUnitsPerMark - 1 || i == kUnits - 1) MarkAll();
    }
    for (session::ReleaseFrame& release : releases) shared_.to_daemon.Send(std::move(release));
  }

  void Push(OpKind kind, uint32_t slot, uint64_t value) {
    PushRecord(*shared_.client, *shared_.daemon, cached_tail_,
               {static_cast<uint8_t>(kind), static_cast<uint8_t>(slot), 0, 0, value});
  }

  void MarkAll() {
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      queue_.push_back({Work::kMark, 0, slot, ++marks_[slot]});
    }
  }

  void Execute(uint32_t round) {
    for (const Work& work : queue_) {
      switch (work.kind) {
        case Work::kWrite:
          found_foreign_ += !shared_.UnitIs(work.unit, Poison(round - 1));
          shared_.FillUnit(work.unit, Pattern(round, work.unit));
          break;
        case Work::kRead:
          found_foreign_ += !shared_.UnitIs(work.unit, Pattern(round, work.unit));
          break;
        case Work::kMark:
          // The driver's promise for cuStreamWriteValue64: all that is before it in the stream is
          // visible to whoever sees the value.
          shared_.marks->mark[work.slot].store(work.value, std::memory_order_release);
          break;
      }
    }
  }

  Shared& shared_;
  std::mt19937 random_{1};
  std::vector<Work> queue_;
  uint64_t marks_[kSlots] = {};
  uint64_t cached_tail_ = 0;
  uint32_t seq_ = 0;
  uint32_t found_foreign_ = 0;
};

struct Outcome {
  uint32_t taken_early = 0;    // units whose next holder came before their last work
  uint32_t found_foreign = 0;  // units in which a work found another's bytes
};

Outcome Play(bool ignore_fences) {
  Shared shared;
  Daemon daemon(&shared, ignore_fences);
  Client client(&shared);
  std::thread daemon_thread([&] { daemon.Run(); });
  client.Run();
  daemon_thread.join();
  EXPECT_EQ(daemon.breaches(), 0u);
  EXPECT_EQ(shared.client->lost.load(), 0u);
  for (uint32_t unit = 0; unit < kUnits; ++unit) EXPECT_EQ(daemon.rounds(unit), kRounds);
  return {daemon.taken_early(), client.found_foreign()};
}

TEST(FenceOrder, TheNextHolderFindsWhatTheLastWorkHasLeft) {
  const Outcome outcome = Play(/*ignore_fences=*/false);
  EXPECT_EQ(outcome.taken_early, 0u);
  EXPECT_EQ(outcome.found_foreign, 0u);
}

// The client's GPU starts when the daemon has looked, so this is no matter of luck, and no race.
TEST(FenceOrder, WithoutWaitingForTheFenceEveryUnitIsTakenEarly) {
  const Outcome outcome = Play(/*ignore_fences=*/true);
  EXPECT_EQ(outcome.taken_early, kRounds * kUnits);
  EXPECT_EQ(outcome.found_foreign, kRounds * kUnits);
}

}  // namespace
}  // namespace sluice::protocol
