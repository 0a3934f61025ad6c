// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/hosttier/host_tier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/support/fake_gpu.h"

namespace sluice::hosttier {
namespace {

using Place = HostTier::Place;

constexpr uint64_t kUnit = 64;
constexpr uint64_t kPoolUnits = 64;
const Status kBroken(StatusCode::kInternal, "the GPU is ill");

class HostTierTest : public ::testing::Test {
 protected:
  HostTierTest() {
    for (size_t i = 0; i < device_.pool.size(); ++i) {
      device_.pool[i] = static_cast<std::byte>(i * 131 / 7);
    }
    device_.holds_copies = true;
  }
  void TearDown() override {
    tier_.reset();
    EXPECT_EQ(device_.host_bytes(), 0u) << "host memory that nobody frees";
    EXPECT_EQ(device_.under_way(), 0u);
    EXPECT_EQ(device_.violations(), 0);
  }
  void Scribble(const Extents& extents) {
    for (const scheduler::Extent& extent : extents) {
      std::fill_n(device_.pool.begin() + static_cast<std::ptrdiff_t>(extent.offset * kUnit),
                  extent.length * kUnit, std::byte{0xee});
    }
  }
  /// Ends the copy that is under way, and what Poll says of it.
  HostTier::Finished End(const Status& status = {}) {
    device_.EndOldest(status);
    const std::vector<HostTier::Finished> finished = tier_->Poll();
    EXPECT_EQ(finished.size(), 1u);
    return finished.empty() ? HostTier::Finished() : finished.front();
  }
  void Away(JobId job, const Extents& extents) {
    ASSERT_TRUE(tier_->Evict(job, extents).ok());
    ASSERT_TRUE(End().status.ok());
    ASSERT_EQ(tier_->Where(job), Place::kAway);
  }

