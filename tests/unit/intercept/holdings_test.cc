// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/outside/holdings.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace sluice {
namespace {

class HoldingsTest : public ::testing::Test {
 protected:
  ~HoldingsTest() override { holdings.FreeMemory(); }
  static Holding Of(Thing thing, uint64_t key, uint64_t bytes) {
    Holding holding{};
    holding.thing = thing;
    holding.key = key;
    holding.bytes = bytes;
    return holding;
  }
  Holdings holdings;
};

TEST_F(HoldingsTest, KindsAreKeptApart) {
  ASSERT_TRUE(holdings.Insert(Of(Thing::kArray, 0x1000, 10)));
  ASSERT_TRUE(holdings.Insert(Of(Thing::kPointer, 0x1000, 20)));
  EXPECT_EQ(holdings.Find(Thing::kArray, 0x1000)->bytes, 10u);
  EXPECT_EQ(holdings.Find(Thing::kPointer, 0x1000)->bytes, 20u);
  EXPECT_EQ(holdings.Find(Thing::kHost, 0x1000), nullptr);
  Holding taken{};
  EXPECT_TRUE(holdings.Take(Thing::kArray, 0x1000, &taken));
  EXPECT_EQ(taken.bytes, 10u);
  EXPECT_FALSE(holdings.Take(Thing::kArray, 0x1000, &taken));
  EXPECT_NE(holdings.Find(Thing::kPointer, 0x1000), nullptr);
}

TEST_F(HoldingsTest, AHandleThatComesAgainReplacesTheOldOne) {
  ASSERT_TRUE(holdings.Insert(Of(Thing::kArray, 1, 10)));
  ASSERT_TRUE(holdings.Insert(Of(Thing::kArray, 1, 11)));
  EXPECT_EQ(holdings.size(), 1u);
  EXPECT_EQ(holdings.Find(Thing::kArray, 1)->bytes, 11u);
}

TEST_F(HoldingsTest, FindsTheMappingAroundAnAddress) {
  ASSERT_TRUE(holdings.Insert(Of(Thing::kMapping, 0x4000, 0x1000)));
  ASSERT_TRUE(holdings.Insert(Of(Thing::kPointer, 0x8000, 0x1000)));
  EXPECT_EQ(holdings.FindMapping(0x4fff)->key, 0x4000u);
  EXPECT_EQ(holdings.FindMapping(0x5000), nullptr);
  EXPECT_EQ(holdings.FindMapping(0x3fff), nullptr);
  EXPECT_EQ(holdings.FindMapping(0x8000), nullptr) << "not a mapping";
}

TEST_F(HoldingsTest, AgreesWithAMapOverRandomCalls) {
  std::mt19937_64 random(7);
  std::map<std::pair<int, uint64_t>, uint64_t> truth;
  for (int step = 0; step < 200'000; ++step) {
    const auto thing = static_cast<Thing>(1 + random() % 3);
    // Aligned and few: collisions, and keys that come again.
    const uint64_t key = (random() % 600) << 9;
    const std::pair<int, uint64_t> at{static_cast<int>(thing), key};
    switch (random() % 3) {
      case 0: {
        ASSERT_TRUE(holdings.Insert(Of(thing, key, static_cast<uint64_t>(step))));
        truth[at] = static_cast<uint64_t>(step);
        break;
      }
      case 1: {
        Holding taken{};
        const bool there = truth.count(at) > 0;
        ASSERT_EQ(holdings.Take(thing, key, &taken), there);
        if (there) {
          ASSERT_EQ(taken.bytes, truth[at]);
        }
        truth.erase(at);
        break;
      }
      default: {
        const Holding* found = holdings.Find(thing, key);
        ASSERT_EQ(found != nullptr, truth.count(at) > 0);
        if (found != nullptr) {
          ASSERT_EQ(found->bytes, truth[at]);
        }
      }
    }
    ASSERT_EQ(holdings.size(), truth.size());
  }
  size_t seen = 0;
  holdings.ForEach([&](const Holding&) { ++seen; });
  EXPECT_EQ(seen, truth.size());
}

}  // namespace
}  // namespace sluice
