// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The ledger of a job that is moved to host memory.
#include <gtest/gtest.h>

#include "scheduler/ledger/ledger.h"
#include "scheduler/ledger/snapshot.h"

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
  Refused(ledger.SetLimit(1, 7), "was promised 8.0 MiB; allowed: from 8.0 MiB");
  Ok(ledger.SetLimit(1, 8));
  Refused(ledger.SetOutside(1, 2), "outside the pool");
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

/// Two pieces of a base, so that more than one place has to be free for its return.
class LedgerSwaps : public LedgerEvicts {
 protected:
  LedgerSwaps() {
    Ok(ledger.Release(1, {{4, 2}}, 1));
    Ok(ledger.Fenced(1, 1));
    Ok(ledger.ReachTrough(1, true));
  }

  Result<Ledger> Again() const { return Read(Bytes()); }
  std::vector<std::byte> Bytes() const {
    ByteWriter out;
    WriteLedger(ledger, &out);
    return {out.bytes().begin(), out.bytes().end()};
  }
  /// A snapshot does not say when it came back.
  static Job NeverAway(Job job) {
    job.came_back = 0;
    job.fresh = false;
    return job;
  }
  static Result<Ledger> Read(const std::vector<std::byte>& bytes) {
    ByteReader in(bytes);
    return ReadLedger(&in);
  }
};

TEST_F(LedgerSwaps, AtItsTroughAllThatItHas) {
  ASSERT_EQ(ledger.map().Held(1), (Extents{{0, 2}, {8, 3}}));
  const Ledger before = ledger;
  Ok(ledger.Evict(1));
  EXPECT_EQ(ledger.Find(1)->phase, Phase::kEvicted);
  EXPECT_EQ(ledger.Find(1)->away, (Extents{{0, 2}, {8, 3}}));
  EXPECT_EQ(ledger.held(1), 0u);
  EXPECT_EQ(ledger.Find(1)->needs(), 5u);
  EXPECT_EQ(ledger.free(), 16u);
  Ok(ledger.CheckInvariants());
  Refused(ledger.OpenGate(1, {8, 3, true, End::kHigh}), "is evicted");
  Refused(ledger.Grant(1, {{12, 1}}), "is evicted");
  Refused(ledger.Evict(1), "is evicted");
  Ok(ledger.BringBack(1, {}));
  EXPECT_EQ(ledger.Find(1)->phase, Phase::kParked);
  EXPECT_EQ(ledger.map(), before.map()) << "to the same units";
  EXPECT_EQ(NeverAway(*ledger.Find(1)), *before.Find(1)) << "with the base that it is known by";
  EXPECT_TRUE(ledger.Find(1)->fresh);
  Refused(ledger.BringBack(1, {}), "is parked");
  Ok(ledger.OpenGate(1, {8, 3, true, End::kHigh}));
}

/// It has no iteration that they could be of, and opens its gate with others.
TEST_F(LedgerSwaps, TermsSayNothingOfWhoWaitsToBegin) {
  const GateTerms terms = ledger.Find(1)->terms;
  Ok(ledger.Evict(1));
  Ok(ledger.BringBack(1, {0, 0, true, End::kLow}));
  EXPECT_EQ(ledger.Find(1)->terms, terms);
  Ok(ledger.Evict(1));
  Ok(ledger.BringBack(1, {15, 3, true, End::kLow}));
  EXPECT_EQ(ledger.Find(1)->terms, terms) << "its limit is 12";
}

/// It came to its trough with all it had: that is more than its base, and comes back as well.
TEST_F(LedgerSwaps, WhoDidNotDrainHasMoreThanItsBase) {
  Ok(ledger.OpenGate(1, {8, 3, false, End::kHigh}));
  Ok(ledger.Grant(1, {{12, 2}}));
  Ok(ledger.Release(1, {{12, 1}}, 2));
  Ok(ledger.ReachTrough(1, false));
  Refused(ledger.Evict(1), "not fenced");
  EXPECT_EQ(ledger.Find(1)->phase, Phase::kParked);
  Ok(ledger.Fenced(1, 2));
  const Ledger before = ledger;
  Ok(ledger.Evict(1));
  EXPECT_EQ(ledger.Find(1)->away, (Extents{{0, 2}, {8, 3}, {13, 1}}));
  Ok(ledger.BringBack(1, {}));
  EXPECT_EQ(ledger.map(), before.map());
  EXPECT_EQ(NeverAway(*ledger.Find(1)), *before.Find(1));
  EXPECT_EQ(ledger.Find(1)->loose, (Extents{{13, 1}}));
}

TEST_F(LedgerSwaps, NotBackBeforeAllOfItsPlaceIsFree) {
  Ok(ledger.Evict(1));
  Ok(ledger.Admit(2, "b", 1, 4));
  Ok(ledger.StartUnprofiled(2));
  Ok(ledger.Grant(2, {{10, 2}}));
  Refused(ledger.BringBack(1, {}), "not all of [8, +3)");
  EXPECT_EQ(ledger.Find(1)->phase, Phase::kEvicted);
  EXPECT_EQ(ledger.held(1), 0u) << "not even the part that is free";
  Ok(ledger.Release(2, {{10, 1}}, 1));
  Refused(ledger.BringBack(1, {}), "not all of [8, +3)");
  Ok(ledger.Fenced(2, 1));
  Ok(ledger.Reclaim(2, {{10, 1}}));
  Ok(ledger.BringBack(1, {}));
}

