// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What one client may have of the daemon's thread, under a clock that stands still unless it is
// told to pass: everything here is counted.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "noderuntime/session/share.h"
#include "tests/fuzz/daemon_world.h"

namespace sluice::fuzz {
namespace {

using protocol::FrameType;
using session::Share;

constexpr uint64_t kMs = 1'000'000;
constexpr size_t kSocket = 512;       // more frames than a socket takes
constexpr uint64_t kWakeup = 50'000;  // ns of the thread's, for up to 32 frames
constexpr size_t kFrames = 32;
constexpr uint64_t kTurnsPerSecond = 50'000;
/// Wake-ups of who spends what it may, in so many turns.
constexpr uint64_t MostWakeups(uint64_t turns) {
  return (Share::kBurst + turns * Share::kPerSecond / kTurnsPerSecond) / kWakeup + 1;
}

/// As much as is taken, for so many turns. How many frames that were.
size_t Flood(DaemonWorld& world, FuzzClient& client, int turns) {
  protocol::Count count = {};
  count.family = static_cast<uint32_t>(protocol::Family::kHostPinned);
  size_t sent = 0;
  for (int i = 0; i < turns; ++i) {
    while (sent < size_t{1} << 20 && client.SendFrame(count, FrameType::kCount)) ++sent;
    world.Turn();
  }
  return sent;
}

class Shares : public ::testing::Test {
 protected:
  Shares() : folder_("/tmp/sluice-shares-" + std::to_string(::getpid())), world_(folder_, {}) {}
  ~Shares() override { std::filesystem::remove_all(folder_); }
  void TearDown() override {
    world_.End();
    EXPECT_FALSE(world_.violation().has_value()) << *world_.violation();
  }

  size_t Flood(FuzzClient& client, int turns) { return fuzz::Flood(world_, client, turns); }

