// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/fluid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

namespace sluice::simgpu {
namespace {

constexpr double kMs = 1e6;

class FluidTest : public ::testing::Test {
 protected:
  FluidOp& Add(uint32_t context, double ns, GpuDemand demand = {1, 0},
               Engine engine = Engine::kCompute) {
    for (FluidOp& op : fluid_->op[context]) {
      if (op.state != FluidOp::kFree) continue;
      op = {FluidOp::kRunning, engine, 1, 0, ns, 0, demand, 0, 0};
      SetRates(fluid_.get(), rules_);
      return op;
    }
    abort();
  }
  void Pass(double ns) { Advance(fluid_.get(), rules_, ns); }
  void Mps() { rules_.sharing = Sharing::kMps; }

  FluidRules rules_;
  std::unique_ptr<Fluid> fluid_ = [] {
    auto fluid = std::make_unique<Fluid>();
    fluid->turn = kNoTurn;
    return fluid;
  }();
};

TEST_F(FluidTest, AloneAnOperationTakesItsTime) {
  const FluidOp& op = Add(3, 5 * kMs);
  Pass(4 * kMs);
  EXPECT_EQ(op.state, FluidOp::kRunning);
  Pass(4 * kMs);
  EXPECT_EQ(op.state, FluidOp::kEnded);
  EXPECT_EQ(op.ended_ns, 5'000'000u);
  EXPECT_EQ(fluid_->clock_ns, 8 * kMs);  // the clock goes on when nothing is under way
  EXPECT_EQ(fluid_->busy_ns, 5 * kMs);
}

TEST_F(FluidTest, UnderMpsTwoThatFillTheGpuShareIt) {
  Mps();
  const FluidOp& small = Add(0, 1 * kMs);
  const FluidOp& large = Add(1, 3 * kMs);
  Pass(100 * kMs);
  EXPECT_EQ(small.ended_ns, 2'000'000u);
  EXPECT_EQ(large.ended_ns, 4'000'000u);  // full speed once it was alone
  EXPECT_EQ(fluid_->switches, 0u);
}

TEST_F(FluidTest, UnderMpsComplementsOverlap) {
  Mps();
  const FluidOp& memory = Add(0, 2 * kMs, {0.3, 1});
  const FluidOp& math = Add(1, 2 * kMs, {0.7, 0});
  Pass(2 * kMs);
  EXPECT_EQ(memory.state, FluidOp::kEnded);
  EXPECT_EQ(math.state, FluidOp::kEnded);
}

TEST_F(FluidTest, TimeSlicesGoRound) {
  rules_.quantum_ns = 2 * kMs;
  const FluidOp& first = Add(0, 5 * kMs);
  const FluidOp& second = Add(7, 3 * kMs);
  Pass(100 * kMs);
  // 0-2 first, 2-4 second, 4-6 first, 6-7 second, then the first alone.
  EXPECT_EQ(second.ended_ns, 7'000'000u);
  EXPECT_EQ(first.ended_ns, 8'000'000u);
  EXPECT_EQ(fluid_->busy_ns, 8 * kMs);
  EXPECT_EQ(fluid_->switches, 4u);
}

TEST_F(FluidTest, AChangeOfTheContextCostsTime) {
  rules_.switch_ns = 0.5 * kMs;
  Add(0, 1 * kMs);
  const FluidOp& second = Add(1, 1 * kMs);
  Pass(100 * kMs);
  EXPECT_EQ(second.ended_ns, 2'500'000u);
}

TEST_F(FluidTest, CopiesOverlapWithKernelsAndShareTheirDirection) {
  const FluidOp& kernel = Add(0, 4 * kMs);
  const FluidOp& in = Add(0, 2 * kMs, {}, Engine::kToDevice);
  const FluidOp& out = Add(0, 3 * kMs, {}, Engine::kToHost);
  const FluidOp& other_in = Add(1, 2 * kMs, {}, Engine::kToDevice);
  Pass(100 * kMs);
  EXPECT_EQ(kernel.ended_ns, 4'000'000u);
  EXPECT_EQ(in.ended_ns, 4'000'000u);
  EXPECT_EQ(other_in.ended_ns, 4'000'000u);
  EXPECT_EQ(out.ended_ns, 3'000'000u);
}

TEST_F(FluidTest, OneCopyEngineServesBothDirections) {
  rules_.one_copy_engine = true;
  const FluidOp& in = Add(0, 2 * kMs, {}, Engine::kToDevice);
  const FluidOp& out = Add(0, 2 * kMs, {}, Engine::kToHost);
  Pass(100 * kMs);
  EXPECT_EQ(in.ended_ns, 4'000'000u);
  EXPECT_EQ(out.ended_ns, 4'000'000u);
}

TEST_F(FluidTest, NothingOvertakesWhatTheHostHasNotCarriedOut) {
  Mps();
  FluidOp& slow = Add(0, 1 * kMs, {0.5, 0});
  const FluidOp& quick = Add(1, 2 * kMs, {0.5, 0});
  slow.body_done = 0;
  Pass(50 * kMs);
  EXPECT_EQ(fluid_->clock_ns, 1 * kMs);
  EXPECT_EQ(fluid_->stalled, 1u);
  slow.body_done = 1;
  Pass(0);
  EXPECT_EQ(slow.ended_ns, 1'000'000u);
  EXPECT_EQ(fluid_->stalled, 0u);
  Pass(50 * kMs);
  EXPECT_EQ(quick.ended_ns, 2'000'000u);
}

// Time passes in pieces of any size: the result is the same.
TEST_F(FluidTest, HowOftenSomebodyLooksChangesNothing) {
  std::mt19937 random(7);
  const auto part = [&random] { return std::uniform_real_distribution<double>(0.01, 1)(random); };
  for (int round = 0; round < 200; ++round) {
    *fluid_ = Fluid{};
    fluid_->turn = kNoTurn;
    rules_.sharing = round % 2 == 0 ? Sharing::kMps : Sharing::kTimeSlice;
    rules_.quantum_ns = part() * kMs;
    rules_.switch_ns = round % 3 == 0 ? part() * 1e5 : 0;
    double work = 0;
    for (uint32_t i = 0; i < 12; ++i) {
      const double ns = part() * 3 * kMs;
      work += ns;
      Add(i % 5, ns, {part(), part()}, static_cast<Engine>(i % 3 == 2 ? i % 2 + 1 : 0));
    }
    auto other = std::make_unique<Fluid>(*fluid_);
    Advance(other.get(), rules_, 1000 * kMs);
    for (double left = 1000 * kMs; left > 0;) {
      const double step = std::min(left, part() * 5 * kMs);
      Pass(step);
      left -= step;
    }
    for (uint32_t c = 0; c < kFluidContexts; ++c) {
      for (uint32_t i = 0; i < kFlights; ++i) {
        ASSERT_EQ(fluid_->op[c][i].state, other->op[c][i].state);
        ASSERT_NEAR(static_cast<double>(fluid_->op[c][i].ended_ns),
                    static_cast<double>(other->op[c][i].ended_ns), 2);
      }
    }
    ASSERT_LE(fluid_->busy_ns, 2 * work);
  }
}

/// As virtual time goes on: from one thing that happens to the next.
void Step(Fluid* fluid, const FluidRules& rules) {
  Settle(fluid, rules);
  const double next = TimeToNext(*fluid, rules);
  ASSERT_LT(next, 1e12);
  Advance(fluid, rules, next);
}

TEST_F(FluidTest, ASettledTurnIsKeptForTheNextOperation) {
  rules_.settles = true;
  const FluidOp& first = Add(0, 1 * kMs);
  const FluidOp& other = Add(1, 1 * kMs);
  Step(fluid_.get(), rules_);
  EXPECT_EQ(first.state, FluidOp::kEnded);
  const FluidOp& second = Add(0, 0.5 * kMs);  // begun at the same instant, in the same slice
  Step(fluid_.get(), rules_);
  EXPECT_EQ(second.ended_ns, 1'500'000u);
  EXPECT_EQ(other.state, FluidOp::kRunning);
  Step(fluid_.get(), rules_);
  EXPECT_EQ(other.ended_ns, 2'500'000u);
}

TEST_F(FluidTest, AnExclusiveOperationIsNotInterrupted) {
  rules_.settles = true;
  rules_.exclusive = true;
  rules_.quantum_ns = 1 * kMs;
  const FluidOp& first = Add(0, 3 * kMs);
  const FluidOp& other = Add(1, 1 * kMs);
  Step(fluid_.get(), rules_);
  EXPECT_EQ(first.ended_ns, 3'000'000u);
  const FluidOp& second = Add(0, 1 * kMs);
  Step(fluid_.get(), rules_);  // the slice is used up: the other one's turn
  EXPECT_EQ(other.ended_ns, 4'000'000u);
  Step(fluid_.get(), rules_);
  EXPECT_EQ(second.ended_ns, 5'000'000u);
  Settle(fluid_.get(), rules_);
  EXPECT_TRUE(std::isinf(TimeToNext(*fluid_, rules_)));
}

TEST_F(FluidTest, FromOneThingToTheNextIsTheSameAsAllAtOnce) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    *fluid_ = Fluid{};
    fluid_->turn = kNoTurn;
    rules_ = {};
    rules_.sharing = seed % 2 == 0 ? Sharing::kMps : Sharing::kTimeSlice;
    rules_.quantum_ns = 1000;
    rules_.switch_ns = static_cast<double>(random() % 100);
    for (uint32_t i = 0; i < 12; ++i) {
      Add(i % 4, static_cast<double>(1 + random() % 10'000),
          {0.25 * static_cast<double>(1 + random() % 4), 0.5}, static_cast<Engine>(random() % 3));
    }
    const auto whole = std::make_unique<Fluid>(*fluid_);
    Advance(whole.get(), rules_, 1e6);
    for (double passed = 0; passed < 1e6;) {
      const double next = std::min(TimeToNext(*fluid_, rules_), 1e6 - passed);
      Advance(fluid_.get(), rules_, next);
      passed += next;
    }
    for (uint32_t context = 0; context < 4; ++context) {
      for (uint32_t i = 0; i < kFlights; ++i) {
        EXPECT_EQ(fluid_->op[context][i].ended_ns, whole->op[context][i].ended_ns) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::simgpu
