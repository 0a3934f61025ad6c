// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/memory_chart.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

// Two jobs in a pool of 8 bytes: one holds 2 all the time and 6 in the first half, the other the
// opposite.
MemoryHistory Alternating() {
  MemoryHistory history;
  history.labels = {"job 1", "job 2"};
  history.pool_bytes = 8;
  history.steps = {{0, 0, 6}, {0, 1, 2}, {6'000'000, 0, 2}, {6'000'000, 1, 6}};
  history.marks = {{0, 0, 0}, {6'000'000, 1, 0}};
  return history;
}

ChartStyle Small() {
  ChartStyle style;
  style.columns = 24;
  style.rows = 4;
  return style;
}

TEST(MemoryChart, StacksTheJobsUnderThePoolLine) {
  EXPECT_EQ(RenderChart(Alternating(), {0, 12'000'000}, Small()),
            "       8 B ┬──────────── pool\n"
            "           │▒▒▒▒▒▒▒▒▒▒▒▒\n"
            "       4 B ┤██████▒▒▒▒▒▒\n"
            "           │██████▒▒▒▒▒▒\n"
            "           │████████████\n"
            "         0 ┴──────────── 12.0 ms\n"
            "     job 1  ▲···········\n"
            "     job 2  ······▲·····\n"
            "            █ job 1   ▒ job 2   ▲ an iteration starts (gate 0 opens)\n");
}

TEST(MemoryChart, AWindowBeginsWithWhatWasHeldBefore) {
  const std::string picture = RenderChart(Alternating(), {9'000'000, 12'000'000}, Small());
  EXPECT_NE(picture.find("│████████████\n"), std::string::npos) << picture;
  EXPECT_NE(picture.find("│▒▒▒▒▒▒▒▒▒▒▒▒\n"), std::string::npos) << picture;
  EXPECT_NE(picture.find(" 3.0 ms\n"), std::string::npos) << picture;
}

// A job that holds everything for half of a column's time fills half of it.
TEST(MemoryChart, AColumnShowsTheMeanOverItsTime) {
  MemoryHistory history;
  history.labels = {"job 1"};
  history.pool_bytes = 8;
  for (uint64_t column = 0; column < 12; ++column) {
    history.steps.push_back({column * 1000, 0, 8});
    history.steps.push_back({column * 1000 + 500, 0, 0});
  }
  const std::string picture = RenderChart(history, {0, 12'000}, Small());
  size_t filled = 0;
  for (size_t at = 0; (at = picture.find("│████████████\n", at)) != std::string::npos; ++at)
    ++filled;
  EXPECT_EQ(filled, 2u) << picture;
}

TEST(MemoryChart, AnEmptyHistoryIsAnEmptyPicture) {
  MemoryHistory history;
  history.labels = {"job 1"};
  history.pool_bytes = 8;
  const std::string picture = RenderChart(history, MiddleWindow(history, 4), Small());
  EXPECT_NE(picture.find("│            \n"), std::string::npos) << picture;
}

// The second job begins late and ends early: the picture shows both.
TEST(MiddleWindow, ShowsAllJobsWhereItCan) {
  MemoryHistory history;
  history.labels = {"job 1", "job 2"};
  for (uint64_t i = 0; i < 20; ++i) {
    history.steps.push_back({i * 100, 0, 1});
    history.marks.push_back({i * 100, 0, 0});
    if (i == 12 || i == 13 || i == 14) history.marks.push_back({i * 100 + 50, 1, 0});
  }
  const ChartWindow window = MiddleWindow(history, 4);
  EXPECT_EQ(window.from_ns, 1100u);
  EXPECT_EQ(window.to_ns, 1500u);
}

TEST(MiddleWindow, SpansTheWantedIterationsInTheMiddle) {
  MemoryHistory history;
  history.labels = {"job 1"};
  for (uint64_t i = 0; i < 10; ++i) {
    history.steps.push_back({i * 100, 0, 1});
    history.marks.push_back({i * 100, 0, 0});
  }
  const ChartWindow middle = MiddleWindow(history, 4);
  EXPECT_EQ(middle.from_ns, 200u);
  EXPECT_EQ(middle.to_ns, 600u);
  const ChartWindow all = MiddleWindow(history, 20);
  EXPECT_EQ(all.from_ns, 0u);
  EXPECT_EQ(all.to_ns, 901u);
}

}  // namespace
}  // namespace sluice::cli
