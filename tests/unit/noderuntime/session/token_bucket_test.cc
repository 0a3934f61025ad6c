// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/session/token_bucket.h"

#include <gtest/gtest.h>

namespace sluice::session {
namespace {

constexpr uint64_t kNow = 1'000;
constexpr uint64_t kSecond = 1'000'000'000;

TEST(TokenBucket, IsFullAtFirstAndFillsWithTime) {
  TokenBucket bucket(3, 10, kNow);
  EXPECT_EQ(bucket.Left(kNow), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.Take(kNow));
  EXPECT_FALSE(bucket.Take(kNow));
  EXPECT_FALSE(bucket.Take(kNow + kSecond / 10 - 1));
  EXPECT_TRUE(bucket.Take(kNow + kSecond / 10));
  EXPECT_EQ(bucket.Left(kNow + 100 * kSecond), 3u) << "no more than it holds";
}

TEST(TokenBucket, WhatIsOwedComesInFirst) {
  TokenBucket bucket(3, 10, kNow);
  bucket.Spend(8, kNow);
  EXPECT_EQ(bucket.Left(kNow + 5 * kSecond / 10), 0u);
  EXPECT_FALSE(bucket.Take(kNow + 5 * kSecond / 10));
  EXPECT_EQ(bucket.Left(kNow + 6 * kSecond / 10), 1u);
  EXPECT_EQ(bucket.Left(kNow + 100 * kSecond), 3u);
}

TEST(TokenBucket, OwesNoMoreThanItCanCount) {
  TokenBucket bucket(3, 1'000'000'000, kNow);
  for (int i = 0; i < 4; ++i) bucket.Spend(~uint64_t{0}, kNow);
  EXPECT_EQ(bucket.Left(kNow), 0u);
  EXPECT_EQ(bucket.Left(kNow + (uint64_t{1} << 62) + 4), 3u);
}

TEST(TokenBucket, AClockThatWasReadEarlierGetsNothing) {
  TokenBucket bucket(3, 10, kNow + kSecond);
  bucket.Spend(3, kNow + kSecond);
  EXPECT_EQ(bucket.Left(kNow), 0u);
}

}  // namespace
}  // namespace sluice::session
