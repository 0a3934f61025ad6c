// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/ledger/ledger.h"

#include <gtest/gtest.h>

namespace sluice::scheduler {
namespace {

constexpr uint64_t kUnit = 1 << 20;

class LedgerTest : public testing::Test {
 protected:
  ~LedgerTest() override {
    EXPECT_TRUE(ledger.CheckInvariants().ok()) << ledger.CheckInvariants().message();
  }

  void Ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }
  /// Refused with `words` in the reason, and nothing has changed.
  void Refused(const Status& status, const Ledger& before, const std::string& words) {
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    EXPECT_EQ(ledger, before);
  }
  /// Job `id` parked at its trough with `base`.
  void Parked(JobId id, const std::string& name, Units request, Units limit, const Extents& base) {
    Ok(ledger.Admit(id, name, request, limit));
    Ok(ledger.StartUnprofiled(id));
    Ok(ledger.Grant(id, base));
    Ok(ledger.ReachTrough(id, true));
  }

  Ledger ledger{16, kUnit};
};

TEST_F(LedgerTest, AdmitsOneJobWithTheWholePool) {
  Ok(ledger.Admit(1, "a", 0, 16));
  EXPECT_EQ(ledger.Find(1)->phase, Phase::kWaiting);
  EXPECT_EQ(ledger.LargestLimit(2, 0), 16u);
}

TEST_F(LedgerTest, RefusesALimitThatDoesNotFitBesideTheOthersRequests) {
  Ok(ledger.Admit(1, "a", 4, 12));
  const Ledger before = ledger;
  Refused(ledger.Admit(2, "b", 1, 13), before,
          "job 1 'a' requests 4.0 MiB (limit 12.0 MiB, holds 0 B)");
  EXPECT_EQ(ledger.LargestLimit(2, 1), 12u);
  Ok(ledger.Admit(2, "b", 1, 12));
}

TEST_F(LedgerTest, RefusesARequestThatBreaksAnotherLimit) {
  Ok(ledger.Admit(1, "a", 4, 12));
  const Ledger before = ledger;
  Refused(ledger.Admit(2, "b", 5, 6), before, "beside the limit of job 1 'a'");
  EXPECT_EQ(ledger.LargestLimit(2, 5), 0u);
}

TEST_F(LedgerTest, RefusesBadRegistrations) {
  Ok(ledger.Admit(1, "a", 0, 8));
  const Ledger before = ledger;
  Refused(ledger.Admit(1, "again", 0, 4), before, "known already");
  Refused(ledger.Admit(kNoJob, "x", 0, 4), before, "job 0");
  Refused(ledger.Admit(2, "x", 0, 0), before, "limit of 0");
  Refused(ledger.Admit(2, "x", 5, 4), before, "above its limit");
  Refused(ledger.Admit(2, "x", 0, 17), before, "pool of 16.0 MiB");
}

TEST_F(LedgerTest, DyingJobsDoNotCountInAdmission) {
  Parked(1, "a", 8, 8, {{0, 8}});
  Ok(ledger.Die(1));
  Ok(ledger.Admit(2, "b", 2, 16));
}

TEST_F(LedgerTest, LowersALimitOnlyToWhatWasPromised) {
  Parked(1, "a", 2, 12, {{0, 2}});
  Ok(ledger.OpenGate(1, {.claim = 8}));
  Ledger before = ledger;
  Refused(ledger.SetLimit(1, 7), before, "was promised 8.0 MiB");
  Ok(ledger.SetLimit(1, 8));
  Ok(ledger.ReachTrough(1, true));
  before = ledger;
  Refused(ledger.SetLimit(1, 1), before, "holds 2.0 MiB");
  Ok(ledger.SetLimit(1, 3));
}

TEST_F(LedgerTest, AnUnprofiledClaimFallsWithTheLimit) {
  Ok(ledger.Admit(1, "a", 0, 16));
  Ok(ledger.StartUnprofiled(1));
  EXPECT_EQ(ledger.Find(1)->terms.claim, 16u);
  EXPECT_FALSE(ledger.Find(1)->terms.returns);
  Ok(ledger.Grant(1, {{0, 5}}));
  const Ledger before = ledger;
  Refused(ledger.SetLimit(1, 4), before, "holds 5.0 MiB");
  Ok(ledger.SetLimit(1, 6));
  EXPECT_EQ(ledger.Find(1)->terms.claim, 6u);
}

TEST_F(LedgerTest, SettlingMakesTheLimitTheRequest) {
  Ok(ledger.Admit(1, "a", 0, 16));
  Ok(ledger.StartUnprofiled(1));
  Ok(ledger.Grant(1, {{0, 5}}));
  const Ledger before = ledger;
  Refused(ledger.Settle(1, 4), before, "holds 5.0 MiB");
  Ok(ledger.Settle(1, 6));
  EXPECT_EQ(ledger.Find(1)->request, 6u);
  EXPECT_EQ(ledger.LargestLimit(2, 0), 10u);
}

TEST_F(LedgerTest, GrantsOnlyFreeUnitsWithinTheClaim) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Parked(2, "b", 2, 8, {{2, 2}});
  Ledger before = ledger;
  Refused(ledger.Grant(1, {{4, 1}}), before, "is parked");
  Ok(ledger.OpenGate(1, {.claim = 4}));
  before = ledger;
  Refused(ledger.Grant(1, {{2, 1}}), before, "not all of [2, +1) is free");
  Refused(ledger.Grant(1, {{4, 3}}), before, "its claim is 4.0 MiB");
  Refused(ledger.Grant(1, {{4, 1}, {4, 1}}), before, "overlap");
  Refused(ledger.Grant(1, {{15, 2}}), before, "not all of");
}

