// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/solve.h"

#include <gtest/gtest.h>

#include "scheduler/place/offline/exact.h"
#include "scheduler/place/offline/fit.h"
#include "scheduler/place/offline/leased.h"
#include "tests/unit/scheduler/place/offline/random_buffers.h"
#include "tests/unit/scheduler/place/offline/turns.h"

namespace sluice::scheduler {
namespace {

constexpr PlaceEffort kLittle = {1'000'000, 20'000};

PlaceAnswer Solve(const PlaceRequest& request) {
  const Result<PlaceAnswer> answer = SolvePlacement(request);
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer.ok() ? *answer : PlaceAnswer();
}

// What must hold of every answer.
void Judge(const PlaceRequest& request, const PlaceAnswer& answer) {
  EXPECT_EQ(ValidatePlacement(request.buffers, answer.offsets, answer.footprint).message(), "");
  EXPECT_EQ(answer.footprint, Footprint(request.buffers, answer.offsets));
  EXPECT_GE(answer.lower_bound, PeakLoad(request.buffers));
  EXPECT_GE(answer.footprint, answer.lower_bound);
  EXPECT_FALSE(answer.method.empty());
}

TEST(SolveTest, EverySwitchGivesAPlacementNoWorseThanTheFits) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    const auto buffers = RandomBuffers(random, random() % 60, 30, 100);
    const uint64_t peak = PeakLoad(buffers);
    for (const PlaceObjective objective : {PlaceObjective::kFootprint, PlaceObjective::kLeased}) {
      for (const auto capacity : {std::optional<uint64_t>(), std::optional(peak),
                                  std::optional(peak + peak / 10), std::optional<uint64_t>(0)}) {
        for (const PlaceEffort effort : {PlaceEffort{}, PlaceEffort{100'000, 0}, kLittle}) {
          PlaceRequest request{buffers, capacity, objective, 16, effort};
          const PlaceAnswer answer = Solve(request);
          Judge(request, answer);
          const PlaceAnswer again = Solve(request);
          EXPECT_EQ(answer.offsets, again.offsets);
          EXPECT_EQ(answer.method, again.method);
          if (effort.looks == 0 || capacity.has_value()) continue;
          for (const FitOrder order : kFitOrders) {
            for (const FitHole hole : kFitHoles) {
              const Offsets fit = PlaceByFit(buffers, order, hole);
              if (objective == PlaceObjective::kFootprint) {
                EXPECT_LE(answer.footprint, std::max(peak + peak / 4096, Footprint(buffers, fit)));
              } else {
                EXPECT_LE(LeasedIntegral(buffers, answer.offsets, 16),
                          LeasedIntegral(buffers, fit, 16));
              }
            }
          }
        }
      }
    }
  }
}

TEST(SolveTest, OnSmallOnesNoHeuristicBeatsTheExactSearch) {
  std::mt19937_64 random(2);
  int impossible = 0;
  for (int round = 0; round < 1000; ++round) {
    auto buffers = RandomBuffers(random, 5 + random() % 3, 6, 4);
    if (round % 2 == 0) FillUp(6, PeakLoad(buffers), buffers);
    uint64_t lowest = PeakLoad(buffers);
    while (PlaceExactly(buffers, lowest, [] { return true; }).outcome !=
           ExactResult::Outcome::kPlaced) {
      ++lowest;
    }
    for (const FitOrder order : kFitOrders) {
      for (const FitHole hole : kFitHoles) {
        EXPECT_GE(Footprint(buffers, PlaceByFit(buffers, order, hole)), lowest);
      }
    }
    for (const uint64_t capacity : {lowest, lowest - 1}) {
      PlaceRequest request;
      request.buffers = buffers;
      request.capacity = capacity;
      const PlaceAnswer answer = Solve(request);
      Judge(request, answer);
      EXPECT_EQ(answer.footprint <= capacity, capacity >= lowest);
      EXPECT_LE(answer.lower_bound, lowest) << "proven wrongly";
      if (capacity >= PeakLoad(buffers) && capacity < lowest) {
        EXPECT_EQ(answer.lower_bound, lowest);
        ++impossible;
      }
    }
  }
  EXPECT_GT(impossible, 5);
}

TEST(SolveTest, WithACapacityTheBestBelowItIsTaken) {
  // By size nothing is leased for long; by time it is lower.
  std::mt19937_64 random(3);
  int chosen = 0;
  for (int round = 0; round < 200; ++round) {
    const auto buffers = RandomBuffers(random, 30, 30, 40);
    PlaceRequest free{buffers, std::nullopt, PlaceObjective::kLeased, 16, kLittle};
    const PlaceAnswer any = Solve(free);
    PlaceRequest bound = free;
    bound.capacity = any.footprint - 1;
    const PlaceAnswer lower = Solve(bound);
    if (lower.footprint >= any.footprint) continue;
    EXPECT_GE(LeasedIntegral(buffers, lower.offsets, 16), LeasedIntegral(buffers, any.offsets, 16));
    ++chosen;
  }
  EXPECT_GT(chosen, 100);
}

TEST(SolveTest, WhatTheFitsMissIsRepaired) {
  std::mt19937_64 random(4);
  int repaired = 0;
  for (int round = 0; round < 20; ++round) {
    const auto buffers = RandomBuffers(random, 60, 30, 100);
    PlaceRequest request{buffers, {}, PlaceObjective::kFootprint, 1, {2'000'000, 0}};
    const PlaceAnswer answer = Solve(request);
    repaired += answer.method.starts_with("repair of ") ? 1 : 0;
    request.effort.nodes = 10'000;
    EXPECT_LE(Solve(request).footprint, answer.footprint);
  }
  EXPECT_GT(repaired, 10);
}

TEST(SolveTest, WhereLargeBuffersTakeTurnsTwoEndsFindThePeak) {
  std::mt19937_64 random(5);
  const auto buffers = LargeTakeTurns(random, 2100, 12);
  const uint64_t peak = PeakLoad(buffers);
  for (const auto capacity : {std::optional<uint64_t>(), std::optional(peak + peak / 4096)}) {
    PlaceRequest request{buffers, capacity, PlaceObjective::kFootprint, 16, {30'000'000, 0}};
    EXPECT_GT(Solve(request).footprint, peak + peak / 4096) << "nothing else does";
    request.effort.nodes = 200'000;
    const PlaceAnswer answer = Solve(request);
    Judge(request, answer);
    EXPECT_TRUE(answer.method.starts_with("two ends, small ones by ")) << answer.method;
    EXPECT_LE(answer.footprint, peak + peak / 4096);
    EXPECT_EQ(answer.offsets, Solve(request).offsets);
  }
}

TEST(SolveTest, NothingNeedsNoPlace) {
  const PlaceAnswer answer = Solve({});
  EXPECT_EQ(answer.footprint, 0u);
  EXPECT_TRUE(answer.offsets.empty());
}

TEST(SolveTest, WhatIsWrongIsNamed) {
  const std::vector<Buffer> buffers = {{0, 2, 5}, {3, 3, 5}};
  PlaceRequest request;
  request.buffers = buffers;
  EXPECT_EQ(SolvePlacement(request).status().message(),
            "buffer 1: upper: is 3, but must be above lower (3)");
  request.buffers = {};
  request.unit_bytes = 0;
  EXPECT_EQ(SolvePlacement(request).status().message(), "unit: is 0, but must be at least 1 byte");
}

}  // namespace
}  // namespace sluice::scheduler