  const std::string folder_;
  DaemonWorld world_;
};

TEST_F(Shares, AFloodIsReadLaterAndNobodyElseIs) {
  world_.Open(0);
  ASSERT_EQ(world_.clients().size(), 1u);
  FuzzClient& client = world_.clients().front();
  DaemonWorld::WakeupsCost(kWakeup);
  constexpr int kTurns = 1500;
  const size_t sent = Flood(client, kTurns);
  EXPECT_GT(sent, Share::kBurst / kWakeup * kFrames);
  EXPECT_LE(sent, MostWakeups(kTurns) * kFrames + kSocket);
  while (client.Receive()) {
  }
  EXPECT_FALSE(client.closed()) << "it only waits";
  // The others have what they ask for in as many turns as ever.
  for (int i = 0; i < 20; ++i) world_.HonestStep();
  // And it goes on where it was.
  world_.Pass(kMs * 100);
  EXPECT_GT(Flood(client, 100), 100u);
  EXPECT_FALSE(client.closed());
}

TEST_F(Shares, WhoeverHangsUpInAFloodIsNoticedSoon) {
  world_.Open(0);
  ASSERT_EQ(world_.clients().size(), 1u);
  FuzzClient& client = world_.clients().front();
  // The honest job is given up on as one that never repeats itself; then this one begins.
  world_.Pass(6'000 * kMs);
  protocol::Lease lease = {};
  lease.units = lease.contiguous = 2;
  ASSERT_TRUE(client.SendFrame(lease, FrameType::kLease, 1));
  for (int i = 0; i < 10; ++i) world_.Pass(1'000 * kMs);
  ASSERT_FALSE(world_.HeldByOthers().empty());
  DaemonWorld::WakeupsCost(kWakeup);
  Flood(client, 1500);
  // Its share is spent, but what lies in the socket is read, 32 frames in a turn.
  world_.HangUp(0);
  world_.Turns(kSocket / kFrames);
  EXPECT_TRUE(world_.HeldByOthers().empty()) << "it is still thought to be there";
}

TEST_F(Shares, ATurnMakesNoMoreThanSoManyDecisionsForOneClient) {
  world_.Open(0);
  ASSERT_EQ(world_.clients().size(), 1u);
  FuzzClient& client = world_.clients().front();
  world_.Pass(6'000 * kMs);
  for (int i = 0; i < 10; ++i) world_.Pass(1'000 * kMs);
  protocol::Lease lease = {};
  lease.units = 1000;  // denied, each time
  lease.contiguous = 1;
  size_t sent = 0;
  while (sent < 64 && client.SendFrame(lease, FrameType::kLease, 1)) ++sent;
  ASSERT_GT(sent, 8u);
  size_t answered = 0;
  size_t turns = 0;
  for (; answered < sent && turns < 100; ++turns) {
    world_.Turn();
    size_t now = 0;
    while (const auto answer = client.Receive()) {
      if (answer->type == FrameType::kDeny) ++now;
    }
    EXPECT_LE(now, 8u);
    answered += now;
  }
  EXPECT_EQ(answered, sent);
}

TEST_F(Shares, WhoeverAsksTheDaemonWithoutEndIsHeardLater) {
  world_.ConnectControl();
  ASSERT_EQ(world_.clients().size(), 1u);
  FuzzClient& client = world_.clients().front();
  protocol::SetLimit order = {};
  order.job = 999;  // of nobody
  order.bytes = DaemonWorld::kUnit;
  constexpr int kTurns = 1500;
  DaemonWorld::WakeupsCost(kWakeup);
  size_t answered = 0;
  for (int i = 0; i < kTurns; ++i) {
    while (client.SendFrame(order, FrameType::kSetLimit)) {
    }
    world_.Turn();
    while (client.Receive()) ++answered;
  }
  EXPECT_FALSE(client.closed());
  constexpr uint64_t kOrders = 16;  // in a wake-up
  EXPECT_GE(answered, Share::kBurst / kWakeup * kOrders);
  EXPECT_LE(answered, MostWakeups(kTurns) * kOrders);
  for (int i = 0; i < 20; ++i) world_.HonestStep();
}

// A decision costs by all pieces of the pool: who asks is not slowed down for those of others.
TEST(SharesAmongPieces, WhatThePiecesOfOthersCostIsNotCharged) {
  constexpr scheduler::Units kPieces = 400;
  const std::string folder = "/tmp/sluice-shares-" + std::to_string(::getpid());
  DaemonWorld world(folder, {}, {.pool_units = 4 * kPieces});
  world.Open(0);
  ASSERT_EQ(world.clients().size(), 1u);
  FuzzClient& client = world.clients().front();
  world.Pass(6'000 * kMs);
  protocol::Lease lease = {};
  lease.units = lease.contiguous = 2 * kPieces;
  ASSERT_TRUE(client.SendFrame(lease, FrameType::kLease, 1));
  for (int i = 0; i < 10; ++i) world.Pass(1'000 * kMs);
  const scheduler::Extents held = world.HeldByOthers();
  ASSERT_EQ(held.size(), 1u);
  for (scheduler::Units at = 1; at < held.front().length; at += 2) {
    ASSERT_TRUE(client.SendRelease({{held.front().offset + at, 1}}, {}));
    world.Turn();
  }
  ASSERT_GT(world.flow().ledger().map().spans().size(), 2 * kPieces);
  // More than may be had at once, were all of it charged. Every other wake-up asks for memory, and
  // a third of that is.
  constexpr int kWakeups = 80;
  DaemonWorld::WakeupsCost(Share::kBurst * 6 / 5 / kWakeups);
  for (int i = 0; i < kWakeups; ++i) world.HonestStep();
  // Frames that make no decision cost as much as ever.
  world.Open(1);
  DaemonWorld::WakeupsCost(kWakeup);
  constexpr int kTurns = 1000;
  const size_t sent = Flood(world, world.clients().back(), kTurns);
  EXPECT_LE(sent, MostWakeups(kTurns) * kFrames + kSocket);
  world.End();
  EXPECT_FALSE(world.violation().has_value()) << *world.violation();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sluice::fuzz
