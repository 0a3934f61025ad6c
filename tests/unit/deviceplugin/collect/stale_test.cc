// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/collect/stale.h"

#include <gtest/gtest.h>

namespace sluice::deviceplugin {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
using Ids = std::vector<std::string>;

GrantRecord Grant(const std::string& id, uint64_t at_s, Ids devices) {
  return {id, "GPU-a", 1, at_s * kSecond, std::move(devices)};
}

TEST(Stale, WhoHasItsIdsIsNot) {
  const std::set<std::string> in_use = {"x-0"};
  EXPECT_EQ(StaleGrants({Grant("a", 0, {"x-0", "x-1"})}, &in_use, 100'000 * kSecond), Ids());
}

TEST(Stale, WhoIsNotListedIsOverAfterAWhile) {
  const std::set<std::string> in_use = {"x-5"};
  const std::vector<GrantRecord> grants = {Grant("a", 1000, {"x-0"})};
  EXPECT_EQ(StaleGrants(grants, &in_use, 1100 * kSecond), Ids()) << "it may be about to start";
  EXPECT_EQ(StaleGrants(grants, &in_use, 1121 * kSecond), Ids{"a"});
  EXPECT_EQ(StaleGrants(grants, nullptr, 9999 * kSecond), Ids()) << "kubelet does not say";
}

TEST(Stale, TheNextPodWithItsIdsEndsIt) {
  const std::set<std::string> in_use = {"x-0", "x-1"};
  const std::vector<GrantRecord> grants = {Grant("old", 1000, {"x-0", "x-1"}),
                                           Grant("new", 1061, {"x-1"})};
  EXPECT_EQ(StaleGrants(grants, &in_use, 1062 * kSecond), Ids{"old"});
  EXPECT_EQ(StaleGrants(grants, nullptr, 1062 * kSecond), Ids{"old"}) << "whatever kubelet says";
}

TEST(Stale, AnInitContainersIdsAreAllocatedTwiceForOnePod) {
  const std::vector<GrantRecord> grants = {Grant("init", 1000, {"x-0", "x-1"}),
                                           Grant("main", 1001, {"x-1", "x-0"})};
  EXPECT_EQ(StaleGrants(grants, nullptr, 5000 * kSecond), Ids());
  const std::set<std::string> in_use = {"x-0", "x-1"};
  EXPECT_EQ(StaleGrants(grants, &in_use, 5000 * kSecond), Ids());
}

TEST(Stale, AClockThatWasSetBackEndsNobody) {
  const std::set<std::string> in_use;
  EXPECT_EQ(StaleGrants({Grant("a", 1000, {"x-0"})}, &in_use, 10 * kSecond), Ids());
}

}  // namespace
}  // namespace sluice::deviceplugin
