// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/open_releases.h"

#include <gtest/gtest.h>

#include <memory>

namespace sluice::test {
namespace {

class OpenReleasesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(open_->Init(64)); }
  void TearDown() override { open_->FreeMemory(); }
  void Add(std::vector<protocol::Extent> extents, std::vector<protocol::FenceTerm> fence) {
    UnitRelease release{};
    for (const auto& extent : extents) release.extent[release.extents++] = extent;
    for (const auto& term : fence) release.fence[release.terms++] = term;
    open_->Add(release);
  }
  bool IsOpen(uint32_t unit) { return open_->IsOpen(unit, *marks_); }
  std::vector<std::pair<uint32_t, uint64_t>> Fence() {
    std::vector<protocol::FenceTerm> terms(protocol::kStreamSlots);
    terms.resize(open_->Fence(*marks_, terms.data()));
    std::vector<std::pair<uint32_t, uint64_t>> fence;
    for (const auto& term : terms) fence.emplace_back(term.slot, term.value);
    return fence;
  }

  std::unique_ptr<OpenReleases> open_ = std::make_unique<OpenReleases>();
  std::unique_ptr<protocol::MarkPage> marks_ = std::make_unique<protocol::MarkPage>();
};

using Terms = std::vector<std::pair<uint32_t, uint64_t>>;

TEST_F(OpenReleasesTest, AUnitIsOpenUntilEveryTermIsReached) {
  Add({{3, 2}}, {{0, 0, 5}, {7, 0, 2}});
  EXPECT_TRUE(IsOpen(3) && IsOpen(4));
  EXPECT_FALSE(IsOpen(2) || IsOpen(5));
  marks_->mark[0] = 5;
  EXPECT_TRUE(IsOpen(3));
  marks_->mark[7] = 2;
  EXPECT_FALSE(IsOpen(3) || IsOpen(4));
  EXPECT_TRUE(Fence().empty());
}

TEST_F(OpenReleasesTest, WhatWasDoneWhenItWasReleasedIsNotOpen) {
  Add({{3, 1}}, {{0, 0, 5}});
  Add({{3, 1}}, {});
  EXPECT_FALSE(IsOpen(3));
}

// Had it been reached, the unit might be another job's by now.
TEST_F(OpenReleasesTest, EachUnitWaitsForItsOwnReleaseOnly) {
  Add({{1, 1}}, {{0, 0, 1}});
  Add({{2, 1}}, {{0, 0, 9}});
  marks_->mark[0] = 1;
  EXPECT_FALSE(IsOpen(1));
  EXPECT_TRUE(IsOpen(2));
}

TEST_F(OpenReleasesTest, TheFenceCoversEveryOpenRelease) {
  Add({{1, 1}}, {{0, 0, 4}, {2, 0, 1}});
  Add({{2, 1}}, {{0, 0, 3}});
  Add({{3, 1}}, {{5, 0, 1}});
  marks_->mark[5] = 1;
  EXPECT_EQ(Fence(), (Terms{{0, 4}, {2, 1}}));
}

TEST_F(OpenReleasesTest, MarksWrapAround) {
  marks_->mark[0] = ~uint64_t{0};
  Add({{1, 1}}, {{0, 0, 1}});
  Add({{2, 1}}, {{0, 0, ~uint64_t{0}}});
  EXPECT_TRUE(IsOpen(1));
  EXPECT_FALSE(IsOpen(2));
  marks_->mark[0] = 1;
  EXPECT_FALSE(IsOpen(1));
}

// Its place among the fences is another release's by now.
TEST_F(OpenReleasesTest, AUnitOfLongAgoWaitsForNobodyElse) {
  Add({{7, 1}}, {{0, 0, 1}});
  marks_->mark[0] = 1;
  for (uint32_t i = 0; i < OpenReleases::kMost; ++i) Add({{8, 1}}, {{0, 0, i + 2}});
  EXPECT_TRUE(IsOpen(8));
  EXPECT_FALSE(IsOpen(7));
}

TEST_F(OpenReleasesTest, ThereIsRoomForSoManyOpenFences) {
  for (uint32_t i = 0; i < OpenReleases::kMost; ++i) {
    ASSERT_TRUE(open_->HasRoom(*marks_)) << i;
    Add({{i % 64, 1}}, {{0, 0, i + 1}});
  }
  EXPECT_FALSE(open_->HasRoom(*marks_));
  EXPECT_TRUE(IsOpen(63));
  marks_->mark[0] = 1;
  EXPECT_TRUE(open_->HasRoom(*marks_)) << "the oldest is done";
  Add({{5, 1}}, {{0, 0, 1000}});
  EXPECT_EQ(Fence(), (Terms{{0, 1000}}));
}

}  // namespace
}  // namespace sluice::test
