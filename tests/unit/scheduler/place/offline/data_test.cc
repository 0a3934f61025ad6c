// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "scheduler/place/offline/exact.h"
#include "scheduler/place/offline/fit.h"
#include "scheduler/place/offline/instance.h"

namespace sluice::scheduler {
namespace {

Instance Read(const std::string& name) {
  const char* folder = std::getenv("SLUICE_TEST_PLACEMENT");
  std::ifstream file(std::string(folder != nullptr ? folder : "data/placement") + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  Result<Instance> read = ParseInstance(text.str());
  EXPECT_TRUE(read.ok()) << name << ": " << read.status().message();
  return read.ok() ? *read : Instance();
}

constexpr uint64_t kCapacity = 1'048'576;

class MiniMalloc : public ::testing::TestWithParam<const char*> {};

// E takes 60 times as much as the others together, and is left to the benchmark.
TEST_P(MiniMalloc, IsPlacedAtItsCapacityAndFarFromItByFits) {
  const Instance instance = Read(std::string("minimalloc/") + GetParam() + ".csv");
  ASSERT_GT(instance.buffers.size(), 100u);
  for (const FitHole hole : {FitHole::kFirst, FitHole::kBest}) {
    const Offsets offsets = PlaceByFit(instance.buffers, FitOrder::kSize, hole);
    EXPECT_GT(Footprint(instance.buffers, offsets), kCapacity);
  }
  constexpr uint64_t kNodes = 1'000'000;
  uint64_t asked = 0;
  const ExactResult result =
      PlaceExactly(instance.buffers, kCapacity, [&] { return ++asked * 4096 < kNodes; });
  ASSERT_EQ(result.outcome, ExactResult::Outcome::kPlaced) << result.nodes;
  EXPECT_EQ(ValidatePlacement(instance.buffers, result.offsets, kCapacity).message(), "");
}

INSTANTIATE_TEST_SUITE_P(Data, MiniMalloc, ::testing::Values("A", "B", "C", "D", "F"),
                         [](const auto& name) { return std::string(name.param); });

TEST(PlacementData, TheHardOnesAreAllThere) {
  const Instance instance = Read("minimalloc/E.csv");
  EXPECT_EQ(instance.buffers.size(), 215u);
  EXPECT_EQ(PeakLoad(instance.buffers), kCapacity);
}

TEST(PlacementData, TheLargeOneIsPlacedWithinOnePerCentOfItsPeak) {
  const Instance instance = Read("idealloc/S_1.csv");
  ASSERT_EQ(instance.buffers.size(), 28'526u);
  const uint64_t peak = PeakLoad(instance.buffers);
  EXPECT_EQ(peak, 1'498'635'932u);
  const Offsets offsets = PlaceByFit(instance.buffers, FitOrder::kTime, FitHole::kBest);
  const uint64_t height = Footprint(instance.buffers, offsets);
  EXPECT_EQ(ValidatePlacement(instance.buffers, offsets, height).message(), "");
  EXPECT_LE(height, peak + peak / 100);
}

}  // namespace
}  // namespace sluice::scheduler
