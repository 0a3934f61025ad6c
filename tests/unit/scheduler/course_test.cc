// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/course.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice::scheduler {
namespace {

Units At(const UseOverTime& use, double ns) {
  Units units = 0;
  for (const UseOverTime::Step& step : use.steps) {
    if (step.from_ns <= ns) units = step.units;
  }
  return units;
}

/// Gates at launches 0, 10, 20, 30 of an iteration of 40, each launch 10 ns.
Course Triangle() {
  CyclePlan plan;
  plan.gates = {{0, 2, 1}, {10, 6, 1}, {20, 9, 1}, {30, 4, 1}};
  plan.peak_units = 9;
  plan.credit_ns = 20;
  return Course(plan, {0, 100, 200, 300}, 400, 1);
}

TEST(OverTime, IsTheMostOfWhatIsAlive) {
  const UseOverTime use = OverTime({{0, 10, 3}, {5, 20, 2}, {15, 30, 7}, {40, 50, 1}}, 2);
  ASSERT_EQ(use.steps.size(), 4u);
  EXPECT_EQ(At(use, 0), 3u);
  EXPECT_EQ(At(use, 10), 2u);
  EXPECT_EQ(At(use, 15), 7u);
  EXPECT_EQ(At(use, 29), 7u);
  EXPECT_EQ(At(use, 30), 2u);
  EXPECT_EQ(At(use, 45), 2u) << "never less than the least";
}

TEST(OverTime, AgreesWithLookingAtEachLifespan) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifespan> spans;
    double from = 0;
    double until = 0;
    for (size_t i = 0; i < 1 + random() % 12; ++i) {
      from += static_cast<double>(random() % 20);
      until = std::max(until, from + static_cast<double>(random() % 30));
      spans.push_back({from, until, static_cast<Units>(random() % 10)});
    }
    const UseOverTime use = OverTime(spans, 3);
    for (int ns = 0; ns < 300; ++ns) {
      Units most = 3;
      for (const Lifespan& span : spans) {
        if (span.from_ns <= ns && ns < span.until_ns) most = std::max(most, span.units);
      }
      ASSERT_EQ(At(use, ns), most) << "round " << round << " at " << ns;
    }
    EXPECT_EQ(use.steps.back().units, 3u);
  }
}

TEST(Merge, KeepsTheMostOfNeighboursThatAreAlike) {
  const std::vector<Lifespan> spans = {{0, 5, 3}, {4, 9, 4}, {8, 20, 5}, {15, 30, 2}};
  const std::vector<Lifespan> merged = Merge(spans, 1);
  ASSERT_EQ(merged.size(), 3u) << "3 and 4, for 5 is too far from 3";
  EXPECT_EQ(merged[0].units, 4u);
  EXPECT_EQ(merged[0].from_ns, 0);
  EXPECT_EQ(merged[0].until_ns, 9);
  EXPECT_EQ(merged[1].units, 5u);
  EXPECT_EQ(Merge(spans, 0).size(), 4u);
  EXPECT_TRUE(Merge({}, 1).empty());
}

TEST(Course, ExpectsWhatWasMeasuredAlone) {
  const Course course = Triangle();
  EXPECT_EQ(At(course.Whole(), 0), 2u);
  EXPECT_EQ(At(course.Whole(), 79), 2u);
  EXPECT_EQ(At(course.Whole(), 80), 6u) << "its host is ahead of its GPU by the credit";
  EXPECT_EQ(At(course.Whole(), 299), 9u) << "until its GPU has passed the group";
  EXPECT_EQ(At(course.Whole(), 300), 4u);
  EXPECT_EQ(At(course.Whole(), 400), 1u);
}

