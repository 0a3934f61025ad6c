// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/server/offer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "common/bytes.h"

namespace sluice::deviceplugin {
namespace {

/// For who waits for what does come; nobody here waits so long.
constexpr int kLongMs = 60'000;

Offer TwoGpus() {
  Result<DeviceIds> ids = DeviceIds::Make({{"GPU-a", 3 * kGiB}, {"GPU-b", 2 * kGiB}}, kGiB);
  EXPECT_TRUE(ids.ok());
  return Offer(std::move(*ids));
}

size_t Healthy(const Offer::List& list) {
  return static_cast<size_t>(std::count_if(list.entries.begin(), list.entries.end(),
                                           [](const auto& entry) { return entry.healthy; }));
}

TEST(Offer, TheFirstListIsThereAtOnceAndWhole) {
  const Offer offer = TwoGpus();
  const Offer::List list = offer.Await(0, 0);
  EXPECT_EQ(list.version, 1u);
  ASSERT_EQ(list.entries.size(), 5u);
  EXPECT_EQ(Healthy(list), 5u);
  EXPECT_EQ(offer.Await(1, 0).version, 1u) << "nothing new";
}

TEST(Offer, AnUnhealthyGpuTakesItsIdsAlong) {
  Offer offer = TwoGpus();
  offer.SetHealthy(0, false);
  Offer::List list = offer.Await(1, 0);
  EXPECT_EQ(list.version, 2u);
  ASSERT_EQ(list.entries.size(), 5u) << "the capacity stays";
  for (const Offer::Entry& entry : list.entries) {
    EXPECT_EQ(entry.healthy, offer.ids().Find(*entry.id)->gpu == 1) << *entry.id;
  }
  offer.SetHealthy(0, false);
  EXPECT_EQ(offer.Await(2, 0).version, 2u) << "as it was";
  offer.SetHealthy(0, true);
  EXPECT_EQ(Healthy(offer.Await(2, 0)), 5u);
}

TEST(Offer, IsCountedByWhyItIsNotOffered) {
  Offer offer = TwoGpus();
  using Counts = Offer::Counts;
  EXPECT_EQ(offer.CountsByGpu(), (std::vector<Counts>{{3, 0, 0}, {2, 0, 0}}));
  offer.SetWithheld({offer.ids().IdOf({0, 2})});
  offer.SetRefused(1, "somebody else's");
  EXPECT_EQ(offer.CountsByGpu(), (std::vector<Counts>{{2, 0, 1}, {0, 0, 2}}));
  offer.SetHealthy(0, false);
  EXPECT_EQ(offer.CountsByGpu(), (std::vector<Counts>{{0, 3, 0}, {0, 0, 2}}));
}

TEST(Offer, WhatIsDrainedIsKeptBackBesideWhatIsWithheld) {
  Offer offer = TwoGpus();
  offer.SetDrained({offer.ids().IdOf({1, 0}), offer.ids().IdOf({1, 1})});
  offer.SetWithheld({offer.ids().IdOf({0, 2}), offer.ids().IdOf({1, 1})});
  EXPECT_EQ(Healthy(offer.Await(0, 0)), 2u);
  offer.SetDrained({});
  EXPECT_EQ(Healthy(offer.Await(0, 0)), 3u);
}

TEST(Offer, WhatIsKeptBackIsThereAndNotOffered) {
  Offer offer = TwoGpus();
  const std::string kept = offer.ids().IdOf({0, 2});
  offer.SetWithheld({kept});
  Offer::List list = offer.Await(1, 0);
  ASSERT_EQ(list.entries.size(), 5u);
  for (const Offer::Entry& entry : list.entries) EXPECT_EQ(entry.healthy, *entry.id != kept);
  offer.SetWithheld({kept});
  EXPECT_EQ(offer.Await(2, 0).version, 2u) << "as it was";
  offer.SetHealthy(0, false);
  offer.SetWithheld({});
  EXPECT_EQ(Healthy(offer.Await(2, 0)), 2u) << "a broken GPU stays broken";
}

TEST(Offer, AGpuOfSomebodyElseIsThereAndNotOffered) {
  Offer offer = TwoGpus();
  const std::string of_a = offer.ids().IdOf({0, 1});
  const std::string of_b = offer.ids().IdOf({1, 0});
  EXPECT_EQ(offer.Refusal({of_a, of_b}), "");
  offer.SetRefused(0, "theirs");
  const Offer::List list = offer.Await(1, 0);
  EXPECT_EQ(list.version, 2u);
  ASSERT_EQ(list.entries.size(), 5u) << "the capacity stays";
  for (const Offer::Entry& entry : list.entries) {
    EXPECT_EQ(entry.healthy, offer.ids().Find(*entry.id)->gpu == 1) << *entry.id;
  }
  EXPECT_EQ(offer.Refusal({of_b, of_a}), "theirs") << "kubelet had chosen already";
  EXPECT_EQ(offer.Refusal({of_b, "nobody-1"}), "");
  offer.SetRefused(0, "another's");
  EXPECT_EQ(offer.Await(2, 0).version, 2u) << "the list is the same";
  EXPECT_EQ(offer.Refusal({of_a}), "another's");
  offer.SetHealthy(0, false);
  offer.SetRefused(0, "");
  EXPECT_EQ(Healthy(offer.Await(2, 0)), 2u) << "a broken GPU stays broken";
  EXPECT_EQ(offer.Refusal({of_a}), "");
  offer.SetHealthy(0, true);
  EXPECT_EQ(Healthy(offer.Await(3, 0)), 5u);
}

TEST(Offer, WhoWaitsIsWokenByAChange) {
  Offer offer = TwoGpus();
  Offer::List list;
  std::thread waiting([&] { list = offer.Await(1, kLongMs); });
  offer.SetHealthy(1, false);
  waiting.join();
  EXPECT_EQ(list.version, 2u);
  EXPECT_EQ(Healthy(list), 3u);
}

TEST(Offer, WhoWaitsIsWokenByTheEnd) {
  Offer offer = TwoGpus();
  Offer::List list = {7, {}};
  std::thread waiting([&] { list = offer.Await(1, kLongMs); });
  offer.Close();
  waiting.join();
  EXPECT_EQ(list.version, 1u);
  EXPECT_TRUE(offer.closed());
}

}  // namespace
}  // namespace sluice::deviceplugin
