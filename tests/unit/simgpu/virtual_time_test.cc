// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/virtual_time.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "tests/unit/simgpu/virtual_model.h"

namespace sluice::simgpu {
namespace {

class VirtualTimeTest : public ::testing::Test {
 protected:
  void Expect(uint32_t participants) { time_->expected = participants; }
  void Enter(uint32_t rank) {
    Join(time_.get(), rank, {static_cast<int32_t>(100 + rank), 1}, Now());
    AwaitTurn(rank);
  }
  uint32_t Await(VirtualWait wait) { return BeginWait(time_.get(), wait, Now()).value_or(9999); }
  uint32_t AwaitTurn(uint32_t rank) { return Await({VirtualWait::kTurn, rank, 0, 0, 0, 0, 0, 0}); }
  uint32_t AwaitOperation(uint32_t rank) {
    return Await({VirtualWait::kOperation, rank, 0, 0, 0, 1, 0, 0});
  }
  Grant Next() { return PassOn(time_.get(), fluid_.get(), rules_); }
  uint64_t Now() const { return NowNs(*fluid_); }
  uint64_t Compute(uint32_t rank, uint64_t ns) { return Spend(time_.get(), rank, ns, Now()); }

  FluidRules rules_ = ModelRules(1e6);
  std::unique_ptr<Fluid> fluid_ = EmptyFluid();
  std::unique_ptr<VirtualTime> time_ = std::make_unique<VirtualTime>();
};

TEST_F(VirtualTimeTest, NobodyGoesOnBeforeAllAreHere) {
  Expect(2);
  Enter(1);
  EXPECT_EQ(Next().kind, Grant::kNone);
  Enter(0);
  EXPECT_EQ(Next().kind, Grant::kWait);
  EXPECT_EQ(time_->turn, (Turn{Turn::kHost, 0}));  // by rank, not by who came first
  EXPECT_EQ(Next().kind, Grant::kNone);            // it has the turn until it waits
}

TEST_F(VirtualTimeTest, WhoDiesBeforeAllAreHereIsNotOfTheRound) {
  Expect(2);
  Enter(0);
  Leave(time_.get(), 0);
  EXPECT_TRUE(MayJoin(*time_, 0));
  Enter(1);
  EXPECT_EQ(time_->open, 0u);
  EXPECT_EQ(Next().kind, Grant::kNone);  // the dead one is not counted as here
  Enter(0);
  EXPECT_EQ(Next().kind, Grant::kWait);
  EXPECT_EQ(time_->turn, (Turn{Turn::kHost, 0}));
}

TEST_F(VirtualTimeTest, TheSmallestClockGoesFirst) {
  Expect(2);
  Enter(0);
  Enter(1);
  Next();
  EXPECT_FALSE(MustYield(*time_, 0));
  EXPECT_EQ(Compute(0, 10), 10u);
  EXPECT_TRUE(MustYield(*time_, 0));
  AwaitTurn(0);
  Next();
  EXPECT_EQ(time_->turn, (Turn{Turn::kHost, 1}));
  EXPECT_EQ(Compute(1, 10), 10u);
  EXPECT_TRUE(MustYield(*time_, 1));  // the same time: the smaller rank
  Compute(0, 0);
  AwaitTurn(1);
  Next();
  EXPECT_EQ(time_->turn, (Turn{Turn::kHost, 0}));
  EXPECT_EQ(Now(), 10u);
}

TEST_F(VirtualTimeTest, CallsThatGoOneAtATimeFollowEachOther) {
  Expect(2);
  Enter(0);
  Enter(1);
  EXPECT_EQ(SpendInTurn(time_.get(), 0, 10, 0), 10u);
  EXPECT_EQ(SpendInTurn(time_.get(), 1, 5, 0), 15u);
  Compute(0, 100);
  EXPECT_EQ(SpendInTurn(time_.get(), 0, 10, 0), 120u);
}

TEST_F(VirtualTimeTest, AnArrivalWakesItsContextAtItsTimeAndBeforeAHostThatAsksThen) {
  Expect(1);
  Enter(0);
  Next();
  Attach(time_.get(), 3, 0);
  EndTurn(time_.get(), 3, {.next_arrival_ns = 50}, 0);
  Compute(0, 50);
  AwaitTurn(0);
  const Grant first = Next();
  EXPECT_EQ(first.kind, Grant::kContext);
  EXPECT_EQ(first.index, 3u);
  EXPECT_EQ(Now(), 50u);
  EndTurn(time_.get(), 3, {}, Now());
  EXPECT_EQ(Next().kind, Grant::kWait);
}

TEST_F(VirtualTimeTest, WhoWaitsForAnOperationGoesOnWhenItIsOver) {
  Expect(1);
  Enter(0);
  Next();
  Attach(time_.get(), 0, 0);
  const uint32_t place = AwaitOperation(0);
  EXPECT_EQ(Next().kind, Grant::kNone);  // nothing is under way: nothing can happen
  fluid_->clock_ns = 70;
  MakeReady(&time_->wait[place], Now());
  EXPECT_EQ(Next().index, place);
  EXPECT_EQ(time_->participant[0].clock_ns, 70u);
}

TEST_F(VirtualTimeTest, ProgressWakesThoseWhoLookOutside) {
  Expect(1);
  Enter(0);
  Next();
  for (const uint32_t context : {0u, 1u, 2u}) Attach(time_.get(), context, 0);
  EndTurn(time_.get(), 1, {.looks_outside = true}, 0);
  AwaitOperation(0);
  EXPECT_EQ(Next().index, 1u);  // the host may have written what it looks for
  EndTurn(time_.get(), 1, {.looks_outside = true}, 0);
  EXPECT_EQ(Next().kind, Grant::kNone);
  EndTurn(time_.get(), 0, {.progress = true}, 0);
  EXPECT_EQ(Next().index, 1u);
  EndTurn(time_.get(), 1, {.looks_outside = true, .progress = true}, 0);
  EXPECT_EQ(Next().kind, Grant::kNone);  // not by what it did itself
}

TEST_F(VirtualTimeTest, BesideAWaitingThreadAnotherHoldsUpNobody) {
  Expect(1);
  Enter(0);
  Next();
  AwaitOperation(0);
  AwaitTurn(0);
  EXPECT_EQ(Next().kind, Grant::kWait);
  EXPECT_EQ(time_->turn, Turn{});
}

TEST_F(VirtualTimeTest, OneThatLeavesHoldsUpNobodyAndIsNotLetInAgainInThisRound) {
  Expect(2);
  Enter(0);
  Enter(1);
  Next();
  Attach(time_.get(), 0, 0);
  fluid_->op[0][0] = {FluidOp::kRunning, Engine::kCompute, 1, 0, 100, 1, {}, 0, 0};
  Detach(time_.get(), fluid_.get(), 0, 0);
  EXPECT_EQ(fluid_->op[0][0].state, FluidOp::kFree);
  Leave(time_.get(), 0);
  EXPECT_EQ(Next().kind, Grant::kWait);
  EXPECT_EQ(time_->turn, (Turn{Turn::kHost, 1}));
  EXPECT_FALSE(MayJoin(*time_, 0));
  Leave(time_.get(), 1);
  EXPECT_TRUE(MayJoin(*time_, 0));  // another round
  EXPECT_FALSE(MayJoin(*time_, 2));
  EXPECT_EQ(time_->open, 0u);
}

TEST_F(VirtualTimeTest, AHostFunctionHoldsTheClockUntilItReturns) {
  Expect(1);
  Enter(0);
  Next();
  Attach(time_.get(), 0, 0);
  EndTurn(time_.get(), 0, {.function_out = true}, 0);
  Compute(0, 10);
  const uint32_t place = AwaitTurn(0);
  EXPECT_EQ(Next().kind, Grant::kNone);
  FunctionReturned(time_.get(), 0);
  EXPECT_EQ(Next().kind, Grant::kContext);
  EndTurn(time_.get(), 0, {}, 0);
  EXPECT_EQ(Next().index, place);
}

TEST_F(VirtualTimeTest, AFunctionThatNeedsAnotherThreadGetsIt) {
  Expect(1);
  Enter(0);
  Next();
  Attach(time_.get(), 0, 0);
  EndTurn(time_.get(), 0, {.function_out = true}, 0);
  AwaitTurn(0);
  StallHost(time_.get(), 0);
  EXPECT_EQ(Next().kind, Grant::kWait);
  EXPECT_EQ(time_->stalls, 1u);
}

TEST_F(VirtualTimeTest, AStalledProgramGetsTheTurnBackFromAHostFunction) {
  Expect(1);
  Enter(0);
  Next();
  Attach(time_.get(), 0, 0);
  StallHost(time_.get(), 0);
  EXPECT_EQ(time_->turn, Turn{});
  fluid_->clock_ns = 40;
  FunctionReturned(time_.get(), 0);
  EXPECT_EQ(Next().kind, Grant::kNone);
  EXPECT_EQ(time_->turn, (Turn{Turn::kHost, 0}));
  EXPECT_EQ(time_->participant[0].clock_ns, 40u);
}

/// Random programs of one to three processes, through the core and through a reference that goes
/// nanosecond by nanosecond and shares nothing with it.
TEST(VirtualSchedule, IsThatOfTheReference) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const ModelPrograms programs = RandomPrograms(&random);
    const uint64_t quantum = 1 + random() % 40;
    EXPECT_EQ(TimesOfCore(programs, quantum), TimesOfReference(programs, quantum))
        << "seed " << seed;
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice::simgpu
