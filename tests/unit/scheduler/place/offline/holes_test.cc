// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/holes.h"

#include <gtest/gtest.h>

#include <bit>
#include <iterator>
#include <map>
#include <random>

namespace sluice::scheduler {
namespace {

/// The same by looking at every hole from the lowest one up.
class WalkedHoles {
 public:
  uint64_t Take(uint64_t size, bool best) {
    auto found = holes_.end();
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (Size(hole) < size) continue;
      if (found == holes_.end() || Size(hole) < Size(found)) found = hole;
      if (!best) break;
    }
    const auto [start, end] = *found;
    holes_.erase(found);
    if (start + size < end) holes_.emplace(start + size, end);
    return start;
  }
  void Give(uint64_t start, uint64_t size) {
    auto hole = holes_.emplace(start, start + size).first;
    if (const auto above = std::next(hole); above != holes_.end() && above->first == hole->second) {
      hole->second = above->second;
      holes_.erase(above);
    }
    if (hole == holes_.begin()) return;
    if (const auto below = std::prev(hole); below->second == hole->first) {
      below->second = hole->second;
      holes_.erase(hole);
    }
  }

 private:
  using Map = std::map<uint64_t, uint64_t>;
  static uint64_t Size(Map::iterator hole) { return hole->second - hole->first; }
  Map holes_ = {{0, ~uint64_t{0}}};
};

TEST(HolesTest, AreThoseThatAWalkFinds) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 60; ++round) {
    Holes holes;
    WalkedHoles walked;
    std::vector<std::pair<uint64_t, uint64_t>> taken;
    const uint64_t most = round % 2 == 0 ? 8 : 1000;  // many equal sizes, and few
    for (int step = 0; step < 1500; ++step) {
      // Grows at first, and has nearly nothing left at the end.
      const bool take = taken.empty() || random() % 1500 > static_cast<uint64_t>(step);
      if (take) {
        const uint64_t size = 1 + random() % most;
        const bool best = random() % 2 == 0;
        const uint64_t start = best ? holes.TakeBest(size) : holes.TakeFirst(size);
        ASSERT_EQ(start, walked.Take(size, best)) << round << ", " << step;
        taken.emplace_back(start, size);
        continue;
      }
      const size_t gone = random() % taken.size();
      holes.Give(taken[gone].first, taken[gone].second);
      walked.Give(taken[gone].first, taken[gone].second);
      taken[gone] = taken.back();
      taken.pop_back();
    }
  }
}

/// Looks of each call when `count` holes that are too small lie below what is asked for.
double LooksPerCall(uint64_t count) {
  Holes holes;
  for (uint64_t i = 0; i < 2 * count; ++i) holes.TakeFirst(1);
  for (uint64_t i = 0; i < count; ++i) holes.Give(2 * i, 1);
  const uint64_t before = holes.looks();
  for (uint64_t i = 0; i < count; ++i) holes.TakeFirst(2);
  return static_cast<double>(holes.looks() - before) / static_cast<double>(count);
}

TEST(HolesTest, AsManyLooksAsALogarithmOfThem) {
  // Each call finds, removes and adds again: three ways down a tree of about 2 ln n levels.
  for (const uint64_t count : {uint64_t{1} << 10, uint64_t{1} << 14, uint64_t{1} << 17}) {
    EXPECT_LT(LooksPerCall(count), 6 * std::bit_width(count)) << count;
  }
}

}  // namespace
}  // namespace sluice::scheduler
