// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/collect/collector.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "tests/support/temp_folder.h"

namespace sluice::deviceplugin {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kHour = 3'600'000'000'000;
using Owners = std::vector<pods::Owned>;

class CollectorTest : public ::testing::Test {
 protected:
  void SetUp() override { store_.emplace(std::move(*GrantStore::Open(root_))); }
  std::string Make(const std::string& device, uint64_t created_ns = 1) {
    return store_->Make({"", "GPU-a", 1, created_ns, {device}})->id;
  }
  const testing::TempFolder temp_;
  const std::string root_ = temp_.path();
  std::optional<GrantStore> store_;
  StaleBook book_;
};

TEST_F(CollectorTest, RemovesWhatNobodyHasAnyMore) {
  const std::string kept = Make("x-0");
  const std::string gone = Make("x-1");
  Owners listed = {{"default/train/main", {"x-0"}}, {"default/old/main", {"x-1"}}};
  const auto owners = [&] { return Result<Owners>(listed); };
  EXPECT_EQ(Collector::Collect(*store_, owners, &book_), 0u);
  listed.pop_back();
  size_t removed = 0;
  for (unsigned i = 0; i < StaleBook::kAnswers; ++i) {
    removed += Collector::Collect(*store_, owners, &book_);
  }
  EXPECT_EQ(removed, 1u);
  ASSERT_EQ(store_->List()->grants.size(), 1u);
  EXPECT_EQ(store_->List()->grants[0].id, kept);
  EXPECT_FALSE(fs::exists(store_->FolderOf(gone)));
}

TEST_F(CollectorTest, RemovesNothingWhereKubeletDoesNotAnswerOrHasJustBegun) {
  Make("x-0");
  Result<Owners> answer = Owners{{"default/train/main", {"x-0"}}};
  const auto owners = [&] { return answer; };
  EXPECT_EQ(Collector::Collect(*store_, owners, &book_), 0u);
  for (const Result<Owners>& each :
       {Result<Owners>(Status(StatusCode::kUnavailable, "away")), Result<Owners>(Owners())}) {
    answer = each;
    for (unsigned i = 0; i < 2 * StaleBook::kAnswers; ++i) {
      EXPECT_EQ(Collector::Collect(*store_, owners, &book_), 0u);
    }
  }
  EXPECT_EQ(store_->List()->grants.size(), 1u);
}

TEST_F(CollectorTest, LooksAtOnceAndEndsWhenItIsTold) {
  const std::string old = Make("x-0");
  const std::string young = Make("x-0", kHour);
  std::promise<void> asked;
  bool first = true;
  {
    const Collector collector(
        &*store_,
        [&] {
          if (std::exchange(first, false)) asked.set_value();
          return Result<Owners>(Owners{});
        },
        3600);
    asked.get_future().wait();
  }
  ASSERT_EQ(store_->List()->grants.size(), 1u);
  EXPECT_EQ(store_->List()->grants[0].id, young);
}

}  // namespace
}  // namespace sluice::deviceplugin
