// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/ledger/snapshot.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::scheduler {
namespace {

std::vector<std::byte> Bytes(const Ledger& ledger) {
  ByteWriter out;
  WriteLedger(ledger, &out);
  return {out.bytes().begin(), out.bytes().end()};
}

Result<Ledger> Read(const std::vector<std::byte>& bytes) {
  ByteReader in(bytes);
  Result<Ledger> ledger = ReadLedger(&in);
  EXPECT_TRUE(!ledger.ok() || in.at_end());
  return ledger;
}

/// A job in each phase, and units in each state.
Ledger Busy() {
  Ledger ledger(40, 1 << 20);
  EXPECT_TRUE(ledger.Admit(1, "running", 2, 20).ok());
  EXPECT_TRUE(ledger.Admit(2, "parked", 3, 20).ok());
  EXPECT_TRUE(ledger.Admit(3, "dying", 1, 20).ok());
  EXPECT_TRUE(ledger.Admit(4, "waiting", 1, 10).ok());
  for (const JobId job : {1u, 2u, 3u}) EXPECT_TRUE(ledger.StartUnprofiled(job).ok());
  EXPECT_TRUE(ledger.Grant(1, {{0, 2}}).ok());
  EXPECT_TRUE(ledger.Grant(2, {{20, 3}}).ok());
  EXPECT_TRUE(ledger.Grant(3, {{30, 4}}).ok());
  EXPECT_TRUE(ledger.ReachTrough(1, true).ok());
  EXPECT_TRUE(ledger.ReachTrough(2, true).ok());
  EXPECT_TRUE(ledger.OpenGate(1, {12, 3, true, End::kHigh}).ok());
  EXPECT_TRUE(ledger.Grant(1, {{8, 6}}).ok());
  EXPECT_TRUE(ledger.Release(1, {{8, 2}}, 7).ok());
  EXPECT_TRUE(ledger.Release(1, {{10, 1}}, 8).ok());
  EXPECT_TRUE(ledger.Fenced(1, 8).ok());
  EXPECT_TRUE(ledger.Release(1, {{1, 1}}, 9).ok());  // of its base
  EXPECT_TRUE(ledger.Fenced(1, 9).ok());
  EXPECT_TRUE(ledger.Reclaim(1, {{1, 1}}).ok());
  EXPECT_TRUE(ledger.SetOutside(2, 4).ok());
  EXPECT_TRUE(ledger.Die(3).ok());
  EXPECT_TRUE(ledger.Admit(5, "evicted", 1, 10).ok());
  EXPECT_TRUE(ledger.StartUnprofiled(5).ok());
  EXPECT_TRUE(ledger.Grant(5, {{36, 3}}).ok());
  EXPECT_TRUE(ledger.Evict(5).ok());
  EXPECT_TRUE(ledger.CheckInvariants().ok());
  return ledger;
}

TEST(Snapshot, ALedgerComesBackAsItWas) {
  const Ledger ledger = Busy();
  ASSERT_GT(ledger.Find(1)->spare, 0u);
  ASSERT_GT(ledger.Find(1)->unfenced, 0u);
  ASSERT_EQ(ledger.Find(1)->missing, (Extents{{1, 1}}));
  const Result<Ledger> again = Read(Bytes(ledger));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again, ledger);
  EXPECT_EQ(again->unit_bytes(), ledger.unit_bytes());
}

TEST(Snapshot, ItGoesOnLikeTheFirst) {
  Ledger ledger = Busy();
  Result<Ledger> again = Read(Bytes(ledger));
  ASSERT_TRUE(again.ok());
  for (Ledger* one : {&ledger, &*again}) {
    EXPECT_TRUE(one->Fenced(1, 7).ok());
    EXPECT_TRUE(one->LastHolderGone(3).ok());
    EXPECT_FALSE(one->Grant(1, {{20, 1}}).ok());
  }
  EXPECT_EQ(*again, ledger);
}

TEST(Snapshot, BytesThatEndTooEarlyAreAnError) {
  const std::vector<std::byte> bytes = Bytes(Busy());
  for (size_t count = 0; count < bytes.size(); ++count) {
    ByteReader in(std::span<const std::byte>(bytes).first(count));
    EXPECT_FALSE(ReadLedger(&in).ok()) << count;
  }
}

// Damage is an error or a ledger that keeps the rules, never one that breaks them.
TEST(Snapshot, DamageNeverMakesALedgerThatBreaksARule) {
  const std::vector<std::byte> bytes = Bytes(Busy());
  std::mt19937_64 random(5);
  size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> damaged = bytes;
    damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    ByteReader in(damaged);
    const Result<Ledger> ledger = ReadLedger(&in);
    if (!ledger.ok()) {
      ++refused;
      continue;
    }
    ASSERT_TRUE(ledger->CheckInvariants().ok());
  }
  EXPECT_GT(refused, 1000u);
}

TEST(Snapshot, AMapThatDoesNotCoverThePoolOnceIsAnError) {
  const std::vector<std::vector<Span>> bad = {
      {},
      {{0, 3}},
      {{0, 3}, {4, 1}},
      {{0, 3}, {2, 2}},
      {{0, 5}},
      {{0, 3}, {3, 1, UnitState::kLeased, 1}},
  };
  for (const auto& spans : bad) EXPECT_FALSE(Ledger::Restore(4, 1, {}, spans, {}).ok());
  EXPECT_TRUE(Ledger::Restore(4, 1, {}, {{0, 4}}, {}).ok());
}

TEST(Snapshot, JobsThatDoNotStandInOrderAreAnError) {
  const auto reads = [](const std::vector<JobId>& ids) {
    std::vector<Job> jobs;
    for (const JobId id : ids) {
      jobs.emplace_back();
      jobs.back().id = id;
      jobs.back().limit = 1;
    }
    return Ledger::Restore(4, 1, {}, {{0, 4}}, std::move(jobs)).ok();
  };
  EXPECT_TRUE(reads({1, 2}));
  EXPECT_FALSE(reads({2, 1}));
  EXPECT_FALSE(reads({1, 1}));
  EXPECT_FALSE(reads({kNoJob, 1}));
}

}  // namespace
}  // namespace sluice::scheduler
