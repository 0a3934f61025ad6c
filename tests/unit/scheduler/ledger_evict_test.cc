// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The ledger of a job that is moved to host memory.
#include <gtest/gtest.h>

#include "scheduler/ledger/ledger.h"

namespace sluice::scheduler {
namespace {

class LedgerEvicts : public testing::Test {
 protected:
  LedgerEvicts() {
    Ok(ledger.Admit(1, "a", 2, 12));
    Ok(ledger.StartUnprofiled(1));
    Ok(ledger.Grant(1, {{0, 2}}));
    Ok(ledger.ReachTrough(1, true));
    Ok(ledger.OpenGate(1, {8, 3, true, End::kHigh}));
    Ok(ledger.Grant(1, {{4, 2}, {8, 3}}));
  }
  ~LedgerEvicts() override {
    EXPECT_TRUE(ledger.CheckInvariants().ok()) << ledger.CheckInvariants().message();
  }

  void Ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }
  void Refused(const Status& status, const std::string& words) {
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }

  Ledger ledger{16, 1 << 20};
};

TEST_F(LedgerEvicts, AllButItsBaseAndPutsItBack) {
  const Ledger before = ledger;
  Ok(ledger.Evict(1));
  EXPECT_EQ(ledger.Find(1)->phase, Phase::kEvicted);
  EXPECT_EQ(ledger.Find(1)->away, (Extents{{4, 2}, {8, 3}}));
  EXPECT_EQ(ledger.held(1), 2u);
  EXPECT_EQ(ledger.Find(1)->needs(), 7u);
  EXPECT_EQ(ledger.free(), 14u);
  Refused(ledger.Grant(1, {{12, 1}}), "is evicted");
  Ok(ledger.BringBack(1, before.Find(1)->terms));
  EXPECT_EQ(ledger, before);
}

TEST_F(LedgerEvicts, ItsSpareUnitsAreNotCopied) {
  Ok(ledger.Release(1, {{4, 2}}, 1));
  Refused(ledger.Evict(1), "not fenced");
  Ok(ledger.Fenced(1, 1));
  ASSERT_EQ(ledger.Find(1)->spare, 2u);
  Ok(ledger.Evict(1));
  EXPECT_EQ(ledger.Find(1)->away, (Extents{{8, 3}}));
}

TEST_F(LedgerEvicts, NotBackOverSomebodyElse) {
  Ok(ledger.Evict(1));
  Ok(ledger.Admit(2, "b", 1, 4));
  Ok(ledger.StartUnprofiled(2));
  Ok(ledger.Grant(2, {{9, 1}}));
  Refused(ledger.BringBack(1, {8, 3, true, End::kHigh}), "not all of [8, +3)");
  EXPECT_EQ(ledger.Find(1)->phase, Phase::kEvicted);
}

TEST_F(LedgerEvicts, BackWithAClaimForAllOfIt) {
  Ok(ledger.Evict(1));
  Refused(ledger.BringBack(1, {6, 3, true, End::kHigh}), "from what it had, 7.0 MiB");
  Refused(ledger.BringBack(1, {13, 3, true, End::kHigh}), "to its limit, 12.0 MiB");
  Refused(ledger.BringBack(1, {8, 0, true, End::kHigh}), "a piece of 0");
  Ok(ledger.BringBack(1, {12, 3, true, End::kHigh}));
}

TEST_F(LedgerEvicts, WhatItNeedsStaysWithinItsLimit) {
  Ok(ledger.Evict(1));
  Refused(ledger.SetLimit(1, 6), "below that");
  Ok(ledger.SetLimit(1, 7));
  Refused(ledger.SetOutside(1, 1), "outside the pool");
}

TEST_F(LedgerEvicts, NobodyWhoHasNothingBesideItsBase) {
  Ok(ledger.Release(1, {{4, 2}, {8, 3}}, 1));
  Ok(ledger.Fenced(1, 1));
  Refused(ledger.Evict(1), "nothing beside its base");
  EXPECT_EQ(ledger.Find(1)->phase, Phase::kRunning);
}

TEST_F(LedgerEvicts, WithoutAProfileItComesBackWithoutOne) {
  Ok(ledger.LoseProfile(1));
  Ok(ledger.Evict(1));
  Ok(ledger.BringBack(1, {8, kWholeClaim, false, End::kHigh}));
  EXPECT_EQ(ledger.Find(1)->phase, Phase::kUnprofiled);
}

TEST_F(LedgerEvicts, DeadItHasOnlyItsBase) {
  Ok(ledger.Evict(1));
  Ok(ledger.Die(1));
  EXPECT_EQ(ledger.Find(1)->quarantined, 2u);
  EXPECT_TRUE(ledger.Find(1)->away.empty());
  Ok(ledger.LastHolderGone(1));
  EXPECT_EQ(ledger.free(), 16u);
}

}  // namespace
}  // namespace sluice::scheduler
