// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/detect.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sluice::scheduler {
namespace {

std::vector<uint64_t> Of(const std::string& text) { return {text.begin(), text.end()}; }

std::string Times(int count, const std::string& text) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

uint32_t Period(const std::string& text, uint32_t max_period = 100) {
  const auto found = DetectPeriod(Of(text), max_period, 2);
  return found ? found->period : 0;
}

TEST(DetectPeriod, ASimpleCycle) {
  EXPECT_EQ(Period("abcabc"), 3u);
  EXPECT_EQ(Period("abcab"), 0u) << "not two full repetitions";
  EXPECT_EQ(Period("aaaa"), 1u);
  EXPECT_EQ(Period(""), 0u);
  EXPECT_EQ(Period("a"), 0u);
}

TEST(DetectPeriod, AnInnerLoopIsNotTheCycle) {
  EXPECT_EQ(Period("aabaab"), 3u);
  EXPECT_EQ(Period("aabaabaa"), 3u) << "ends in a loop of its own";
  EXPECT_EQ(Period("abababcabababcab"), 7u);
}

TEST(DetectPeriod, NestedCycles) {
  // Three micro-batches and an update.
  const std::string iteration = Times(3, "xyz") + "uv";
  EXPECT_EQ(Period(Times(2, iteration)), 11u);
  EXPECT_EQ(Period(Times(4, iteration) + "xyzxyz"), 11u);
}

TEST(DetectPeriod, NoiseBeforeTheCycle) {
  EXPECT_EQ(Period("qwertyabqzz" + Times(3, "abcd")), 4u);
  EXPECT_EQ(Period(Times(3, "abcd") + "q"), 0u) << "what repeats has to reach the end";
}

TEST(DetectPeriod, RespectsItsBounds) {
  EXPECT_EQ(Period("abcdabcd", 3), 0u);
  EXPECT_FALSE(DetectPeriod(Of("abcabcabc"), 10, 10).has_value());
  EXPECT_EQ(DetectPeriod(Of("abcabcabc"), 10, 9)->covered, 9u);
}

TEST(Repetitions, MostCoveredFirstWithoutMultiples) {
  const auto found = Repetitions(Of("aabaabaabaa"), 100);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].period, 3u);
  EXPECT_EQ(found[0].covered, 11u);
  EXPECT_EQ(found[1].period, 1u);
  EXPECT_EQ(found[1].covered, 2u);
}

/// Against the definition, element by element.
TEST(Repetitions, MatchesTheDefinition) {
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    std::vector<uint64_t> sequence;
    for (int i = 0; i < 24; ++i) sequence.push_back(random() % 2);
    const auto found = Repetitions(sequence, 12);
    for (uint32_t period = 1; period <= 12; ++period) {
      uint32_t covered = period;
      while (covered < sequence.size() && sequence[sequence.size() - 1 - covered] ==
                                              sequence[sequence.size() - 1 - covered + period]) {
        ++covered;
      }
      const bool listed = std::any_of(found.begin(), found.end(), [&](const Repetition& r) {
        return r.period == period && r.covered == covered;
      });
      const bool multiple = std::any_of(found.begin(), found.end(), [&](const Repetition& r) {
        return r.period < period && r.period * 2 <= r.covered && period % r.period == 0 &&
               r.covered >= covered;
      });
      ASSERT_EQ(listed, covered >= 2 * period && !multiple)
          << "round " << round << " period " << period;
    }
  }
}

TEST(UniqueWindow, FewestElementsThatTellThePositionApart) {
  EXPECT_EQ(UniqueWindow(Of("abc"), 0), 1u);
  EXPECT_EQ(UniqueWindow(Of("aab"), 0), 1u) << "b occurs once";
  EXPECT_EQ(UniqueWindow(Of("aab"), 2), 2u) << "after aa";
  EXPECT_EQ(UniqueWindow(Of("aab"), 1), 2u) << "after ba";
  EXPECT_EQ(UniqueWindow(Of("xaayaaz"), 3), 3u) << "after xaa, not yaa";
  EXPECT_EQ(UniqueWindow(Of("abab"), 0), 0u) << "a repetition of a shorter cycle";
  EXPECT_EQ(UniqueWindow(Of("a"), 0), 1u);
  EXPECT_EQ(UniqueWindow({}, 0), 0u);
}

}  // namespace
}  // namespace sluice::scheduler
