// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/flow/held_by_gate.h"

#include <gtest/gtest.h>

namespace sluice::flow {
namespace {

/// An iteration that holds so much behind each gate.
void Iterate(HeldByGate* held, const std::vector<scheduler::Units>& units, bool whole = false) {
  held->Begin(units.size(), units[0], whole);
  for (size_t gate = 1; gate < units.size(); ++gate) {
    held->Reach(gate, 0);
    held->Hold(units[gate]);
  }
  held->End();
}

TEST(HeldByGateTest, IsTheMostThatCameAfterAGate) {
  HeldByGate held;
  EXPECT_EQ(held.From(0), 0u);
  Iterate(&held, {2, 9, 4, 6, 1});
  EXPECT_FALSE(held.known()) << "once may be chance";
  Iterate(&held, {2, 8, 5, 5, 1});
  EXPECT_TRUE(held.known());
  const std::vector<scheduler::Units> wanted = {9, 9, 9, 6, 6};
  for (size_t gate = 0; gate < wanted.size(); ++gate) {
    EXPECT_EQ(held.From(gate), wanted[gate]) << "gate " << gate;
  }
  EXPECT_EQ(held.From(100), 6u) << "as the last one";
}

TEST(HeldByGateTest, WhatFellBetweenTwoLooksCountsAllTheWay) {
  HeldByGate held;
  for (int i = 0; i < 2; ++i) {
    held.Begin(4, 2, false);
    held.Hold(9);
    held.Reach(3, 4);  // gates 1 and 2 were passed unseen
    held.Hold(5);
    held.End();
  }
  EXPECT_EQ(held.From(2), 9u);
  EXPECT_EQ(held.From(3), 9u);
}

TEST(HeldByGateTest, OldIterationsAreForgotten) {
  HeldByGate held;
  Iterate(&held, {1, 50, 1});
  for (int i = 0; i < 16; ++i) Iterate(&held, {1, 7, 1});
  EXPECT_EQ(held.From(0), 7u);
  held.Forget();
  EXPECT_FALSE(held.known());
}

TEST(HeldByGateTest, AWholeIterationTellsNothing) {
  HeldByGate held;
  Iterate(&held, {2, 9, 4});
  Iterate(&held, {2, 9, 4});
  held.Begin(3, 9, true);
  EXPECT_FALSE(held.known()) << "it holds more than the others did there";
  held.Hold(20);
  held.End();
  Iterate(&held, {2, 9, 4});
  EXPECT_TRUE(held.known());
  EXPECT_EQ(held.From(0), 9u);
}

TEST(HeldByGateTest, NeverGoesBackAndStaysInItsGates) {
  HeldByGate held;
  held.Begin(0, 3, false);
  held.Reach(7, 5);
  held.Begin(2, 1, false);
  held.Reach(1, 1);
  held.Reach(0, 9);
  held.Hold(4);
  held.End();
  EXPECT_EQ(held.From(0), 4u);
}

}  // namespace
}  // namespace sluice::flow
