// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/outside/outside.h"

#include <gtest/gtest.h>

#include <random>

#include "common/bytes.h"

namespace sluice::scheduler {
namespace {

TEST(Outside, ChargesUpToTheReserveAndNamesWhoHasIt) {
  OutsideAccount account(10 * kMiB);
  EXPECT_TRUE(account.Charge(1, "job 1 'a'", 1, 6 * kMiB).ok());
  const Status refused = account.Charge(2, "job 2 'b'", 2, 5 * kMiB);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("job 2 'b' asks for 5.0 MiB outside the pool, where 4.0 MiB of "
                                   "10.0 MiB are left (job 1 'a' has 6.0 MiB)"),
            std::string::npos)
      << refused.message();
  EXPECT_EQ(account.charged(), 6 * kMiB);
  EXPECT_EQ(account.charged(2), 0u);
  EXPECT_TRUE(account.Charge(2, "job 2 'b'", 2, 4 * kMiB).ok());
}

TEST(Outside, AHugeChargeDoesNotWrapAround) {
  OutsideAccount account(10);
  ASSERT_TRUE(account.Charge(1, "a", 1, 8).ok());
  EXPECT_FALSE(account.Charge(1, "a", 1, UINT64_MAX - 4).ok());
  EXPECT_EQ(account.charged(), 8u);
}

TEST(Outside, FamiliesAreKeptApart) {
  OutsideAccount account(100);
  ASSERT_TRUE(account.Charge(1, "a", 1, 30).ok());
  ASSERT_TRUE(account.Charge(1, "a", 2, 20).ok());
  EXPECT_FALSE(account.Uncharge(1, 2, 21).ok());
  EXPECT_TRUE(account.Uncharge(1, 2, 20).ok());
  EXPECT_EQ(account.charged(1, 1), 30u);
  EXPECT_EQ(account.charged(1, 2), 0u);
  EXPECT_FALSE(account.Uncharge(7, 1, 1).ok());
  EXPECT_TRUE(account.Uncharge(7, 1, 0).ok());
}

TEST(Outside, WhoIsGoneHasNothing) {
  OutsideAccount account(100);
  ASSERT_TRUE(account.Charge(1, "a", 1, 60).ok());
  ASSERT_TRUE(account.Charge(2, "b", 1, 40).ok());
  account.Remove(1);
  EXPECT_EQ(account.charged(), 40u);
  EXPECT_TRUE(account.families(1).empty());
}

TEST(Outside, AnySequenceAddsUpAndStaysInTheReserve) {
  constexpr uint64_t kReserve = 1000;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    OutsideAccount account(kReserve);
    std::map<std::pair<JobId, uint32_t>, uint64_t> truth;
    uint64_t sum = 0;
    for (int step = 0; step < 400; ++step) {
      const auto job = static_cast<JobId>(1 + random() % 4);
      const auto family = static_cast<uint32_t>(1 + random() % 3);
      const uint64_t bytes = random() % 200;
      uint64_t& has = truth[{job, family}];
      if (random() % 2 == 0) {
        const bool ok = account.Charge(job, "job", family, bytes).ok();
        ASSERT_EQ(ok, sum + bytes <= kReserve);
        if (ok) has += bytes, sum += bytes;
      } else {
        const bool ok = account.Uncharge(job, family, bytes).ok();
        ASSERT_EQ(ok, bytes <= has);
        if (ok) has -= bytes, sum -= bytes;
      }
      ASSERT_EQ(account.charged(job, family), has);
      ASSERT_EQ(account.charged(), sum);
    }
  }
}

}  // namespace
}  // namespace sluice::scheduler
