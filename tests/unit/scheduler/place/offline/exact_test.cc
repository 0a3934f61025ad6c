// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/exact.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/place/offline/random_buffers.h"

namespace sluice::scheduler {
namespace {

using Outcome = ExactResult::Outcome;

bool Always() { return true; }

// Every offset of every buffer.
bool CanBePlaced(const std::vector<Buffer>& buffers, Offsets& offsets, uint64_t capacity) {
  const size_t next = offsets.size();
  if (next == buffers.size()) return true;
  const Buffer& buffer = buffers[next];
  for (uint64_t at = 0; at + buffer.size <= capacity; ++at) {
    bool free = true;
    for (size_t i = 0; i < next && free; ++i) {
      free = buffers[i].upper <= buffer.lower || buffer.upper <= buffers[i].lower ||
             offsets[i] + buffers[i].size <= at || at + buffer.size <= offsets[i];
    }
    if (!free) continue;
    offsets.push_back(at);
    if (CanBePlaced(buffers, offsets, capacity)) return true;
    offsets.pop_back();
  }
  return false;
}

TEST(ExactTest, FindsAPlacementExactlyIfThereIsOne) {
  std::mt19937_64 random(1);
  int impossible = 0;
  for (int round = 0; round < 4000; ++round) {
    auto buffers = RandomBuffers(random, 5 + random() % 3, 6, 4);
    const uint64_t capacity = PeakLoad(buffers) + random() % 2;
    FillUp(6, capacity, buffers);
    Offsets brute;
    const bool possible = CanBePlaced(buffers, brute, capacity);
    const ExactResult result = PlaceExactly(buffers, capacity, Always);
    ASSERT_EQ(result.outcome, possible ? Outcome::kPlaced : Outcome::kImpossible) << round;
    if (possible) {
      EXPECT_EQ(ValidatePlacement(buffers, result.offsets, capacity).message(), "");
    }
    impossible += possible ? 0 : 1;
  }
  EXPECT_GT(impossible, 10) << "the proof is tried, too";
}

// What hangs from above is a buffer whose offset is given.
TEST(ExactTest, BelowACeilingItFindsAPlacementExactlyIfThereIsOne) {
  std::mt19937_64 random(7);
  int impossible = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<Buffer> above;
    for (uint64_t time = 0; time < 6; time += 2) above.push_back({time, time + 2, random() % 4});
    std::erase_if(above, [](const Buffer& step) { return step.size == 0; });
    std::vector<Buffer> all = above;
    for (const Buffer& buffer : RandomBuffers(random, 4, 6, 4)) all.push_back(buffer);
    const uint64_t capacity = PeakLoad(all);
    FillUp(6, capacity, all);
    const std::vector<Buffer> buffers(all.begin() + static_cast<ptrdiff_t>(above.size()),
                                      all.end());
    Offsets offsets;
    for (const Buffer& step : above) offsets.push_back(capacity - step.size);
    Offsets brute = offsets;
    const bool possible = CanBePlaced(all, brute, capacity);
    const ExactResult result = PlaceExactlyBelow(buffers, above, capacity, 1'000'000, Always);
    ASSERT_EQ(result.outcome, possible ? Outcome::kPlaced : Outcome::kImpossible) << round;
    EXPECT_EQ(PlaceExactlyBelow(buffers, above, capacity - 1, 1'000'000, Always).outcome,
              Outcome::kImpossible);
    impossible += possible ? 0 : 1;
    if (!possible) continue;
    offsets.insert(offsets.end(), result.offsets.begin(), result.offsets.end());
    EXPECT_EQ(ValidatePlacement(all, offsets, capacity).message(), "") << round;
  }
  EXPECT_GT(impossible, 10) << "the proof is tried, too";
}

TEST(ExactTest, BelowThePeakNothingIsPossible) {
  const std::vector<Buffer> buffers = {{0, 2, 5}, {1, 3, 5}};
  EXPECT_EQ(PlaceExactly(buffers, 9, Always).outcome, Outcome::kImpossible);
  EXPECT_EQ(PlaceExactly(buffers, 10, Always).outcome, Outcome::kPlaced);
  EXPECT_EQ(PlaceExactly({}, 0, Always).outcome, Outcome::kPlaced);
}

// In both widths of offsets, and in units of what divides all sizes.
TEST(ExactTest, SizesMayBeLarge) {
  std::mt19937_64 random(3);
  for (const uint64_t scale : {uint64_t{1}, uint64_t{8} << 20, (uint64_t{1} << 40) + 1}) {
    for (const uint64_t odd : {0u, 1u}) {
      auto buffers = RandomBuffers(random, 40, 12, 20);
      for (Buffer& buffer : buffers) buffer.size *= scale;
      buffers[0].size += odd;
      const uint64_t capacity = PeakLoad(buffers) * 5 / 4;
      const ExactResult result = PlaceExactly(buffers, capacity, Always);
      ASSERT_EQ(result.outcome, Outcome::kPlaced);
      EXPECT_EQ(ValidatePlacement(buffers, result.offsets, capacity).message(), "");
    }
  }
}

TEST(ExactTest, GivesUpWhenItIsTold) {
  std::mt19937_64 random(5);
  // Tight, and more than can be proven in the time.
  const auto buffers = RandomBuffers(random, 300, 400, 1000);
  int asked = 0;
  const ExactResult result = PlaceExactly(buffers, PeakLoad(buffers), [&] { return ++asked < 3; });
  if (result.outcome == Outcome::kGaveUp) {
    EXPECT_EQ(asked, 3);
    EXPECT_TRUE(result.offsets.empty());
  } else {
    EXPECT_LT(asked, 3);
  }
}

TEST(ExactTest, TooManyAreNotTried) {
  const std::vector<Buffer> buffers(kMostExactBuffers + 1, {0, 1, 1});
  const ExactResult result = PlaceExactly(buffers, buffers.size(), Always);
  EXPECT_EQ(result.outcome, Outcome::kGaveUp);
  EXPECT_EQ(result.nodes, 0u);
}

}  // namespace
}  // namespace sluice::scheduler
