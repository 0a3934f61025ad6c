// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/hosttier/host_tier.h"

#include <gtest/gtest.h>

#include <random>

#include "common/bytes.h"
#include "tests/unit/noderuntime/support/host_device.h"

namespace sluice::hosttier {
namespace {

using Place = HostTier::Place;

constexpr uint64_t kUnit = 4096;

class HostTierTest : public ::testing::Test {
 protected:
  HostTierTest() { Scribble(1); }
  /// Other bytes everywhere.
  void Scribble(uint32_t seed) {
    std::mt19937 random(seed);
    for (std::byte& byte : device_.pool) byte = static_cast<std::byte>(random());
  }
  void Fill(const Extents& extents, uint8_t value) {
    for (const auto& extent : extents) {
      std::memset(device_.pool.data() + extent.offset * kUnit, value, extent.length * kUnit);
    }
  }
  bool Filled(const Extents& extents, uint8_t value) const {
    for (const auto& extent : extents) {
      for (uint64_t at = extent.offset * kUnit; at < extent.end() * kUnit; ++at) {
        if (device_.pool[at] != static_cast<std::byte>(value)) return false;
      }
    }
    return true;
  }
  /// All copies end; what Poll says of them.
  std::vector<HostTier::Finished> Finish() {
    device_.RunCopies();
    return tier_.Poll();
  }

  testing::HostDevice device_{64 * kUnit};
  HostTier tier_{&device_, kUnit, 16 * kUnit};
};

TEST_F(HostTierTest, BringsEveryByteBackToItsPlace) {
  const Extents extents = {{2, 3}, {9, 1}, {60, 4}};
  const std::vector<std::byte> before = device_.pool;
  ASSERT_TRUE(tier_.Evict(1, extents).ok());
  EXPECT_EQ(tier_.Where(1), Place::kLeaving);
  EXPECT_EQ(tier_.used_bytes(), 8 * kUnit);
  EXPECT_TRUE(tier_.busy());
  EXPECT_TRUE(tier_.Poll().empty()) << "it is under way";
  auto ended = Finish();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].was, Place::kLeaving);
  EXPECT_TRUE(ended[0].status.ok());
  EXPECT_FALSE(tier_.busy());
  Fill(extents, 0xee);  // somebody else has them
  ASSERT_TRUE(tier_.Restore(1).ok());
  ended = Finish();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].was, Place::kReturning);
  EXPECT_EQ(device_.pool, before);
  EXPECT_EQ(tier_.Where(1), Place::kNone);
  EXPECT_EQ(tier_.used_bytes(), 0u);
  EXPECT_EQ(device_.host_blocks(), 0u);
}

TEST_F(HostTierTest, HasRoomForItsCapacityOnly) {
  EXPECT_TRUE(tier_.HasRoom(16 * kUnit));
  EXPECT_FALSE(tier_.HasRoom(16 * kUnit + 1));
  const Status status = tier_.Evict(1, {{0, 17}});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("0 B of 64.0 KiB"), std::string::npos) << status.message();
  ASSERT_TRUE(tier_.Evict(1, {{0, 10}}).ok());
  EXPECT_FALSE(tier_.Evict(2, {{20, 7}}).ok());
  ASSERT_TRUE(tier_.Evict(2, {{20, 6}}).ok());
  EXPECT_EQ(Finish().size(), 2u);
}

TEST_F(HostTierTest, OneSetOfAJobAtATime) {
  ASSERT_TRUE(tier_.Evict(1, {{0, 1}}).ok());
  EXPECT_EQ(tier_.Evict(1, {{4, 1}}).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(tier_.Restore(1).code(), StatusCode::kFailedPrecondition) << "it is still leaving";
  EXPECT_EQ(tier_.Restore(2).code(), StatusCode::kFailedPrecondition);
  Finish();
  ASSERT_TRUE(tier_.Restore(1).ok());
  EXPECT_EQ(tier_.Restore(1).code(), StatusCode::kFailedPrecondition) << "it returns already";
}

TEST_F(HostTierTest, NothingIsLeftOfWhatCouldNotBegin) {
  device_.host_left = 2 * kUnit;
  EXPECT_FALSE(tier_.Evict(1, {{0, 1}, {2, 1}, {4, 1}}).ok());
  EXPECT_EQ(device_.host_blocks(), 0u);
  device_.host_left = ~uint64_t{0};
  device_.refusal = Status(StatusCode::kInternal, "no");
  EXPECT_FALSE(tier_.Evict(1, {{0, 1}}).ok());
  EXPECT_EQ(device_.host_blocks(), 0u);
  EXPECT_EQ(tier_.used_bytes(), 0u);
  EXPECT_EQ(tier_.Where(1), Place::kNone);
  EXPECT_FALSE(tier_.busy());
}

TEST_F(HostTierTest, ACopyOutThatFailsLeavesNothingHere) {
  ASSERT_TRUE(tier_.Evict(1, {{0, 1}}).ok());
  device_.failure = Status(StatusCode::kInternal, "no");
  const auto ended = Finish();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0].status.ok());
  EXPECT_EQ(tier_.Where(1), Place::kNone);
  EXPECT_EQ(device_.host_blocks(), 0u);
}

