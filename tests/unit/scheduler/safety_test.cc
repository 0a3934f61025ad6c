// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/safety/safety.h"

#include <gtest/gtest.h>

#include <random>

#include "scheduler/audit/brute.h"

namespace sluice::scheduler {
namespace {

void Ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }

void Parked(Ledger* ledger, JobId id, Units request, Units limit, const Extents& base) {
  Ok(ledger->Admit(id, "j", request, limit));
  Ok(ledger->StartUnprofiled(id));
  Ok(ledger->Grant(id, base));
  Ok(ledger->ReachTrough(id, true));
}

TEST(Fits, OneRunOrEnoughOfThem) {
  EXPECT_TRUE(Fits({}, 0, kWholeClaim));
  EXPECT_TRUE(Fits({{0, 5}}, 5, kWholeClaim));
  EXPECT_FALSE(Fits({{0, 3}, {5, 3}}, 4, kWholeClaim));
  EXPECT_TRUE(Fits({{0, 3}, {5, 3}}, 6, 1));
  EXPECT_TRUE(Fits({{0, 3}, {5, 3}}, 5, 2));
  EXPECT_FALSE(Fits({{0, 3}, {5, 3}}, 6, 2)) << "2 and 2 leave 1 and 1, which serve no 2";
}

/// What Fits promises, by an adversary that tries every sequence of requests and every way to serve
/// them badly is impossible: the placer takes pieces from ends of runs, so each request may hit any
/// run that has room.
bool SurvivesEverySequence(std::vector<Units> runs, Units need, Units piece) {
  if (need == 0) return true;
  for (Units ask = 1; ask <= std::min(need, piece); ++ask) {
    bool served = false;
    for (size_t i = 0; i < runs.size(); ++i) {
      if (runs[i] < ask) continue;
      served = true;
      runs[i] -= ask;
      const bool survives = SurvivesEverySequence(runs, need - ask, piece);
      runs[i] += ask;
      if (!survives) return false;
    }
    if (!served) return false;
  }
  return true;
}

TEST(Fits, NoSequenceOfRequestsDefeatsIt) {
  for (Units a = 0; a <= 5; ++a) {
    for (Units b = 0; b <= a; ++b) {
      for (Units c = 0; c <= b; ++c) {
        for (Units need = 1; need <= 7; ++need) {
          for (Units piece = 1; piece <= 4; ++piece) {
            Extents runs;
            if (a > 0) runs.push_back({0, a});
            if (b > 0) runs.push_back({10, b});
            if (c > 0) runs.push_back({20, c});
            if (!Fits(runs, need, piece)) continue;
            // The promise holds whichever of the runs that were counted on is used: take the fewest
            // that suffice.
            std::vector<Units> counted;
            for (const Extent& run : runs) {
              counted.push_back(run.length);
              Extents first(runs.begin(),
                            runs.begin() + static_cast<std::ptrdiff_t>(counted.size()));
              if (Fits(first, need, piece)) break;
            }
            ASSERT_TRUE(SurvivesEverySequence(counted, need, piece))
                << a << " " << b << " " << c << " need " << need << " piece " << piece;
          }
        }
      }
    }
  }
}

TEST(IsSafe, TwoJobsThatWaitForEachOther) {
  Ledger ledger(10, 1);
  Parked(&ledger, 1, 1, 8, {{0, 1}});
  Parked(&ledger, 2, 1, 8, {{1, 1}});
  Ok(ledger.OpenGate(1, {.claim = 7}));
  Ok(ledger.OpenGate(2, {.claim = 7}));
  Ok(ledger.Grant(1, {{2, 3}}));
  EXPECT_TRUE(IsSafe(ledger)) << "job 1 can have its other 3";
  Ok(ledger.Grant(2, {{7, 3}}));
  EXPECT_FALSE(IsSafe(ledger)) << "2 free, both need 3";
  EXPECT_FALSE(IsSafe(ledger, Measure::kSums));
  EXPECT_EQ(FindOrder(ledger).stuck, (std::vector<JobId>{1, 2}));
}

TEST(IsSafe, RunsMatter) {
  Ledger ledger(8, 1);
  Parked(&ledger, 1, 1, 6, {{0, 1}});
  Parked(&ledger, 2, 1, 6, {{4, 1}});  // in the middle
  Ok(ledger.OpenGate(1, {.claim = 5}));
  EXPECT_FALSE(IsSafe(ledger));
  EXPECT_TRUE(IsSafe(ledger, Measure::kSums));
  Ledger pieces = ledger;
  Ok(pieces.ReachTrough(1, true));
  Ok(pieces.OpenGate(1, {.claim = 5, .piece = 2}));
  EXPECT_TRUE(IsSafe(pieces)) << "3 + 3 units serve 4 in pieces of 2";
}

TEST(IsSafe, WhatAJobKeepsIsNotGivenBack) {
  Ledger ledger(8, 1);
  Parked(&ledger, 1, 1, 7, {{0, 1}});
  Parked(&ledger, 2, 1, 7, {{1, 1}});
  Ok(ledger.OpenGate(1, {.claim = 5, .returns = true}));
  Ok(ledger.Grant(1, {{2, 4}}));
  Ok(ledger.OpenGate(2, {.claim = 7}));
  EXPECT_TRUE(IsSafe(ledger));
  Ok(ledger.LoseProfile(1));
  EXPECT_FALSE(IsSafe(ledger));
}

TEST(IsSafe, WhatIsWaivedIsNotCountedOn) {
  Ledger ledger(10, 1);
  Parked(&ledger, 1, 1, 8, {{0, 1}});
  Parked(&ledger, 2, 1, 8, {{1, 1}});
  Ok(ledger.OpenGate(1, {.claim = 7}));
  Ok(ledger.OpenGate(2, {.claim = 7}));
  Ok(ledger.Grant(1, {{2, 3}}));
  Ok(ledger.Grant(2, {{7, 3}}));
  EXPECT_FALSE(IsSafe(ledger)) << "2 free, both need 3";
  Ok(ledger.Waive(1, 2));
  EXPECT_TRUE(IsSafe(ledger)) << "job 1 needs 1 more, and then gives back 4";
}

TEST(IsSafe, WhatAParkedJobsGpuHasNotPassedComesBackByItself) {
  Ledger ledger(10, 1);
  Parked(&ledger, 1, 1, 8, {{0, 1}});
  Parked(&ledger, 2, 1, 8, {{1, 1}});
  Ok(ledger.OpenGate(1, {.claim = 7}));
  Ok(ledger.Grant(1, {{2, 6}}));
  Ok(ledger.Release(1, {{2, 6}}, 1));
  Ok(ledger.ReachTrough(1, false));
  Ok(ledger.OpenGate(2, {.claim = 8}));
  EXPECT_TRUE(IsSafe(ledger));
  Ok(ledger.OpenGate(1, {.claim = 7}));
  EXPECT_TRUE(IsSafe(ledger)) << "job 1 needs nothing that it does not hold";
  EXPECT_EQ(FindOrder(ledger).order, (std::vector<JobId>{1, 2}));
}

/// A job that gives nothing back takes its claim for good: those after it do not find it free any
/// more.
TEST(IsSafe, ClaimsOfKeepersAddUp) {
  Ledger ledger(8, 1);
  Ok(ledger.Admit(1, "a", 0, 5));
  Ok(ledger.Admit(2, "b", 0, 4));
  Ok(ledger.StartUnprofiled(1));
  EXPECT_TRUE(IsSafe(ledger));
  Ok(ledger.StartUnprofiled(2));
  EXPECT_FALSE(IsSafe(ledger));
  Ok(ledger.SetLimit(2, 3));
  EXPECT_TRUE(IsSafe(ledger));
}

/// It may be served out of each of the runs that it needs, badly, so none of them is the next
/// one's.
TEST(IsSafe, AKeeperHasAllTheRunsThatItNeeds) {
  Ledger ledger(8, 1);
  Parked(&ledger, 1, 1, 6, {{0, 1}});
  Parked(&ledger, 2, 1, 6, {{4, 1}});  // in the middle: 3 and 3 are free
  Ok(ledger.OpenGate(1, {.claim = 5, .piece = 2, .returns = false}));
  EXPECT_TRUE(IsSafe(ledger)) << "4 in pieces of 2, out of both";
  Ok(ledger.OpenGate(2, {.claim = 3, .piece = 2, .returns = false}));
  EXPECT_EQ(FindOrder(ledger).stuck, (std::vector<JobId>{2})) << "1 and 1 may be left, no piece";
}

TEST(IsSafe, AKeeperLeavesTheRunsThatItDoesNotNeed) {
  Ledger ledger(21, 1);
  Parked(&ledger, 1, 1, 8, {{19, 1}});
  Parked(&ledger, 2, 1, 8, {{20, 1}});
  Parked(&ledger, 3, 1, 3, {{4, 1}, {9, 1}, {14, 1}});  // four runs of 4 are free
  // 6 in pieces of 3: 2 and 2 of a run may be of no use to either.
  Ok(ledger.OpenGate(1, {.claim = 7, .piece = 3, .returns = false}));
  Ok(ledger.OpenGate(2, {.claim = 7, .piece = 3, .returns = false}));
  EXPECT_TRUE(IsSafe(ledger)) << "two runs for each";
}

TEST(IsSafe, AKeeperMayNeedRunsOfEachLength) {
  const auto safe_with = [](Units claim) {
    Ledger ledger(16, 1);
    Parked(&ledger, 1, 1, 10, {{14, 1}});
    Parked(&ledger, 2, 1, 2, {{15, 1}});
    Parked(&ledger, 3, 1, 2, {{5, 1}, {10, 1}});  // runs of 5, 4 and 3 are free
    Ok(ledger.OpenGate(1, {.claim = claim, .piece = 3, .returns = false}));
    Ok(ledger.OpenGate(2, {.claim = 1, .piece = 3, .returns = false}));
    return IsSafe(ledger);
  };
  // In pieces of 3 it may find 2 of each run too short, but for the last one that it takes.
  EXPECT_TRUE(safe_with(1 + 8)) << "5 - 2, 4 - 2 and 3";
  EXPECT_FALSE(safe_with(1 + 9));
}

TEST(IsSafe, DyingJobsComeBackForGrantsOnly) {
  Ledger ledger(8, 1);
  Parked(&ledger, 1, 1, 6, {{0, 1}});
  Parked(&ledger, 2, 1, 6, {{1, 1}});
  Ok(ledger.OpenGate(1, {.claim = 5}));
  Ok(ledger.Grant(1, {{2, 4}}));
  Ok(ledger.OpenGate(2, {.claim = 6}));
  Ok(ledger.Die(1));
  EXPECT_TRUE(IsSafe(ledger));
  EXPECT_FALSE(IsSafe(ledger, Measure::kExtents, Dying::kMayStay));
}

TEST(NoWorse, LetsTheOthersGoOnWhenOneIsStuckAlready) {
  Ledger ledger(8, 1);
  Parked(&ledger, 1, 1, 7, {{0, 1}});
  Parked(&ledger, 2, 1, 7, {{1, 1}});
  Ok(ledger.OpenGate(1, {.claim = 6}));
  Ok(ledger.Grant(1, {{2, 4}}));
  Ok(ledger.OpenGate(2, {.claim = 5}));
  Ok(ledger.LoseProfile(1));  // needs 1 of the 2 free units; job 2 needs 4
  ASSERT_EQ(FindOrder(ledger).stuck, (std::vector<JobId>{2}));
  Ledger grant = ledger;
  Ok(grant.Grant(1, {{6, 1}}));
  EXPECT_TRUE(NoWorse(ledger, grant));
  grant = ledger;
  Ok(grant.Grant(2, {{6, 2}}));
  EXPECT_FALSE(NoWorse(ledger, grant)) << "job 1 could complete before";
}

TEST(NoWorse, AnotherOneThatIsStuckInsteadIsWorse) {
  Ledger ledger(8, 1);
  Ok(ledger.Admit(1, "a", 0, 5));
  Ok(ledger.Admit(2, "b", 0, 4));
  Ok(ledger.StartUnprofiled(1));
  Ok(ledger.StartUnprofiled(2));
  ASSERT_EQ(FindOrder(ledger).stuck, (std::vector<JobId>{2}));
  Ledger grant = ledger;
  Ok(grant.Grant(2, {{0, 4}}));
  ASSERT_EQ(FindOrder(grant).stuck, (std::vector<JobId>{1}));
  EXPECT_FALSE(NoWorse(ledger, grant)) << "job 1 could complete before";
}

/// A unit that it kept at its trough, in the middle of its iteration.
void GiveUpOne(JobId id, Ledger* ledger) {
  const Extents kept =
      Intersect(ledger->map().Held(id, UnitState::kLeased), ledger->Find(id)->base);
  if (kept.empty()) return;
  const Extents one = {{kept.front().offset, 1}};
  Ok(ledger->Release(id, one, 1));
  Ok(ledger->Fenced(id, 1));
  Ok(ledger->Reclaim(id, one));
}

/// A random ledger with up to five jobs past their gate, at most one of which gives nothing back
/// (with more, the ledger's packing may refuse what brute force finds).
Ledger RandomLedger(std::mt19937* random) {
  Rules rules;
  rules.check_admission = false;
  Ledger ledger(14, 1, rules);
  auto pick = [random](Units bound) { return static_cast<Units>((*random)() % bound); };
  const JobId jobs = 2 + pick(4);
  const JobId keeper = pick(2) == 0 ? 1 + pick(jobs) : kNoJob;
  auto take = [&](JobId id, Units most) {
    for (Units i = 0; i < most; ++i) {
      const Units at = pick(14);
      if (ledger.map().All({at, 1}, UnitState::kFree, kNoJob)) (void)ledger.Grant(id, {{at, 1}});
    }
  };
  for (JobId id = 1; id <= jobs; ++id) {
    (void)ledger.Admit(id, "j", 0, 14);
    (void)ledger.StartUnprofiled(id);
    take(id, pick(3));
    (void)ledger.ReachTrough(id, true);
  }
  for (JobId id = 1; id <= jobs; ++id) {
    const Units claim = std::min<Units>(14, ledger.held(id) + pick(7));
    const Units piece = pick(3) == 0 ? kWholeClaim : 1 + pick(3);
    (void)ledger.OpenGate(id, {.claim = claim, .piece = piece, .returns = id != keeper});
    take(id, pick(4));
    if (pick(6) == 0) GiveUpOne(id, &ledger);
    if (pick(4) == 0) (void)ledger.Waive(id, pick(claim + 1));
    if (pick(8) == 0) (void)ledger.Die(id);
  }
  return ledger;
}

bool BruteForce(const Ledger& ledger, Measure measure) {
  std::vector<bool> available(ledger.pool_units(), false);
  std::vector<audit::Party> parties;
  for (const Span& span : ledger.map().spans()) {
    const Job* holder = ledger.Find(span.holder);
    if (holder != nullptr && holder->phase != Phase::kDying) continue;
    for (Units at = span.offset; at < span.end(); ++at) available[at] = true;
  }
  for (const Job& job : ledger.jobs()) {
    if (!job.past_gate()) continue;
    const Units need = job.terms.ahead() - std::min(job.terms.ahead(), job.held());
    audit::Party party{job.id,
                       need,
                       job.terms.piece,
                       job.terms.returns,
                       std::vector<bool>(ledger.pool_units(), false),
                       std::vector<bool>(ledger.pool_units(), false)};
    const Extents held = ledger.map().Held(job.id);
    const auto mark = [](const Extents& extents, std::vector<bool>* units) {
      for (const Extent& extent : extents) {
        for (Units at = extent.offset; at < extent.end(); ++at) (*units)[at] = true;
      }
    };
    if (party.returns) mark(Subtract(held, job.base), &party.gives_back);
    if (party.returns) mark(Subtract(job.base, held), &party.may_keep);
    parties.push_back(std::move(party));
  }
  return audit::SomeOrderCompletes(available, parties, measure == Measure::kSums);
}

bool SomeOfABaseIsFree(const Ledger& ledger) {
  return std::any_of(ledger.jobs().begin(), ledger.jobs().end(), [&](const Job& job) {
    return !Subtract(job.base, ledger.map().Held(job.id)).empty();
  });
}

/// SafeWith tells what a trial would, for a grant and for a gate.
TEST(Sums, TellsWhatATrialWould) {
  std::mt19937 random(5);
  int told[2] = {0, 0};
  for (int round = 0; round < 20000; ++round) {
    const Ledger ledger = RandomLedger(&random);
    const Extents free = ledger.map().FreeRuns();
    if (free.empty()) continue;
    const Extent taken{free.front().offset, 1 + static_cast<Units>(random() % free.front().length)};
    for (const Job& job : ledger.jobs()) {
      Ledger trial = ledger;
      GateTerms terms = job.terms;
      if (job.phase == Phase::kParked) {
        terms = {.claim = job.held() + taken.length, .piece = 1};
        if (!trial.OpenGate(job.id, terms).ok()) continue;
      }
      if (!trial.Grant(job.id, {taken}).ok()) continue;
      const bool safe = IsSafe(trial, Measure::kSums);
      const bool told_safe =
          Sums(ledger).SafeWith(job.id, job.held() + taken.length, terms.ahead(), terms.returns);
      // Which units are whose is not looked at: some of a base may be missing, or be taken again.
      ASSERT_TRUE(told_safe || !safe) << "round " << round << " job " << job.id;
      if (SomeOfABaseIsFree(ledger)) continue;
      ASSERT_EQ(told_safe, safe) << "round " << round << " job " << job.id;
      ++told[safe ? 1 : 0];
    }
  }
  EXPECT_GT(told[0], 50);
  EXPECT_GT(told[1], 100);
}

TEST(Sums, ClaimsOfKeepersAddUp) {
  Ledger ledger(8, 1);
  Ok(ledger.Admit(1, "a", 0, 5));
  Ok(ledger.Admit(2, "b", 0, 4));
  Ok(ledger.StartUnprofiled(1));
  EXPECT_TRUE(Sums(ledger).safe());
  EXPECT_FALSE(Sums(ledger).SafeWith(2, 0, 4, false));
  EXPECT_TRUE(Sums(ledger).SafeWith(2, 0, 3, false));
  Ok(ledger.StartUnprofiled(2));
  EXPECT_FALSE(Sums(ledger).safe());
}

/// What a safe state promises: whoever is first in the order gets what it asks for somewhere, and
/// the state stays safe.
TEST(IsSafe, TheFirstInTheOrderCanBeServed) {
  std::mt19937 random(7);
  int asked = 0;
  for (int round = 0; round < 20000; ++round) {
    const Ledger ledger = RandomLedger(&random);
    const Order order = FindOrder(ledger, Measure::kExtents, Dying::kMayStay);
    if (!order.safe() || order.order.empty()) continue;
    const Job& first = *ledger.Find(order.order.front());
    const Units ahead = first.terms.ahead();
    if (!first.terms.returns || ahead <= first.held()) continue;
    const Units most = std::min(ahead - first.held(), first.terms.piece);
    for (Units ask = 1; ask <= most; ++ask) {
      ++asked;
      bool served = false;
      for (const Extent& run : ledger.map().FreeRuns()) {
        for (Units at = run.offset; at + ask <= run.end() && !served; ++at) {
          Ledger granted = ledger;
          served = granted.Grant(first.id, {{at, ask}}).ok() && NoWorse(ledger, granted);
        }
      }
      ASSERT_TRUE(served) << "round " << round << ": " << first.Title() << " asks for " << ask;
    }
  }
  EXPECT_GT(asked, 1000);
}

TEST(IsSafe, GreedyEqualsBruteForce) {
  std::mt19937 random(3);
  int safe = 0;
  int in_sums_only = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    const Ledger ledger = RandomLedger(&random);
    ASSERT_TRUE(ledger.CheckInvariants().ok()) << ledger.CheckInvariants().message();
    const bool extents = IsSafe(ledger);
    const bool sums = IsSafe(ledger, Measure::kSums);
    ASSERT_EQ(extents, BruteForce(ledger, Measure::kExtents)) << "round " << round;
    ASSERT_EQ(sums, BruteForce(ledger, Measure::kSums)) << "round " << round;
    ASSERT_TRUE(sums || !extents) << "extents imply sums";
    const bool in_numbers = Sums(ledger).safe();
    ASSERT_TRUE(SomeOfABaseIsFree(ledger) ? in_numbers || !sums : in_numbers == sums)
        << "round " << round;
    safe += extents ? 1 : 0;
    in_sums_only += sums && !extents ? 1 : 0;
  }
  // Both answers have to occur often, or the comparison shows nothing.
  EXPECT_GT(safe, kRounds / 10);
  EXPECT_GT(in_sums_only, kRounds / 20);
  EXPECT_LT(safe, kRounds * 9 / 10);
}

}  // namespace
}  // namespace sluice::scheduler