TEST_F(LedgerTest, ReleasedUnitsStayHeldUntilFencedAndReclaimed) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Ok(ledger.OpenGate(1, {.claim = 8}));
  Ok(ledger.Grant(1, {{2, 6}}));
  Ok(ledger.Release(1, {{4, 2}, {7, 1}}, 9));
  EXPECT_EQ(ledger.held(1), 8u);
  EXPECT_EQ(ledger.free(), 8u);
  Ledger before = ledger;
  Refused(ledger.Release(1, {{2, 1}}, 9), before, "number is taken");
  Refused(ledger.Release(1, {{4, 1}}, 10), before, "not all of [4, +1) is leased");
  Refused(ledger.Release(1, {{2, 2}, {3, 1}}, 10), before, "overlap");
  Refused(ledger.Release(2, {{4, 1}}, 10), before, "there is no job 2");
  Refused(ledger.Reclaim(1, {{4, 2}}), before, "is spare");
  Refused(ledger.Fenced(1, 8), before, "no release 8");
  Ok(ledger.Fenced(1, 9));
  EXPECT_EQ(ledger.held(1), 8u);
  EXPECT_EQ(ledger.Find(1)->spare, 3u);
  before = ledger;
  Refused(ledger.Fenced(1, 9), before, "no release 9");
  Ok(ledger.Reclaim(1, {{4, 2}}));
  EXPECT_EQ(ledger.held(1), 6u);
  EXPECT_EQ(ledger.free(), 10u);
}

TEST_F(LedgerTest, OwnSpareMayBeGrantedAgainWithinTheClaim) {
  Parked(1, "a", 2, 4, {{0, 2}});
  Ok(ledger.OpenGate(1, {.claim = 4}));
  Ok(ledger.Grant(1, {{2, 2}}));
  Ok(ledger.Release(1, {{2, 2}}, 1));
  Ok(ledger.Fenced(1, 1));
  const Ledger before = ledger;
  Refused(ledger.Grant(1, {{8, 1}}), before, "claim");
  Ok(ledger.Grant(1, {{2, 2}}));
  EXPECT_EQ(ledger.held(1), 4u);
  EXPECT_EQ(ledger.Find(1)->spare, 0u);
}

TEST_F(LedgerTest, TheTroughFreesSpareUnitsAndMeasuresTheBase) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Ok(ledger.OpenGate(1, {.claim = 8}));
  Ok(ledger.Grant(1, {{4, 4}}));
  Ok(ledger.Release(1, {{6, 2}}, 1));
  Ledger before = ledger;
  Refused(ledger.ReachTrough(1, true), before, "not fenced");
  Refused(ledger.ReachTrough(1, false), before, "was to give back");
  Ok(ledger.Fenced(1, 1));
  EXPECT_EQ(ledger.Find(1)->loose, (Extents{{4, 4}})) << "leased or spare";
  Ok(ledger.Release(1, {{0, 1}, {5, 1}}, 2));
  Ok(ledger.Fenced(1, 2));
  Ok(ledger.ReachTrough(1, true));
  EXPECT_EQ(ledger.map().Held(1), (Extents{{1, 1}, {4, 1}}));
  EXPECT_EQ(ledger.Find(1)->last_trough, (Extents{{1, 1}, {4, 1}}));
  // Unit 0 was base at the trough before: the job may have it there again at the next one.
  EXPECT_EQ(ledger.Find(1)->base, (Extents{{0, 2}, {4, 1}}));
  EXPECT_TRUE(ledger.Find(1)->loose.empty());
}

