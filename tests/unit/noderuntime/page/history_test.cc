// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/history.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::page {
namespace {

using Json = nlohmann::json;

LiveView View(uint64_t seq, uint64_t now_ms, std::vector<uint64_t> frames) {
  LiveView view;
  view.seq = seq;
  view.now_ms = now_ms;
  view.json = Json({{"seq", seq}}).dump();
  for (const uint64_t t : frames) view.frames.push_back({t, "[" + std::to_string(t) + ",[]]"});
  return view;
}

std::vector<uint64_t> Times(const History::Message& message) {
  std::vector<uint64_t> times;
  const Json json = Json::parse(message.data);
  for (const Json& frame : json["frames"]) times.push_back(frame[0]);
  return times;
}

using T = std::vector<uint64_t>;

TEST(History, ANewViewerGetsAllAndThenWhatIsNew) {
  History history;
  History::Place first;
  EXPECT_FALSE(history.Next(&first).has_value());
  history.Add(View(1, 100, {80, 100}));
  auto message = history.Next(&first);
  ASSERT_TRUE(message.has_value());
  EXPECT_STREQ(message->event, "start");
  EXPECT_EQ(Times(*message), (T{80, 100}));
  EXPECT_FALSE(history.Next(&first).has_value()) << "nothing is new";

  history.Add(View(2, 200, {200}));
  message = history.Next(&first);
  EXPECT_STREQ(message->event, "live");
  EXPECT_EQ(Times(*message), (T{200}));
  EXPECT_EQ(Json::parse(message->data)["seq"], 2);

  History::Place second;
  message = history.Next(&second);
  EXPECT_STREQ(message->event, "start");
  EXPECT_EQ(Times(*message), (T{80, 100, 200}));
}

TEST(History, ASlowViewerGetsItInOneMessage) {
  History history;
  History::Place place;
  history.Add(View(1, 100, {100}));
  history.Next(&place);
  for (uint64_t i = 2; i <= 5; ++i) history.Add(View(i, i * 100, {i * 100}));
  const auto message = history.Next(&place);
  EXPECT_EQ(Times(*message), (T{200, 300, 400, 500}));
  EXPECT_EQ(Json::parse(message->data)["seq"], 5);
}

TEST(History, ForgetsWhatIsOlderThanAnyWindow) {
  History history;
  history.Add(View(1, 1000, {1000}));
  history.Add(View(2, 1000 + History::kKeptMs + 1, {5000}));
  EXPECT_EQ(history.frames(), 1u);
  History::Place place;
  EXPECT_EQ(Times(*history.Next(&place)), (T{5000}));
}

TEST(History, AViewerWhoSleptThroughFramesThatWereForgottenGoesOn) {
  History history;
  History::Place place;
  history.Add(View(1, 1000, {1000}));
  history.Next(&place);
  history.Add(View(2, 2000, {2000}));
  history.Add(View(3, 2001 + History::kKeptMs, {3000}));
  const auto message = history.Next(&place);
  EXPECT_STREQ(message->event, "live");
  EXPECT_EQ(Times(*message), (T{3000}));
}

TEST(History, IsBoundedInBytesWhateverFramesHold) {
  History history;
  for (uint64_t i = 1; i <= 10; ++i) {
    LiveView view = View(i, i, {});
    view.frames.push_back({i, std::string(1u << 20, ' ')});
    history.Add(std::move(view));
  }
  EXPECT_EQ(history.frames(), History::kKeptBytes >> 20);
}

TEST(History, ADaemonThatWentIsSaidAndTheNextBeginsAnew) {
  History history;
  History::Place place;
  history.Add(View(9, 100, {100}));
  history.Next(&place);
  EXPECT_EQ(history.cursor(), 9u);
  history.Lose("no daemon runs");
  EXPECT_EQ(history.cursor(), 0u);
  auto message = history.Next(&place);
  EXPECT_STREQ(message->event, "gone");
  EXPECT_EQ(Json::parse(message->data)["text"], "no daemon runs");
  history.Lose("no daemon runs");
  EXPECT_FALSE(history.Next(&place).has_value()) << "said once";
  history.Add(View(2, 300, {300}));
  message = history.Next(&place);
  EXPECT_STREQ(message->event, "start");
  EXPECT_EQ(Times(*message), (T{300}));
}

TEST(History, ACursorThatFellIsAnotherDaemons) {
  History history;
  History::Place place;
  history.Add(View(50, 100, {100}));
  history.Next(&place);
  history.Add(View(3, 200, {200}));
  const auto message = history.Next(&place);
  EXPECT_STREQ(message->event, "start");
  EXPECT_EQ(Times(*message), (T{200}));
}

TEST(History, WhatWasForgottenIsNotShownToWhoComes) {
  History history;
  history.Add(View(1, 100, {100}));
  history.Forget();
  EXPECT_EQ(history.cursor(), 0u);
  History::Place place;
  EXPECT_FALSE(history.Next(&place).has_value());
  history.Add(View(2, 200, {200}));
  EXPECT_EQ(Times(*history.Next(&place)), (T{200}));
}

}  // namespace
}  // namespace sluice::page
