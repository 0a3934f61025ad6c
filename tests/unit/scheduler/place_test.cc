// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/place.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::scheduler {
namespace {

const Extents kRuns{{2, 3}, {8, 6}, {20, 4}};

TEST(Place, TakesTheFirstRunFromItsEnd) {
  EXPECT_EQ(Place(kRuns, End::kLow, 2, 2), (Extents{{2, 2}}));
  EXPECT_EQ(Place(kRuns, End::kHigh, 2, 2), (Extents{{22, 2}}));
  EXPECT_EQ(Place(kRuns, End::kLow, 4, 1), (Extents{{8, 4}}))
      << "one run for all, where there is one";
  EXPECT_EQ(Place(kRuns, End::kHigh, 5, 1), (Extents{{9, 5}}));
}

TEST(Place, PrefersToExtendWhatTheJobHolds) {
  EXPECT_EQ(Place(kRuns, End::kLow, 2, 2, {{6, 2}}), (Extents{{8, 2}}));
  EXPECT_EQ(Place(kRuns, End::kHigh, 2, 2, {{14, 1}}), (Extents{{12, 2}}));
  EXPECT_EQ(Place(kRuns, End::kHigh, 2, 2, {{6, 2}}), (Extents{{22, 2}}))
      << "the low side of a run is not the neighbour of a job that fills from the high end";
}

TEST(Place, CombinesRunsAroundOneThatIsLongEnough) {
  EXPECT_EQ(Place(kRuns, End::kLow, 8, 5), (Extents{{2, 2}, {8, 6}}));
  EXPECT_EQ(Place(kRuns, End::kHigh, 8, 5), (Extents{{8, 6}, {22, 2}}));
  EXPECT_EQ(Place(kRuns, End::kLow, 13, 1), kRuns);
}

TEST(Place, KnowsWhenNothingFits) {
  EXPECT_EQ(Place(kRuns, End::kLow, 14, 1), std::nullopt);
  EXPECT_EQ(Place(kRuns, End::kLow, 8, 7), std::nullopt) << "enough units, no run";
  EXPECT_EQ(Place({}, End::kLow, 1, 1), std::nullopt);
  EXPECT_EQ(Place({}, End::kLow, 0, 0), Extents{});
}

TEST(Place, WholePiecesLeaveNoRemainderThatABlockCannotUse) {
  const Extents runs{{1, 1}, {66, 1}, {68, 7}, {76, 7}, {155, 4}};
  EXPECT_EQ(Place(runs, End::kLow, 16, 4, {}, Pieces::kWhole), std::nullopt)
      << "20 units, and only three blocks of 4 fit into them";
  EXPECT_EQ(Place(runs, End::kLow, 12, 4, {}, Pieces::kWhole),
            (Extents{{68, 4}, {76, 4}, {155, 4}}));
  EXPECT_EQ(Place(runs, End::kHigh, 14, 4, {}, Pieces::kWhole),
            (Extents{{71, 4}, {77, 6}, {155, 4}}))
      << "the rest from a run that has room for it";
  EXPECT_EQ(Place(kRuns, End::kLow, 5, 3, {}, Pieces::kWhole), (Extents{{8, 5}}))
      << "one run for all, where there is one";
}

TEST(Place, AlwaysServesWhatFits) {
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    Extents runs;
    Units longest = 0;
    for (Units at = 0; at < 40;) {
      at += 1 + static_cast<Units>(random() % 4);
      const Units length = 1 + static_cast<Units>(random() % 6);
      runs.push_back({at, length});
      longest = std::max(longest, length);
      at += length;
    }
    const Units units = 1 + static_cast<Units>(random() % 20);
    const Units contiguous = 1 + static_cast<Units>(random() % units);
    const End end = random() % 2 == 0 ? End::kLow : End::kHigh;
    const bool fits = units <= TotalUnits(runs) && contiguous <= longest;
    const auto candidates = PlaceCandidates(runs, end, units, contiguous, {}, 8);
    ASSERT_EQ(!candidates.empty(), fits);
    ASSERT_EQ(Place(runs, end, units, contiguous).has_value(), fits);
    ASSERT_LE(candidates.size(), 8u);
    for (const Extents& placed : candidates) {
      ASSERT_EQ(TotalUnits(placed), units);
      ASSERT_EQ(Merge(placed), placed);
      ASSERT_TRUE(Subtract(placed, runs).empty());
      ASSERT_TRUE(std::any_of(placed.begin(), placed.end(),
                              [&](const Extent& e) { return e.length >= contiguous; }));
    }
    Units pieces = 0;
    for (const Extent& run : runs) pieces += run.length / contiguous;
    const auto whole = Place(runs, end, units, contiguous, {}, Pieces::kWhole);
    ASSERT_TRUE(!whole || fits);
    ASSERT_TRUE(whole || pieces * contiguous < units + contiguous);
    if (!whole) continue;
    ASSERT_EQ(TotalUnits(*whole), units);
    ASSERT_TRUE(Subtract(*whole, runs).empty());
  }
}