TEST_F(LedgerTest, AnUndrainedTroughKeepsEverything) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Ok(ledger.OpenGate(1, {.claim = 8, .returns = false}));
  Ok(ledger.Grant(1, {{2, 2}}));
  EXPECT_EQ(ledger.Find(1)->loose, (Extents{{2, 2}}));
  Ok(ledger.ReachTrough(1, false));
  EXPECT_EQ(ledger.held(1), 4u);
  EXPECT_FALSE(ledger.Find(1)->drained);
  EXPECT_EQ(ledger.Find(1)->base, (Extents{{0, 2}}));
  Ok(ledger.Release(1, {{2, 2}}, 5));  // it may still give back while it is parked
  Ok(ledger.Fenced(1, 5));
  EXPECT_EQ(ledger.held(1), 2u);
}

TEST_F(LedgerTest, GateTermsAreChecked) {
  Parked(1, "a", 2, 8, {{0, 2}});
  const Ledger before = ledger;
  Refused(ledger.OpenGate(1, {.claim = 1}), before,
          "allowed: from what it holds, 2.0 MiB, to its limit, 8.0 MiB");
  Refused(ledger.OpenGate(1, {.claim = 9}), before, "allowed");
  Refused(ledger.OpenGate(1, {.claim = 4, .piece = 0}), before, "piece");
  Refused(ledger.RaiseClaim(1, 4), before, "is parked");
  Refused(ledger.LoseProfile(1), before, "is parked");
  Refused(ledger.ReachTrough(1, true), before, "is parked");
}

TEST_F(LedgerTest, ClaimsOnlyRiseAndOnlyToTheLimit) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Ok(ledger.OpenGate(1, {.claim = 4}));
  const Ledger before = ledger;
  Refused(ledger.RaiseClaim(1, 3), before, "from its claim");
  Refused(ledger.RaiseClaim(1, 9), before, "to its limit");
  Ok(ledger.RaiseClaim(1, 8));
}

TEST_F(LedgerTest, AClaimIsWaivedInPartsAndWholeAgainWhenItIsRaised) {
  Parked(1, "a", 2, 8, {{0, 2}});
  const Ledger parked = ledger;
  Refused(ledger.OpenGate(1, {.claim = 6, .waived = 1}), parked, "opens whole");
  Refused(ledger.Waive(1, 1), parked, "is parked");
  Ok(ledger.OpenGate(1, {.claim = 6}));
  Ok(ledger.Waive(1, 3));
  EXPECT_EQ(ledger.Find(1)->terms.ahead(), 3u);
  const Ledger before = ledger;
  Refused(ledger.Waive(1, 7), before, "up to its claim");
  // It may still be granted up to its claim: what it waived is a promise, and the policy's
  // business.
  Ok(ledger.Grant(1, {{2, 4}}));
  Ok(ledger.RaiseClaim(1, 7));
  EXPECT_EQ(ledger.Find(1)->terms.ahead(), 7u);
  Ok(ledger.Waive(1, 1));
  Ok(ledger.LoseProfile(1));
  EXPECT_EQ(ledger.Find(1)->terms.ahead(), 7u) << "nothing is known of it any more";
}

TEST_F(LedgerTest, AReleasedJobParksBeforeItsFencesAreReached) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Ok(ledger.OpenGate(1, {.claim = 8}));
  Ok(ledger.Grant(1, {{4, 4}}));
  Ok(ledger.Release(1, {{4, 4}}, 1));
  Ok(ledger.ReachTrough(1, false));
  EXPECT_EQ(ledger.held(1), 6u) << "its GPU has not passed them";
  EXPECT_EQ(ledger.Find(1)->base, (Extents{{0, 2}})) << "nothing was measured";
  Ok(ledger.OpenGate(1, {.claim = 8}));
  Ok(ledger.Fenced(1, 1));
  EXPECT_EQ(ledger.Find(1)->spare, 4u);
}

TEST_F(LedgerTest, AMismatchedJobKeepsItsClaimAndGivesNothingBack) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Ok(ledger.OpenGate(1, {.claim = 4}));
  Ok(ledger.Grant(1, {{2, 2}}));
  Ok(ledger.LoseProfile(1));
  EXPECT_EQ(ledger.Find(1)->phase, Phase::kUnprofiled);
  EXPECT_EQ(ledger.Find(1)->terms.claim, 4u);
  EXPECT_FALSE(ledger.Find(1)->terms.returns);
  EXPECT_EQ(ledger.Find(1)->loose, (Extents{{2, 2}}));
  Ok(ledger.ReachTrough(1, true));
}

TEST_F(LedgerTest, ADeadJobsMemoryIsQuarantinedUntilItsLastHolderIsGone) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Ok(ledger.OpenGate(1, {.claim = 8}));
  Ok(ledger.Grant(1, {{2, 4}}));
  Ok(ledger.Release(1, {{2, 1}}, 1));
  Ok(ledger.Release(1, {{3, 1}}, 2));
  Ok(ledger.Fenced(1, 2));
  Ok(ledger.Die(1));
  EXPECT_EQ(ledger.map().Count(1, UnitState::kQuarantined), 6u);
  EXPECT_EQ(ledger.free(), 10u);
  const Ledger before = ledger;
  Refused(ledger.Die(1), before, "is dying");
  Refused(ledger.Fenced(1, 1), before, "is dying");
  Refused(ledger.Leave(1), before, "is dying");
  Ok(ledger.LastHolderGone(1));
  EXPECT_EQ(ledger.free(), 16u);
  EXPECT_EQ(ledger.Find(1), nullptr);
}