TEST(Course, KnowsTheRestOfAnIteration) {
  Course course = Triangle();
  course.Open(1000);
  course.Pass(0, 1000);
  course.Pass(1, 1080);
  EXPECT_TRUE(course.Reach(10, 1100));
  EXPECT_FALSE(course.Reach(11, 1110));
  const auto held_in = [&course](double now, double in) {
    return At(course.Whole(), course.Along(now) + in);
  };
  EXPECT_EQ(held_in(1130, 0), 6u);
  EXPECT_EQ(held_in(1130, 49), 6u);
  EXPECT_EQ(held_in(1130, 50), 9u);
  EXPECT_EQ(held_in(1130, 170), 4u);
  EXPECT_EQ(held_in(1130, 270), 1u);
  EXPECT_EQ(held_in(1500, 0), 9u) << "it is late, and about to take its peak";
  course.Pass(2, 1100);
  EXPECT_EQ(held_in(1100, 119), 9u) << "it is early: its GPU still takes its time";
  course.Pass(3, 1120);
  EXPECT_TRUE(course.Reach(30, 1130));
  EXPECT_EQ(held_in(1130, 0), 4u) << "its GPU was early";
}

TEST(Course, FollowsWhatItMeasuresBesideOthers) {
  Course course = Triangle();
  for (int i = 0; i < 20; ++i) {
    const double now = 10000.0 * i;
    course.Open(now);
    course.Pass(0, now);
    course.Pass(1, now + 160);
    course.Reach(10, now + 200);
    course.Pass(2, now + 360);
    course.Reach(20, now + 400);
    course.Pass(3, now + 560);
    course.Reach(30, now + 600);
    course.End(now + 800);
  }
  EXPECT_EQ(course.iterations(), 20u);
  EXPECT_EQ(At(course.Whole(), 150), 2u) << "twice as slow as alone";
  EXPECT_EQ(At(course.Whole(), 161), 6u);
  EXPECT_EQ(At(course.Whole(), 599), 9u);
  EXPECT_EQ(At(course.Whole(), 601), 4u);
}

/// Somewhere in an iteration, on time or not, with its gates in any shape.
Course Somewhere(std::mt19937* random) {
  const auto pick = [random](size_t bound) { return (*random)() % bound; };
  CyclePlan plan;
  std::vector<double> gate_ns;
  for (uint32_t k = 0; k < 2 + pick(30); ++k) {
    plan.gates.push_back({k, static_cast<Units>(1 + pick(300)), 1});
    plan.peak_units = std::max(plan.peak_units, plan.gates.back().need_units);
    gate_ns.push_back(k == 0 ? 0 : gate_ns.back() + static_cast<double>(pick(200)));
  }
  plan.credit_ns = pick(300);
  const double iteration_ns = gate_ns.back() + static_cast<double>(pick(200));
  Course course(plan, gate_ns, iteration_ns, 1 + static_cast<Units>(pick(20)),
                1 + static_cast<uint32_t>(pick(30)));
  const size_t gates = course.gates();
  course.Open(0);
  const size_t host = pick(gates);
  course.Pass(host, static_cast<double>(pick(3000)));
  course.Reach(static_cast<uint32_t>(pick(gates)), static_cast<double>(pick(3000)));
  return course;
}

TEST(Course, KeepsTheGroupsThatItWouldFind) {
  std::mt19937 random(6);
  for (int round = 0; round < 1000; ++round) {
    const Course course = Somewhere(&random);
    std::vector<Units> units;
    for (size_t k = 0; k < course.gates(); ++k) units.push_back(course.units(k));
    for (uint32_t groups = 0; groups <= 31; ++groups) {
      for (size_t k = 0; k < units.size(); ++k) {
        ASSERT_EQ(course.GroupOf(k, groups),
                  GroupAt(units, course.base(), course.peak(), k, groups));
      }
    }
  }
}

TEST(Course, TakesNothingForGranted) {
  Course none;
  EXPECT_EQ(none.gates(), 0u);
  EXPECT_FALSE(none.Reach(1, 1));
  none.Open(0);
  none.Pass(3, 1);
  none.End(2);
  Course course = Triangle();
  course.Pass(2, 5);
  EXPECT_EQ(course.passed(), 0u) << "it is at its trough";
  std::map<JobId, Course> courses;
  courses[1] = none;
  const Outlook outlook{0, &courses};
  EXPECT_EQ(outlook.Of(1), nullptr) << "without gates nothing is known";
  EXPECT_EQ(outlook.Of(2), nullptr);
  EXPECT_EQ(Outlook().Of(1), nullptr);
}

}  // namespace
}  // namespace sluice::scheduler
