// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Spare units: which of them become free, and that to find it out costs by the pieces of the pool,
// not by their square.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <random>

#include "scheduler/policy/policy.h"
#include "scheduler/safety/safety.h"

namespace {

/// What is asked for of the heap: a count of what is looked at that no busy machine changes, as
/// each look at the pool copies its pieces.
size_t g_allocated = 0;

}  // namespace

void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  g_allocated += bytes;
  return std::malloc(bytes);
}
void* operator new(size_t bytes) {
  g_allocated += bytes;
  if (void* at = std::malloc(bytes)) return at;
  throw std::bad_alloc();
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, size_t) noexcept { std::free(at); }

namespace sluice::scheduler {
namespace {

void Ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }

/// What becomes free, tried one after the other: all of a job's, then each run of it.
std::optional<Extents> Reference(const Ledger& ledger, JobId* of) {
  for (const Job& job : ledger.jobs()) {
    const Extents spare = ledger.map().Held(job.id, UnitState::kSpare);
    std::vector<Extents> tries = {spare};
    for (const Extent& extent : spare) tries.push_back({extent});
    for (const Extents& extents : tries) {
      const bool returns = job.phase == Phase::kRunning && job.terms.returns;
      const Change change = {job.id, job.terms, returns, {}, extents};
      *of = job.id;
      if (!extents.empty() && NoWorse(ledger, {ledger, change})) return extents;
    }
  }
  return std::nullopt;
}

/// Jobs at any place of their iterations, with units in all states, in a pool of a few units.
Ledger AnyLedger(std::mt19937& random) {
  const auto any = [&random](Units from, Units to) {
    return std::uniform_int_distribution<Units>(from, to)(random);
  };
  const Units pool = any(8, 28);
  Ledger ledger(pool, 1 << 20, Rules{.check_admission = false});
  const auto take = [&](JobId job, Units least) {
    for (Units at = 0; at < pool; ++at) {
      if (any(0, 3) < least) (void)ledger.Grant(job, {{at, 1}}).ok();
    }
  };
  ReleaseId release = 1;
  const auto give = [&](JobId job, Units most) {
    Extents some;
    for (const Extent& held : ledger.map().Held(job, UnitState::kLeased)) {
      for (Units at = held.offset; at < held.end(); ++at) {
        if (any(0, 3) < most) some.push_back({at, 1});
      }
    }
    if (some.empty()) return;
    Ok(ledger.Release(job, Merge(std::move(some)), release));
    if (any(0, 3) > 0) Ok(ledger.Fenced(job, release));
    ++release;
  };
  const JobId jobs = any(1, 3);
  for (JobId id = 1; id <= jobs; ++id) {
    Ok(ledger.Admit(id, "job", any(0, pool / 2), any(pool / 2, pool)));
    Ok(ledger.SetStitches(id, any(0, 2) == 0));
    Ok(ledger.StartUnprofiled(id));
    take(id, 1);
  }
  for (JobId id = 1; id <= jobs; ++id) {
    if (any(0, 3) == 0 || !ledger.ReachTrough(id, true).ok()) continue;
    if (any(0, 4) == 0) continue;
    const Job& job = *ledger.Find(id);
    GateTerms terms;
    terms.claim = any(job.held(), std::max(job.held(), job.limit));
    terms.piece = any(1, 5);
    terms.returns = any(0, 3) > 0;
    (void)ledger.OpenGate(id, terms).ok();
    if (any(0, 2) == 0) (void)ledger.Waive(id, any(0, terms.claim / 2)).ok();
    take(id, 1);
  }
  for (JobId id = 1; id <= jobs; ++id) give(id, 3);
  if (any(0, 5) == 0) (void)ledger.Die(jobs).ok();
  return ledger;
}

TEST(Spare, IsFreedAsIfEachRunWereTriedByItself) {
  // Calls in which each run has its turn, with one trial in nearly each: up to 14 runs, and what
  // halving takes to come to one of them; twice, as the first round may have passed it already.
  constexpr int kTwoRounds = 60;
  std::mt19937 random(7);
  int freed = 0;
  int kept = 0;
  int more = 0;
  int less = 0;
  for (int i = 0; i < 6'000; ++i) {
    const Ledger start = AnyLedger(random);
    Ledger wanted = start;
    JobId job = kNoJob;
    while (const auto extents = Reference(wanted, &job)) Ok(wanted.Reclaim(job, *extents));
    SpareCursor cursor;
    for (SpareCursor* const at : {static_cast<SpareCursor*>(nullptr), &cursor}) {
      Ledger ledger = start;
      // Whoever has a cursor asks again, as every tick does.
      for (int nothing = 0; nothing <= (at == nullptr ? 0 : kTwoRounds);) {
        for (auto& [id, place] : cursor.places) place.pieces = static_cast<int64_t>(random() % 20);
        const auto decision = Next(ledger, {}, {}, {}, nullptr, at);
        ++nothing;
        if (!decision) continue;
        nothing = 0;
        ASSERT_EQ(decision->kind, Decision::Kind::kReclaim);
        Ledger next = ledger;
        Ok(Apply(*decision, {}, &next));
        ASSERT_TRUE(NoWorse(ledger, next));
        ledger = std::move(next);
      }
      ASSERT_FALSE(Reference(ledger, &job).has_value()) << "there is more, state " << i;
      more += ledger.free() > wanted.free() ? 1 : 0;
      less += ledger.free() < wanted.free() ? 1 : 0;
      freed += ledger.free() > start.free() ? 1 : 0;
      for (const Job& one : ledger.jobs()) kept += one.spare > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(freed, 500);
  EXPECT_GT(kept, 500);
  // Where one frees another's way, another order ends elsewhere, with more or with less.
  EXPECT_LT(less, freed / 200) << more << " with more, of " << freed;
  EXPECT_LT(less + more, freed / 100);
}

TEST(Spare, NobodyIsDeniedBeforeEachRunWasTried) {
  // Two jobs that give nothing back share the one free run. Each hole of the first, freed, would
  // have it want more of that run than the second one leaves; only its last spare unit makes the
  // run longer.
  constexpr Units kHoles = 16;
  constexpr Units kLast = 2 * kHoles;
  constexpr Units kEach = 10;
  Ledger ledger(kLast + 1 + 2 * kEach, 1 << 20, Rules{.check_admission = false});
  Ok(ledger.Admit(1, "holes", 0, kLast + 1 + kEach));
  Ok(ledger.Admit(2, "other", 0, kEach));
  for (const JobId job : {1u, 2u}) {
    Ok(ledger.StartUnprofiled(job));
    if (job == 1) Ok(ledger.Grant(1, {{0, kLast + 1}}));
  }
  Ok(ledger.SetLimit(2, kEach + 1));
  Extents holes;
  for (Units at = 0; at <= kLast; at += 2) holes.push_back({at, 1});
  Ok(ledger.Release(1, holes, 1));
  Ok(ledger.Fenced(1, 1));
  Ok(ledger.Settle(1, kLast + 1 + kEach));  // nobody waits for what it may give back
  std::vector<Request> requests(1);
  requests[0].job = 2;
  requests[0].units = requests[0].contiguous = kEach + 1;  // more than it was promised
  // No budget is left; or all but the last few runs had their turn before, when they could not go.
  SpareCursor cursor;
  cursor.places[1].pieces = 1;
  SpareCursor late;
  late.places[1].begun = true;
  late.places[1].offset = kLast + 1;
  for (SpareCursor* const one : {&late, &cursor}) {
    const auto first = Next(ledger, requests, {}, {}, nullptr, one);
    ASSERT_TRUE(first.has_value());
    ASSERT_EQ(first->kind, Decision::Kind::kReclaim) << first->reason;
    EXPECT_EQ(first->reclaim, (Extents{{kLast, 1}}));
    if (one == &late) continue;
    Ok(Apply(*first, requests, &ledger));
  }
  const auto second = Next(ledger, requests, {}, {}, nullptr, &cursor);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->kind, Decision::Kind::kDeny);
}

TEST(Spare, WhatIsToldAtOnceIsTrue) {
  std::mt19937 random(8);
  int told = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Ledger ledger = AnyLedger(random);
    for (const Job& job : ledger.jobs()) {
      if (job.spare == 0) continue;
      const SpareRuns known(ledger, job);
      for (const Extent& extent : ledger.map().Held(job.id, UnitState::kSpare)) {
        const bool returns = job.phase == Phase::kRunning && job.terms.returns;
        const Change change = {job.id, job.terms, returns, {}, {extent}};
        const bool may = NoWorse(ledger, {ledger, change});
        if (!known.MayBeFreed(extent)) {
          ASSERT_FALSE(may) << "state " << i;
          ++told;
        }
      }
    }
  }
  EXPECT_GT(told, 500);
}

/// A job of `of_each` units that are leased, as many that are spare and as many free ones, one
/// after the other; behind them is room for `room` in one run.
Ledger Scattered(Units of_each, Units room, bool stitches, const GateTerms* terms) {
  const Units scattered = 3 * of_each;
  Ledger ledger(scattered + room, 1 << 20);
  Ok(ledger.Admit(1, "scattered", 0, terms == nullptr ? of_each * 2 + room : scattered + room));
  Ok(ledger.SetStitches(1, stitches));
  Ok(ledger.StartUnprofiled(1));
  if (terms != nullptr) {
    Ok(ledger.ReachTrough(1, true));
    Ok(ledger.OpenGate(1, *terms));
  }
  Extents held;
  Extents spare;
  for (Units i = 0; i < of_each; ++i) {
    held.push_back({3 * i, 2});
    spare.push_back({3 * i + 1, 1});
  }
  Ok(ledger.Grant(1, held));
  Ok(ledger.Release(1, spare, 1));
  Ok(ledger.Fenced(1, 1));
  return ledger;
}

struct Cost {
  size_t bytes = 0;  // of the heap
  size_t decisions = 0;
};

/// Of all decisions that there are to make.
Cost ToDecide(Ledger ledger, const std::vector<Request>& requests) {
  SpareCursor cursor;
  Cost cost;
  const size_t before = g_allocated;
  // Half as many runs each time that they may not become free: twelve ticks for thousands.
  for (int nothing = 0; nothing <= 16; ++nothing) {
    for (int i = 0; i < 16; ++i) cursor.Tick();
    const auto decision = Next(ledger, requests, {}, {}, nullptr, &cursor);
    if (!decision) continue;
    nothing = 0;
    ++cost.decisions;
    if (decision->kind != Decision::Kind::kReclaim) break;
    Ok(Apply(*decision, requests, &ledger));
  }
  cost.bytes = g_allocated - before;
  return cost;
}

constexpr Units kFew = 750;
constexpr Units kMany = 3000;  // four times as many: 16 times the cost where it grows by the square
constexpr size_t kMostTimes = 6;

TEST(Spare, ThousandsOfRunsThatStayCostByTheirNumber) {
  const auto cost = [](Units of_each) {
    return ToDecide(Scattered(of_each, of_each, false, nullptr), {});
  };
  EXPECT_LT(cost(kMany).decisions, 4u);
  EXPECT_LT(cost(kMany).bytes, kMostTimes * cost(kFew).bytes);
}

TEST(Spare, ThousandsOfRunsOfWhichSomeMayGoCostByTheirNumber) {
  const auto cost = [](Units of_each) {
    GateTerms terms;
    terms.claim = 3 * of_each;  // half of the spare ones may go
    terms.piece = of_each * 3 / 2;
    return ToDecide(Scattered(of_each, of_each * 3 / 2, false, &terms), {});
  };
  EXPECT_GT(cost(kMany).decisions, 0u);
  EXPECT_LT(cost(kMany).decisions, 32u);
  EXPECT_LT(cost(kMany).bytes, kMostTimes * cost(kFew).bytes);
}

TEST(Spare, OfThousandsOfPiecesThereAreFewLooks) {
  const Ledger ledger = Scattered(kMany, kMany, false, nullptr);
  SpareCursor cursor;
  EXPECT_FALSE(Next(ledger, {}, {}, {}, nullptr, &cursor));
  int ticks = 0;
  for (size_t cost = 0; cost < kMany; ++ticks) {
    ASSERT_LE(ticks, 100);
    cursor.Tick();
    const size_t before = g_allocated;
    EXPECT_FALSE(Next(ledger, {}, {}, {}, nullptr, &cursor));
    cost = g_allocated - before;
  }
  EXPECT_GE(ticks, static_cast<int>(3 * kMany / SpareCursor::kPiecesInATick));
}

TEST(Spare, OneJobsBudgetIsItsOwn) {
  Ledger ledger = Scattered(kMany, kMany, false, nullptr);
  SpareCursor cursor;
  while (Next(ledger, {}, {}, {}, nullptr, &cursor)) {
  }
  ASSERT_LE(cursor.places.at(1).pieces, 0);
  // Of another job; there is room for both.
  Ok(ledger.SetLimit(1, ledger.Find(1)->limit - 4));
  Ok(ledger.Admit(2, "other", 0, 2));
  Ok(ledger.StartUnprofiled(2));
  const Extent two = {3 * kMany, 2};
  Ok(ledger.Grant(2, {two}));
  Ok(ledger.Release(2, {two}, 2));
  Ok(ledger.Fenced(2, 2));
  ASSERT_EQ(ledger.Find(2)->spare, 2u);
  const auto decision = Next(ledger, {}, {}, {}, nullptr, &cursor);
  ASSERT_TRUE(decision.has_value());
  EXPECT_EQ(decision->job, 2u);
  EXPECT_EQ(decision->reclaim, (Extents{two}));
}

TEST(Spare, ARequestAmongThousandsOfPiecesCostsByTheirNumber) {
  for (const bool stitches : {false, true}) {
    for (const Units units : {1u, 2u, 100u}) {
      Request request;
      request.job = 1;
      request.units = units;
      request.contiguous = stitches ? 1 : units;
      request.prefers = units;
      const auto cost = [&](Units of_each) {
        return ToDecide(Scattered(of_each, of_each, stitches, nullptr), {request});
      };
      EXPECT_LT(cost(kMany).bytes, kMostTimes * cost(kFew).bytes)
          << units << " units" << (stitches ? ", in pieces" : "");
    }
  }
}

TEST(Spare, WhatThousandsOfPiecesBecomeCostsByTheirNumber) {
  const auto cost = [](Units of_each) {
    Ledger ledger = Scattered(of_each, of_each, true, nullptr);
    const size_t before = g_allocated;
    Ok(ledger.Die(1));
    Ok(ledger.LastHolderGone(1));
    return g_allocated - before;
  };
  EXPECT_LT(cost(kMany), kMostTimes * cost(kFew));
}

}  // namespace
}  // namespace sluice::scheduler