TEST_F(LedgerTest, LeavesOnlyWithEmptyHands) {
  Parked(1, "a", 2, 8, {{0, 2}});
  const Ledger before = ledger;
  Refused(ledger.Leave(1), before, "still holds 2.0 MiB");
  Refused(ledger.LastHolderGone(1), before, "is parked");
  Ok(ledger.Release(1, {{0, 2}}, 1));
  const Ledger released = ledger;
  Refused(ledger.Leave(1), released, "still holds 2.0 MiB");
  Ok(ledger.Fenced(1, 1));
  Ok(ledger.Leave(1));
}

TEST_F(LedgerTest, SpareUnitsAreFreeWhenTheirJobLeaves) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Ok(ledger.OpenGate(1, {.claim = 8}));
  Ok(ledger.Release(1, {{0, 2}}, 1));
  Ok(ledger.Fenced(1, 1));
  ASSERT_EQ(ledger.Find(1)->spare, 2u);
  Ok(ledger.Leave(1));
  EXPECT_EQ(ledger.free(), ledger.pool_units());
  Ok(ledger.CheckInvariants());
}

TEST_F(LedgerTest, WhatIsOutsideThePoolTakesRoomInTheLimit) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Ok(ledger.SetOutside(1, 3));
  Ok(ledger.OpenGate(1, {8, 1, true, End::kLow}));
  const Ledger before = ledger;
  Refused(ledger.Grant(1, {{2, 4}}), before, "has 3.0 MiB outside the pool, its limit is 8.0 MiB");
  Ok(ledger.Grant(1, {{2, 3}}));
  const Ledger full = ledger;
  Refused(ledger.SetOutside(1, 4), full, "holds 5.0 MiB of it, and its limit is 8.0 MiB");
  Refused(ledger.SetLimit(1, 7), full, "holds 5.0 MiB and has 3.0 MiB outside the pool");
  Ok(ledger.SetOutside(1, 0));
  Ok(ledger.Grant(1, {{5, 3}}));
}

TEST_F(LedgerTest, ALimitDoesNotFallBelowWhatIsOutsideToo) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Ok(ledger.SetOutside(1, 3));
  const Ledger before = ledger;
  Refused(ledger.SetLimit(1, 4), before,
          "limit 4.0 MiB: job 1 'a' holds 2.0 MiB and has 3.0 MiB outside the pool; allowed: from "
          "5.0 MiB");
  Ok(ledger.SetLimit(1, 5));
}

/// No operation can do this, so the test reaches into a copy.
TEST_F(LedgerTest, ChecksBases) {
  Parked(1, "a", 2, 8, {{0, 2}});
  auto with = [this](auto change) {
    Ledger copy = ledger;
    change(const_cast<Job*>(copy.Find(1)));
    return copy.CheckInvariants().message();
  };
  EXPECT_NE(with([](Job* job) { job->base.clear(); }).find("not in its base"), std::string::npos);
  EXPECT_NE(with([](Job* job) {
              job->loose = {{0, 1}};
            }).find("outside its base does not match"),
            std::string::npos);
  EXPECT_NE(with([](Job* job) {
              job->last_trough = {{0, 1}};
            }).find("holds more than its base"),
            std::string::npos);
  EXPECT_NE(with([](Job* job) {
              job->base = {{4, 1}, {0, 2}};
            }).find("no sorted list"),
            std::string::npos);
  EXPECT_NE(with([](Job* job) {
              job->base = {{0, 17}};
            }).find("no sorted list"),
            std::string::npos);
}

TEST_F(LedgerTest, NamesTheHolders) {
  Parked(1, "a", 2, 8, {{0, 2}});
  Parked(2, "b", 3, 8, {{2, 3}});
  EXPECT_EQ(ledger.Holders(),
            "job 2 'b' holds 3.0 MiB (limit 8.0 MiB), job 1 'a' holds 2.0 MiB (limit 8.0 MiB)");
  EXPECT_EQ(ledger.Holders(2), "job 1 'a' holds 2.0 MiB (limit 8.0 MiB)");
  Ok(ledger.Die(1));
  EXPECT_EQ(ledger.Holders(2), "job 1 'a' holds 2.0 MiB (limit 8.0 MiB, its process ended)");
}

}  // namespace
}  // namespace sluice::scheduler
