// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/feed.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/noderuntime/page/fake_source.h"

namespace sluice::page {
namespace {

using namespace std::chrono_literals;

constexpr auto kLong = 30s;
constexpr Feed::Pace kFast = {1ms, 1ms, 9000ms};

TEST(Feed, AsksNobodyUntilSomebodyLooks) {
  FakeSource source;
  Feed feed(&source, 0, kFast);
  EXPECT_EQ(feed.polls(), 0u);
  Feed::Viewer viewer(&feed);
  const auto message = viewer.Next(kLong);
  ASSERT_TRUE(message.has_value());
  EXPECT_STREQ(message->event, "start");
}

TEST(Feed, LetsGoOfTheDaemonWhenTheLastOneHasLeft) {
  FakeSource source;
  Feed feed(&source, 0, kFast);
  {
    Feed::Viewer viewer(&feed);
    ASSERT_TRUE(viewer.Next(kLong).has_value());
    EXPECT_EQ(source.open(), 1);
  }
  source.AwaitNoneOpen();
  const uint64_t asked = source.fetches();
  Feed::Viewer again(&feed);
  source.AwaitFetches(asked + 2);
}

TEST(Feed, AsksOnceForAllWhoLook) {
  FakeSource source;
  Feed feed(&source, 0, kFast);
  Feed::Viewer one(&feed);
  Feed::Viewer two(&feed);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(one.Next(kLong).has_value());
    ASSERT_TRUE(two.Next(kLong).has_value());
  }
  EXPECT_EQ(source.open(), 1);
  // It goes on asking: one poll may be under way, and some come between two looks at the counters.
  const uint64_t before = feed.polls();
  const uint64_t fetches = source.fetches();
  const uint64_t after = feed.polls();
  EXPECT_GE(fetches + 1, before);
  EXPECT_LE(fetches, after);
}

TEST(Feed, SaysThatTheDaemonIsGoneAndComesBack) {
  FakeSource source;
  source.SetDown(true);
  Feed feed(&source, 0, kFast);
  Feed::Viewer viewer(&feed);
  auto message = viewer.Next(kLong);
  ASSERT_TRUE(message.has_value());
  EXPECT_STREQ(message->event, "gone");
  EXPECT_EQ(message->data, R"({"text":"no daemon runs"})");
  source.AwaitConnects(3);
  source.SetDown(false);
  message = viewer.Next(kLong);
  ASSERT_TRUE(message.has_value());
  EXPECT_STREQ(message->event, "start");
}

TEST(Feed, WakesWhoWaitsWhenItStops) {
  FakeSource source;
  Feed feed(&source, 0, {1h, 1h, 9000ms});
  Feed::Viewer viewer(&feed);
  ASSERT_TRUE(viewer.Next(kLong).has_value());
  std::thread waiting([&] { EXPECT_FALSE(viewer.Next(1h).has_value()); });
  feed.Stop();
  waiting.join();
}

}  // namespace
}  // namespace sluice::page
