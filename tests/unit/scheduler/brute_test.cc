// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/audit/brute.h"

#include <gtest/gtest.h>

namespace sluice::scheduler::audit {
namespace {

std::vector<bool> Flags(const std::string& text) {
  std::vector<bool> flags;
  for (const char c : text) flags.push_back(c == '1');
  return flags;
}

TEST(SomeOrderCompletes, FindsTheOneOrder) {
  // Job 1 needs 4, which only job 2 can make room for; job 2 needs 2.
  const std::vector<Party> parties = {{1, 4, kWholeClaim, true, Flags("00000001")},
                                      {2, 2, kWholeClaim, true, Flags("00110000")}};
  EXPECT_TRUE(SomeOrderCompletes(Flags("11001000"), parties, false));
  EXPECT_FALSE(SomeOrderCompletes(Flags("10001000"), parties, false))
      << "no run of 2 to begin with";
  EXPECT_TRUE(SomeOrderCompletes(Flags("10001000"), parties, true)) << "but 2 units";
  EXPECT_TRUE(SomeOrderCompletes({}, {}, false));
}

TEST(SomeOrderCompletes, KeepersTakeForGood) {
  const Party keeper{1, 3, kWholeClaim, false, Flags("000000")};
  const Party other{2, 3, kWholeClaim, false, Flags("000000")};
  EXPECT_TRUE(SomeOrderCompletes(Flags("111111"), {keeper, other}, false));
  EXPECT_FALSE(SomeOrderCompletes(Flags("111110"), {keeper, other}, false));
  EXPECT_FALSE(SomeOrderCompletes(Flags("111110"), {keeper, other}, true));
}

TEST(SomeOrderCompletes, WhatOneMayKeepIsForNoneOfTheOthers) {
  const Party owner{1, 2, kWholeClaim, true, Flags("000000"), Flags("011000")};
  const Party other{2, 2, kWholeClaim, true, Flags("000000"), {}};
  EXPECT_TRUE(SomeOrderCompletes(Flags("011000"), {owner}, false));
  EXPECT_FALSE(SomeOrderCompletes(Flags("011000"), {owner, other}, false));
  EXPECT_FALSE(SomeOrderCompletes(Flags("011000"), {owner, other}, true));
  EXPECT_TRUE(SomeOrderCompletes(Flags("011011"), {owner, other}, false));
}

TEST(SomeOrderCompletes, KeepersTakeTheTightestRun) {
  const Party small{1, 2, kWholeClaim, false, Flags("0000000")};
  const Party large{2, 4, kWholeClaim, false, Flags("0000000")};
  EXPECT_TRUE(SomeOrderCompletes(Flags("1101111"), {small, large}, false));
}

}  // namespace
}  // namespace sluice::scheduler::audit