TEST_F(LedgerSwaps, NobodyWhoHasNothing) {
  Ok(ledger.Admit(2, "b", 0, 4));
  Refused(ledger.Evict(2), "is waiting");
  Ok(ledger.StartUnprofiled(2));
  Ok(ledger.ReachTrough(2, true));
  Refused(ledger.Evict(2), "has nothing");
  EXPECT_EQ(ledger.Find(2)->phase, Phase::kParked);
}

/// What is in host memory still counts: it comes back.
TEST_F(LedgerSwaps, WhatItNeedsStaysWithinItsLimit) {
  Ok(ledger.Evict(1));
  Refused(ledger.SetLimit(1, 4), "holds 5.0 MiB; allowed: from 5.0 MiB");
  Ok(ledger.SetLimit(1, 5));
  Refused(ledger.SetOutside(1, 1), "outside the pool");
}

TEST_F(LedgerSwaps, WhoEvictedInItsIterationIsBackThere) {
  Ok(ledger.Evict(1));
  Ok(ledger.BringBack(1, {}));
  Ok(ledger.OpenGate(1, {8, 3, true, End::kHigh}));
  Ok(ledger.Grant(1, {{12, 2}}));
  Ok(ledger.Evict(1));
  EXPECT_EQ(ledger.Find(1)->away, (Extents{{12, 2}})) << "its base stays";
  Refused(ledger.BringBack(1, {}), "from what it had");
  Ok(ledger.BringBack(1, {8, 3, true, End::kHigh}));
  EXPECT_EQ(ledger.Find(1)->phase, Phase::kRunning);
}

/// Who leaves next is who came back first.
TEST_F(LedgerSwaps, TheLedgerKnowsWhoCameBackBeforeWhom) {
  Ok(ledger.Admit(2, "b", 1, 4));
  Ok(ledger.StartUnprofiled(2));
  Ok(ledger.Grant(2, {{15, 1}}));
  Ok(ledger.ReachTrough(2, true));
  for (const JobId job : {2u, 1u, 2u}) {
    Ok(ledger.Evict(job));
    Ok(ledger.BringBack(job, {}));
    const JobId other = 3 - job;
    EXPECT_GT(ledger.Find(job)->came_back, ledger.Find(other)->came_back);
    EXPECT_TRUE(ledger.Find(job)->fresh);
    Ok(ledger.OpenGate(job, {ledger.held(job), 3, true, End::kHigh}));
    EXPECT_FALSE(ledger.Find(job)->fresh) << "it has begun";
    Ok(ledger.ReachTrough(job, true));
  }
  Refused(ledger.SetStays(9, true), "no job");
  Ok(ledger.SetStays(1, true));
  EXPECT_TRUE(ledger.Find(1)->stays);
}

TEST_F(LedgerSwaps, ASnapshotKnowsWhereItWas) {
  Ok(ledger.Evict(1));
  for (const bool parked : {true, false}) {
    Result<Ledger> again = Again();
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->map(), ledger.map());
    EXPECT_EQ(NeverAway(*again->Find(1)), NeverAway(*ledger.Find(1)));
    Ok(again->BringBack(1, {8, 3, true, End::kHigh}));
    EXPECT_EQ(again->Find(1)->phase, parked ? Phase::kParked : Phase::kRunning);
    Ok(ledger.BringBack(1, {8, 3, true, End::kHigh}));
    EXPECT_EQ(again->map(), ledger.map());
    EXPECT_EQ(NeverAway(*again->Find(1)), NeverAway(*ledger.Find(1)));
    if (!parked) break;
    Ok(ledger.OpenGate(1, {8, 3, true, End::kHigh}));
    Ok(ledger.Grant(1, {{12, 2}}));
    Ok(ledger.Evict(1));
  }
}

/// Damage is an error, or the job is back where a job can be. The last byte is where it was.
TEST_F(LedgerSwaps, ADamagedSnapshotBringsNobodyBackToNowhere) {
  Ok(ledger.Evict(1));
  std::vector<std::byte> bytes = Bytes();
  ASSERT_EQ(bytes.back(), static_cast<std::byte>(Phase::kParked));
  for (int value = 0; value < 256; ++value) {
    bytes.back() = static_cast<std::byte>(value);
    Result<Ledger> again = Read(bytes);
    if (!again.ok() || !again->BringBack(1, {12, 3, true, End::kHigh}).ok()) continue;
    const Job& job = *again->Find(1);
    EXPECT_TRUE(job.past_gate() || job.phase == Phase::kParked)
        << value << " brings it back " << PhaseName(job.phase);
  }
}

TEST_F(LedgerSwaps, DeadItHasNothing) {
  Ok(ledger.Evict(1));
  Ok(ledger.Die(1));
  EXPECT_EQ(ledger.Find(1)->held(), 0u);
  EXPECT_TRUE(ledger.Find(1)->away.empty());
  Refused(ledger.BringBack(1, {}), "is dying");
  Ok(ledger.CheckInvariants());
  EXPECT_EQ(ledger.free(), 16u);
  Ok(ledger.LastHolderGone(1));
  EXPECT_EQ(ledger.Find(1), nullptr);
}

TEST_F(LedgerSwaps, WhoLeavesFromThereHasNothingToGiveBack) {
  Ok(ledger.Evict(1));
  Ok(ledger.Leave(1));
  EXPECT_EQ(ledger.Find(1), nullptr);
  EXPECT_EQ(ledger.free(), 16u);
}

}  // namespace
}  // namespace sluice::scheduler