TEST(HeldBeside, IsWhatAHolderHasNextToRunsWithRoom) {
  PoolMap map(20);
  map.Set({0, 2}, UnitState::kLeased, 1);   // beside a run of 3
  map.Set({5, 1}, UnitState::kLeased, 2);   // somebody else's
  map.Set({10, 2}, UnitState::kSpare, 1);   // between runs of 4 and 1
  map.Set({13, 7}, UnitState::kLeased, 1);  // behind the run of 1
  const auto beside = [&](Units units, std::optional<UnitState> state) {
    return HeldBeside(map, map.FreeRuns(), units, 1, state);
  };
  EXPECT_EQ(beside(3, std::nullopt), (Extents{{1, 1}, {10, 1}}));
  EXPECT_EQ(beside(3, UnitState::kLeased), (Extents{{1, 1}}));
  EXPECT_EQ(beside(4, std::nullopt), (Extents{{10, 1}}));
  EXPECT_EQ(beside(1, UnitState::kLeased), (Extents{{1, 1}, {13, 1}}));
}

TEST(PlaceOnSpare, TakesWhatIsSpareBeforeWhatIsFree) {
  PoolMap map(40);
  map.Set({0, 10}, UnitState::kLeased, 1);
  map.Set({10, 5}, UnitState::kSpare, 1);
  map.Set({15, 5}, UnitState::kLeased, 2);  // somebody else's
  const auto place = [&](Units units, Units contiguous, End end = End::kLow) {
    return PlaceOnSpare(map, 1, end, units, contiguous);
  };
  EXPECT_EQ(place(2, 1), (Extents{{10, 2}}));
  EXPECT_EQ(place(2, 1, End::kHigh), (Extents{{13, 2}}));
  EXPECT_EQ(place(8, 1), (Extents{{10, 5}, {20, 3}}));
  EXPECT_EQ(place(8, 4), (Extents{{10, 4}, {20, 4}})) << "room for two blocks of 4";
  EXPECT_EQ(place(9, 4), (Extents{{10, 5}, {20, 4}})) << "and the rest";
  EXPECT_EQ(place(14, 8), std::nullopt) << "room for neither a block of 8 nor the rest of 6";
  EXPECT_EQ(place(26, 1), std::nullopt) << "more than there is";
  EXPECT_EQ(PlaceOnSpare(map, 2, End::kLow, 2, 1), std::nullopt) << "not its own";
}

// What Place grants in whole pieces has room for as many blocks.
TEST(PlaceOnSpare, HoldsAsManyBlocksAsAnyOtherPlace) {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    PoolMap map(40);
    for (Units at = 0; at < 40;) {
      const Units length = std::min(static_cast<Units>(1 + random() % 6), 40 - at);
      constexpr UnitState kStates[] = {UnitState::kLeased, UnitState::kSpare, UnitState::kFree};
      const UnitState state = kStates[random() % 3];
      if (state != UnitState::kFree) map.Set({at, length}, state, 1);
      at += length;
    }
    const auto up_to = [&random](Units most) { return static_cast<Units>(1 + random() % most); };
    const Units units = up_to(14);
    const Units contiguous = up_to(units);
    const End end = random() % 2 == 0 ? End::kLow : End::kHigh;
    const auto placed = PlaceOnSpare(map, 1, end, units, contiguous);
    if (!placed) continue;
    const Extents usable = Union(map.FreeRuns(), map.Held(1, UnitState::kSpare));
    EXPECT_EQ(Intersect(*placed, usable), *placed);
    EXPECT_EQ(TotalUnits(*placed), units);
    EXPECT_GT(TotalUnits(Intersect(*placed, map.Held(1, UnitState::kSpare))), 0u);
    Units blocks = 0;
    for (const Extent& extent : *placed) blocks += extent.length / contiguous;
    EXPECT_GE(blocks, units / contiguous);
  }
}

TEST(Sparing, LeavesAloneWhatSomebodyHasToComeBackTo) {
  const Extents runs = {{0, 4}, {6, 10}};
  const Extents places = {{2, 3}, {8, 4}};
  const Extents beside = {{0, 2}, {6, 2}, {12, 4}};
  const Extents there = {{2, 2}, {8, 4}};
  for (const uint32_t turn : {0u, 1u}) EXPECT_EQ(Sparing(runs, places, 8, turn), beside);
  // It will have to be there: early in one iteration, late in the next.
  EXPECT_EQ(Sparing(runs, places, 9, 0), there);
  EXPECT_EQ(Sparing(runs, places, 9, 1), beside);
  EXPECT_EQ(Sparing(runs, places, 9, 2), there);
}

}  // namespace
}  // namespace sluice::scheduler
