// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/writers.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/tools/replay/small_trace.h"

namespace sluice::replay {
namespace {

TEST(WritersTest, ABlockHoldsWhatItsLastWriterLeft) {
  Writers writers(4);
  const Writers::Work written = writers.Next({2, false, true}, 0, 0);
  EXPECT_EQ(written.check, 0u);
  EXPECT_EQ(written.write, PatternSeed(2, 0, 0));
  EXPECT_FALSE(written.initial);

  const Writers::Work read = writers.Next({2, true, false}, 0, 1);
  EXPECT_EQ(read.check, PatternSeed(2, 0, 0));
  EXPECT_EQ(read.write, 0u);

  const Writers::Work both = writers.Next({2, true, true}, 0, 5);
  EXPECT_EQ(both.check, PatternSeed(2, 0, 0));
  EXPECT_EQ(both.write, PatternSeed(2, 0, 5));
  EXPECT_EQ(writers.Next({2, true, false}, 3, 0).check, PatternSeed(2, 0, 5));
}

TEST(WritersTest, TheFirstReaderWritesWhatNobodyWrote) {
  Writers writers(1);
  const Writers::Work first = writers.Next({0, true, false}, 0, 7);
  EXPECT_TRUE(first.initial);
  EXPECT_EQ(first.check, 0u);
  EXPECT_EQ(first.write, PatternSeed(0, 0, 7));
  const Writers::Work second = writers.Next({0, true, false}, 1, 7);
  EXPECT_FALSE(second.initial);
  EXPECT_EQ(second.check, PatternSeed(0, 0, 7));
}

TEST(WritersTest, ANewBlockHoldsNobodysWords) {
  Writers writers(1);
  writers.Next({0, false, true}, 0, 0);
  writers.Allocated(0);
  EXPECT_TRUE(writers.Next({0, true, false}, 1, 0).initial);
}

TEST(WritersTest, SeedsTellBlocksIterationsAndLaunchesApart) {
  std::set<uint32_t> seeds;
  for (BlockId block = 0; block < 10; ++block) {
    for (uint64_t iteration = 0; iteration < 10; ++iteration) {
      for (uint32_t launch = 0; launch < 10; ++launch) {
        seeds.insert(PatternSeed(block, iteration, launch));
      }
    }
  }
  EXPECT_EQ(seeds.size(), 1000u);
  EXPECT_FALSE(seeds.contains(0));
}

TEST(WritersTest, KnowsWhichBlocksAreEverChecked) {
  const Plan plan = SmallPlan();
  EXPECT_TRUE(EverChecked(plan, 2, 1));
  EXPECT_TRUE(EverChecked(plan, 0, 1));   // read twice: the second time it is checked
  EXPECT_FALSE(EverChecked(plan, 1, 1));  // read once in an iteration
  EXPECT_TRUE(EverChecked(plan, 1, 2));
}

TEST(WritersTest, PlacesAreEveryStrideAndTheLastWord) {
  EXPECT_EQ(PlacesOf(1, 1), 1u);
  EXPECT_EQ(PlacesOf(7, 1), 7u);
  EXPECT_EQ(PlacesOf(1, 4), 1u);
  EXPECT_EQ(PlacesOf(4, 4), 2u);  // 0 and 3
  EXPECT_EQ(PlacesOf(5, 4), 2u);  // 0 and 4
  EXPECT_EQ(PlacesOf(6, 4), 3u);  // 0, 4 and 5
}

}  // namespace
}  // namespace sluice::replay