TEST_F(HostTierTest, ACopyBackThatFailsCanBeTriedAgain) {
  const Extents extents = {{5, 2}};
  Fill(extents, 0x11);
  ASSERT_TRUE(tier_.Evict(1, extents).ok());
  Finish();
  Fill(extents, 0);
  ASSERT_TRUE(tier_.Restore(1).ok());
  device_.failure = Status(StatusCode::kInternal, "no");
  auto ended = Finish();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0].status.ok());
  EXPECT_EQ(tier_.Where(1), Place::kAway);
  device_.failure = Status();
  ASSERT_TRUE(tier_.Restore(1).ok());
  ended = Finish();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_TRUE(ended[0].status.ok());
  EXPECT_TRUE(Filled(extents, 0x11));
}

TEST_F(HostTierTest, ForgetWaitsForWhatIsUnderWay) {
  const Extents extents = {{5, 2}};
  Fill(extents, 0x11);
  ASSERT_TRUE(tier_.Evict(1, extents).ok());
  Finish();
  Fill(extents, 0);
  ASSERT_TRUE(tier_.Restore(1).ok());
  tier_.Forget(1);
  Fill(extents, 0x22);  // the next holder
  EXPECT_TRUE(Finish().empty());
  EXPECT_TRUE(Filled(extents, 0x22)) << "nothing was written behind its back";
  EXPECT_EQ(tier_.used_bytes(), 0u);
  EXPECT_EQ(device_.host_blocks(), 0u);
  EXPECT_FALSE(tier_.busy());
  tier_.Forget(1);
}

TEST_F(HostTierTest, LargeExtentsGoInPieces) {
  const uint64_t unit = 32 * kMiB;
  testing::HostDevice device(6 * unit);
  for (size_t i = 0; i < device.pool.size(); i += 4096) device.pool[i] = std::byte(i >> 20);
  const std::vector<std::byte> before = device.pool;
  HostTier tier(&device, unit, 6 * unit);
  ASSERT_TRUE(tier.Evict(1, {{0, 5}}).ok());
  EXPECT_EQ(device.host_blocks(), 3u);
  device.RunCopies();
  ASSERT_EQ(tier.Poll().size(), 1u);
  std::memset(device.pool.data(), 0, 5 * unit);
  ASSERT_TRUE(tier.Restore(1).ok());
  device.RunCopies();
  ASSERT_EQ(tier.Poll().size(), 1u);
  EXPECT_EQ(device.pool, before);
}

/// Several jobs in any order, beside a model of what each must find.
TEST_F(HostTierTest, WhateverTheOrderEachFindsItsOwnBytes) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    testing::HostDevice device(64 * kUnit);
    HostTier tier(&device, kUnit, 24 * kUnit);
    std::map<JobId, uint8_t> value;  // of what is away
    const auto extents = [](JobId job) { return Extents{{job * 16, 4}, {job * 16 + 8, 6}}; };
    const auto fill = [&](JobId job, uint8_t with) {
      for (const auto& extent : extents(job)) {
        std::memset(device.pool.data() + extent.offset * kUnit, with, extent.length * kUnit);
      }
    };
    const auto first = [&](JobId job) {
      return static_cast<uint8_t>(device.pool[extents(job)[1].offset * kUnit]);
    };
    for (int step = 0; step < 300; ++step) {
      const JobId job = random() % 4;
      switch (random() % 4) {
        case 0: {
          const bool fits = tier.HasRoom(10 * kUnit) && tier.Where(job) == Place::kNone;
          const auto now = static_cast<uint8_t>(1 + random() % 255);
          if (tier.Where(job) == Place::kNone) fill(job, now);
          EXPECT_EQ(tier.Evict(job, extents(job)).ok(), fits);
          if (fits) value[job] = now;
          break;
        }
        case 1: {
          const bool away = tier.Where(job) == Place::kAway;
          if (away) fill(job, 0);
          EXPECT_EQ(tier.Restore(job).ok(), away);
          break;
        }
        case 2:
          if (random() % 4 == 0) tier.Forget(job);
          break;
        default:
          device.RunCopies();
          for (const auto& one : tier.Poll()) {
            ASSERT_TRUE(one.status.ok());
            if (one.was == Place::kReturning) {
              EXPECT_EQ(first(one.job), value[one.job]) << "seed " << seed;
            }
          }
      }
      uint64_t used = 0;
      for (JobId each = 0; each < 4; ++each) {
        used += tier.Where(each) == Place::kNone ? 0 : 10 * kUnit;
      }
      ASSERT_EQ(tier.used_bytes(), used);
      ASSERT_EQ(device.host_blocks(), used / (5 * kUnit));
    }
  }
}

}  // namespace
}  // namespace sluice::hosttier