  testing::FakeGpu device_{kPoolUnits * kUnit};
  std::optional<HostTier> tier_{std::in_place, &device_, kUnit, 20 * kUnit};
};

TEST_F(HostTierTest, SaysWhatItCopiesByItsOwnList) {
  const Extents extents = {{0, 3}, {10, 1}};
  EXPECT_TRUE(tier_->Copied(7).empty());
  ASSERT_TRUE(tier_->Evict(7, extents).ok());
  EXPECT_EQ(tier_->Copied(7), extents);
  End();
  EXPECT_EQ(tier_->Copied(7), extents);
  ASSERT_TRUE(tier_->Restore(7).ok());
  EXPECT_EQ(tier_->Copied(7), extents);
  End(kBroken);
  EXPECT_EQ(tier_->Copied(7), extents) << "it may be tried again";
  ASSERT_TRUE(tier_->Restore(7).ok());
  End();
  EXPECT_EQ(tier_->Where(7), Place::kNone);
  EXPECT_EQ(tier_->Copied(7), extents) << "whoever is told of its end may ask for what";
  EXPECT_TRUE(tier_->Poll().empty());
  EXPECT_TRUE(tier_->Copied(7).empty());

  Away(7, {{4, 2}});
  tier_->Forget(7);
  EXPECT_TRUE(tier_->Copied(7).empty());
  Away(7, {{4, 2}});
  ASSERT_TRUE(tier_->Restore(7).ok());
  End();
  tier_->Forget(7);
  EXPECT_TRUE(tier_->Copied(7).empty()) << "it is gone";
  ASSERT_TRUE(tier_->Evict(8, extents).ok());
  End(kBroken);
  EXPECT_TRUE(tier_->Copied(8).empty()) << "nothing of it is here";
}

TEST_F(HostTierTest, BringsEveryByteBackToWhereItWas) {
  const std::vector<std::byte> before = device_.pool;
  const Extents extents = {{0, 3}, {10, 1}, {40, 14}};
  ASSERT_TRUE(tier_->Evict(7, extents).ok());
  EXPECT_EQ(tier_->Where(7), Place::kLeaving);
  EXPECT_TRUE(tier_->busy());
  EXPECT_TRUE(tier_->Poll().empty()) << "the copy has not ended";
  const HostTier::Finished left = End();
  EXPECT_EQ(left.job, 7u);
  EXPECT_EQ(left.was, Place::kLeaving);
  EXPECT_TRUE(left.status.ok());
  EXPECT_FALSE(tier_->busy());
  EXPECT_EQ(tier_->used_bytes(), 18 * kUnit);

  Scribble(extents);
  ASSERT_TRUE(tier_->Restore(7).ok());
  EXPECT_EQ(tier_->Where(7), Place::kReturning);
  EXPECT_TRUE(tier_->busy());
  const HostTier::Finished back = End();
  EXPECT_EQ(back.was, Place::kReturning);
  EXPECT_TRUE(back.status.ok());
  EXPECT_EQ(device_.pool, before);
  EXPECT_EQ(tier_->Where(7), Place::kNone);
  EXPECT_EQ(tier_->used_bytes(), 0u);
  EXPECT_TRUE(tier_->Poll().empty()) << "each end is told once";
}

// Pieces are larger than units there, and extents end in the middle of them.
TEST_F(HostTierTest, ExtentsAndPiecesNeedNotFitEachOther) {
  tier_.emplace(&device_, kUnit, 64 * 3 * kUnit);
  const std::vector<std::byte> before = device_.pool;
  const Extents extents = {{1, 1}, {3, 4}, {9, 2}, {20, 13}};
  Away(1, extents);
  EXPECT_EQ(tier_->used_bytes(), 21 * kUnit) << "20 units in pieces of three";
  Scribble(extents);
  ASSERT_TRUE(tier_->Restore(1).ok());
  EXPECT_TRUE(End().status.ok());
  EXPECT_EQ(device_.pool, before);
}

TEST_F(HostTierTest, WhoDoesNotFitIsRefusedWithTheNumbers) {
  Away(1, {{0, 12}});
  EXPECT_TRUE(tier_->HasRoom(8 * kUnit));
  EXPECT_FALSE(tier_->HasRoom(8 * kUnit + 1));
  const Status status = tier_->Evict(2, {{20, 9}});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "job 2: 576 B have no room in host memory: 768 B of 1.2 KiB used");
  EXPECT_EQ(tier_->Where(2), Place::kNone);
  EXPECT_EQ(tier_->used_bytes(), 12 * kUnit);
  EXPECT_TRUE(tier_->Evict(2, {{20, 8}}).ok());
}

TEST_F(HostTierTest, WithoutCapacityThereIsNone) {
  tier_.emplace(&device_, kUnit, 0);
  EXPECT_EQ(tier_->capacity_bytes(), 0u);
  EXPECT_FALSE(tier_->HasRoom(1));
  EXPECT_EQ(tier_->Evict(1, {{0, 1}}).code(), StatusCode::kResourceExhausted);
}

TEST_F(HostTierTest, RefusesWhatIsOutOfTurn) {
  EXPECT_EQ(tier_->Restore(1).code(), StatusCode::kNotFound);
  ASSERT_TRUE(tier_->Evict(1, {{0, 2}}).ok());
  EXPECT_EQ(tier_->Evict(1, {{4, 2}}).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(tier_->Restore(1).code(), StatusCode::kFailedPrecondition);
  End();
  EXPECT_EQ(tier_->Evict(1, {{4, 2}}).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(tier_->Restore(1).ok());
  EXPECT_EQ(tier_->Restore(1).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(tier_->Evict(1, {{4, 2}}).code(), StatusCode::kFailedPrecondition);
}

TEST_F(HostTierTest, RefusesExtentsThatAreNone) {
  for (const Extents& extents :
       {Extents{}, Extents{{3, 0}}, Extents{{4, 2}, {0, 2}}, Extents{{0, 3}, {2, 2}}}) {
    EXPECT_EQ(tier_->Evict(1, extents).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(device_.allocations, 0);
}

TEST_F(HostTierTest, AMachineWithoutMemoryLeavesNothingBehind) {
  device_.host_memory = 5 * kUnit;
  EXPECT_EQ(tier_->Evict(1, {{0, 6}}).code(), StatusCode::kResourceExhausted);
  EXPECT_GT(device_.allocations, 0);
  EXPECT_EQ(device_.host_bytes(), 0u) << "what it got before the failure";
  EXPECT_EQ(tier_->used_bytes(), 0u);
  EXPECT_FALSE(tier_->busy());
  EXPECT_TRUE(tier_->Evict(1, {{0, 5}}).ok());
}

TEST_F(HostTierTest, ACopyOutThatDoesNotStartLeavesNothingBehind) {
  device_.next_start = kBroken;
  const Status status = tier_->Evict(1, {{0, 6}});
  EXPECT_EQ(status.message(), "job 1: the GPU is ill");
  EXPECT_EQ(tier_->Where(1), Place::kNone);
  EXPECT_EQ(tier_->used_bytes(), 0u);
  EXPECT_FALSE(tier_->busy());
}

TEST_F(HostTierTest, AfterAFailedCopyOutTheBytesAreGoodWhereTheyAre) {
  const std::vector<std::byte> before = device_.pool;
  ASSERT_TRUE(tier_->Evict(1, {{0, 6}}).ok());
  const HostTier::Finished failed = End(kBroken);
  EXPECT_EQ(failed.was, Place::kLeaving);
  EXPECT_EQ(failed.status.message(), "job 1: the GPU is ill");
  EXPECT_EQ(device_.pool, before);
  EXPECT_EQ(tier_->Where(1), Place::kNone);
  EXPECT_EQ(tier_->used_bytes(), 0u);
  EXPECT_FALSE(tier_->busy());
}

TEST_F(HostTierTest, AFailedCopyBackMayBeTriedAgain) {
  const std::vector<std::byte> before = device_.pool;
  Away(1, {{0, 6}});
  Scribble({{0, 6}});
  device_.next_start = kBroken;
  EXPECT_EQ(tier_->Restore(1).message(), "job 1: the GPU is ill");
  EXPECT_EQ(tier_->Where(1), Place::kAway);
  ASSERT_TRUE(tier_->Restore(1).ok());
  const HostTier::Finished failed = End(kBroken);
  EXPECT_EQ(failed.was, Place::kReturning);
  EXPECT_FALSE(failed.status.ok());
  EXPECT_EQ(tier_->Where(1), Place::kAway);
  EXPECT_NE(device_.pool, before);
  ASSERT_TRUE(tier_->Restore(1).ok());
  EXPECT_TRUE(End().status.ok());
  EXPECT_EQ(device_.pool, before);
}

TEST_F(HostTierTest, ForgettingWaitsForTheCopyThatIsUnderWay) {
  ASSERT_TRUE(tier_->Evict(1, {{0, 6}}).ok());
  tier_->Forget(1);
  EXPECT_EQ(device_.under_way(), 0u);
  EXPECT_EQ(tier_->Where(1), Place::kNone);
  EXPECT_FALSE(tier_->busy());

  Away(2, {{0, 6}});
  ASSERT_TRUE(tier_->Restore(2).ok());
  tier_->Forget(2);
  EXPECT_EQ(device_.under_way(), 0u) << "it would write to somebody else's units";
  const std::vector<std::byte> others = device_.pool;
  EXPECT_TRUE(tier_->Poll().empty()) << "nobody is there to be told";
  EXPECT_EQ(device_.pool, others);
  EXPECT_EQ(tier_->used_bytes(), 0u);
}

TEST_F(HostTierTest, ForgettingWhoIsAwayWaitsForNobody) {
  Away(1, {{0, 6}});
  ASSERT_TRUE(tier_->Evict(2, {{10, 6}}).ok());
  tier_->Forget(1);
  tier_->Forget(3);
  EXPECT_EQ(device_.under_way(), 1u);
  EXPECT_EQ(tier_->used_bytes(), 6 * kUnit);
  EXPECT_EQ(tier_->Where(2), Place::kLeaving);
}

TEST_F(HostTierTest, ItsEndWaitsForCopiesUnderWay) {
  ASSERT_TRUE(tier_->Evict(1, {{0, 6}}).ok());
  ASSERT_TRUE(tier_->Evict(2, {{10, 6}}).ok());
  tier_.reset();
  EXPECT_EQ(device_.under_way(), 0u);
}

TEST_F(HostTierTest, TheNextJobGetsThePiecesOfTheLast) {
  Away(1, {{0, 6}});
  const int allocations = device_.allocations;
  tier_->Forget(1);
  Away(2, {{10, 6}});
  EXPECT_EQ(device_.allocations, allocations);
}

TEST_F(HostTierTest, TheMachineGetsWhatIsKeptAMinuteAfterTheLastMove) {
  constexpr uint64_t kStart = 5'000'000'000'000;
  constexpr uint64_t kKept = HostTier::kKeptNs;
  EXPECT_EQ(tier_->frees_at_ns(), std::nullopt) << "nothing was ever moved";
  ASSERT_NO_FATAL_FAILURE(Away(1, {{0, 3}}));
  ASSERT_TRUE(tier_->Restore(1).ok());
  tier_->FreeWhatIsKept(kStart - kKept);
  EXPECT_EQ(tier_->frees_at_ns(), std::nullopt) << "a copy is under way";
  ASSERT_TRUE(End().status.ok());
  EXPECT_EQ(tier_->frees_at_ns(), 0u) << "when that was is to be noted";
  tier_->FreeWhatIsKept(kStart);
  EXPECT_EQ(tier_->frees_at_ns(), kStart + kKept);
  tier_->FreeWhatIsKept(kStart + kKept - 1);
  EXPECT_EQ(device_.host_bytes(), 3 * kUnit) << "the next job that moves has it at once";
  // One at a time: others are served in between.
  for (uint64_t left = 3; left > 0; --left) {
    EXPECT_EQ(device_.host_bytes(), left * kUnit);
    ASSERT_EQ(tier_->frees_at_ns(), kStart + kKept);
    tier_->FreeWhatIsKept(kStart + kKept);
  }
  EXPECT_EQ(device_.host_bytes(), 0u);
  EXPECT_EQ(tier_->frees_at_ns(), std::nullopt);
  ASSERT_NO_FATAL_FAILURE(Away(1, {{0, 3}}));
}

TEST_F(HostTierTest, EachMoveIsTheLastOne) {
  ASSERT_NO_FATAL_FAILURE(Away(1, {{0, 3}}));
  ASSERT_NO_FATAL_FAILURE(Away(2, {{10, 2}}));
  tier_->Forget(2);
  tier_->FreeWhatIsKept(1'000);
  ASSERT_TRUE(tier_->Restore(1).ok());
  ASSERT_FALSE(End(kBroken).status.ok());
  tier_->FreeWhatIsKept(2'000);
  EXPECT_EQ(tier_->frees_at_ns(), 2'000 + HostTier::kKeptNs);
  tier_->FreeWhatIsKept(1'000 + HostTier::kKeptNs);
  EXPECT_EQ(device_.host_bytes(), 5 * kUnit);
}

TEST_F(HostTierTest, WhoIsAwayKeepsItsOwnForEver) {
  const std::vector<std::byte> before = device_.pool;
  const Extents extents = {{0, 3}, {10, 5}};
  ASSERT_NO_FATAL_FAILURE(Away(1, extents));
  ASSERT_NO_FATAL_FAILURE(Away(2, {{20, 2}}));
  tier_->Forget(2);
  Scribble(extents);
  for (uint64_t now = 1; now < 20; ++now) tier_->FreeWhatIsKept(now * HostTier::kKeptNs);
  EXPECT_EQ(device_.host_bytes(), 8 * kUnit) << "of the one that is away alone";
  ASSERT_TRUE(tier_->Restore(1).ok());
  // Under way for longer than anything is kept.
  for (uint64_t now = 20; now < 40; ++now) tier_->FreeWhatIsKept(now * HostTier::kKeptNs);
  ASSERT_TRUE(End().status.ok());
  EXPECT_EQ(device_.pool, before);
}

}  // namespace
}  // namespace sluice::hosttier
