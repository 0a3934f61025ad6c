// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/top_screen.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

LiveView ViewOf(size_t jobs) {
  std::string list;
  std::string held;
  for (size_t i = 1; i <= jobs; ++i) {
    const std::string id = std::to_string(i);
    list += (i == 1 ? "" : ",") + std::string(R"({"id": )") + id + R"(, "name": "job-)" + id +
            R"(", "phase": "running", "held": )" + std::to_string(i * 1024) +
            R"(, "gates": 4, "gate": 2, "waits_ms": )" + std::to_string((i % 3) * 100) +
            R"(, "waits_for": ")" + (i % 3 == 0 ? "" : "a reason of " + id) +
            R"(", "code": "turn"})";
    held += (i == 1 ? "" : ",") + id + ", 1";
  }
  LiveView view;
  EXPECT_TRUE(
      view.Take(R"({"seq": 1, "now_ms": 20000, "pool": 1048576, "budget": 1048576, "unit": 1024,
                           "free": 1024, "policy": "flow", "lanes": 2, "jobs": [)" +
                list + R"(], "frames": [[15000, [)" + held + "]]]}")
          .ok());
  return view;
}

bool Has(const TopScreen& screen, const std::string& text) {
  for (const std::string& line : screen.lines) {
    if (line.find(text) != std::string::npos) return true;
  }
  return false;
}

/// Columns on the screen: bytes that begin a character.
size_t Width(const std::string& line) {
  size_t width = 0;
  for (const char c : line) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return width;
}

TEST(TopScreen, ShowsThePoolThePictureTheJobsAndWhyTheSelectedOneWaits) {
  TopState state;
  state.selected = 1;
  state.columns = 120;
  const TopScreen screen = RenderTop(ViewOf(3), state);
  EXPECT_TRUE(Has(screen, "pool 1.0 MiB"));
  EXPECT_TRUE(Has(screen, "policy flow, 2 lanes"));
  EXPECT_TRUE(Has(screen, "job-2"));
  EXPECT_TRUE(Has(screen, "job 2: a reason of 2"));
  EXPECT_TRUE(Has(screen, "2/4"));
  ASSERT_NE(screen.selected, TopScreen::kNone);
  EXPECT_NE(screen.lines[screen.selected].find("job-2"), std::string::npos);
  EXPECT_NE(screen.lines[screen.header].find("BORROWED"), std::string::npos);
}

TEST(TopScreen, OnANarrowTerminalWhoLendsAndWhoWaitsIsThere) {
  LiveView view;
  ASSERT_TRUE(view.Take(R"({"seq": 1, "now_ms": 20000, "pool": 85899345920, "jobs": [{"id": 123,
      "name": "team-a/resnet-training-7f9c4d8b6-10001/main", "phase": "unprofiled",
      "held": 12345678901, "live": 12345678901, "claim": 12345678901, "limit": 12345678901,
      "lent": 11111111111, "borrowed": 1111111111, "gates": 12, "gate": 11, "waits_ms": 1500,
      "waits_for": "x", "code": "turn"}]})")
                  .ok());
  TopState state;
  state.columns = 80;
  const TopScreen screen = RenderTop(view, state);
  for (const char* text : {"LENT", "10.3 GiB", "BORROWED", "1.0 GiB", "WAITS", "1.5 s"}) {
    EXPECT_TRUE(Has(screen, text)) << text << "\n" << screen.lines[screen.header];
  }
  state.columns = 160;
  EXPECT_TRUE(Has(RenderTop(view, state), "IN USE"));
  EXPECT_TRUE(Has(RenderTop(view, state), "11/12"));
}

TEST(TopScreen, FitsEveryTerminal) {
  for (const size_t jobs : {1u, 5u, 64u}) {
    const LiveView view = ViewOf(jobs);
    for (const size_t rows : {1u, 5u, 12u, 24u, 50u, 100u}) {
      for (const size_t columns : {20u, 80u, 200u}) {
        for (const size_t selected : {size_t{0}, jobs - 1, size_t{500}}) {
          TopState state;
          state.rows = rows;
          state.columns = columns;
          state.selected = selected;
          const TopScreen screen = RenderTop(view, state);
          EXPECT_LE(screen.lines.size(), rows);
          for (const std::string& line : screen.lines) EXPECT_LE(Width(line), columns) << line;
        }
      }
    }
  }
}

TEST(TopScreen, TheSelectedJobIsOnTheScreenHoweverManyThereAre) {
  TopState state;
  state.rows = 24;
  state.selected = 63;
  const TopScreen screen = RenderTop(ViewOf(64), state);
  ASSERT_NE(screen.selected, TopScreen::kNone);
  EXPECT_NE(screen.lines[screen.selected].find("job-64"), std::string::npos);
}

TEST(TopScreen, OrdersJobsAsAsked) {
  const LiveView view = ViewOf(4);
  EXPECT_EQ(JobsInOrder(view, TopState::Order::kNumber).front().id, 1u);
  EXPECT_EQ(JobsInOrder(view, TopState::Order::kHeld).front().id, 4u);
  EXPECT_EQ(JobsInOrder(view, TopState::Order::kWaits).front().id, 2u);
}

TEST(TopScreen, ATerminalObeysNoName) {
  LiveView view;
  ASSERT_TRUE(view.Take(R"({"pool": 1, "jobs": [{"id": 1, "name": "\u001b[2J\u0007x"}]})").ok());
  const TopScreen screen = RenderTop(view, TopState());
  EXPECT_FALSE(Has(screen, "\x1b"));
  EXPECT_TRUE(Has(screen, "\\u001b[2J\\u0007x"));
}

TEST(TopScreen, NobodyThereAndADaemonThatIsGone) {
  EXPECT_TRUE(Has(RenderTop(ViewOf(0), TopState()), "no job yet"));
  TopState state;
  state.gone = "no daemon runs in /run/x";
  EXPECT_TRUE(Has(RenderTop(ViewOf(1), state), "no daemon runs in /run/x"));
}

}  // namespace
}  // namespace sluice::cli
