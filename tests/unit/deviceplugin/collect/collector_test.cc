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
  std::string Make(const std::string& device, uint64_t created_ns) {
    return store_->Make({"", "GPU-a", 1, created_ns, {device}})->id;
  }
  const testing::TempFolder temp_;
  const std::string root_ = temp_.path();
  std::optional<GrantStore> store_;
};

TEST_F(CollectorTest, RemovesWhatNobodyHas) {
  const std::string kept = Make("x-0", 1);
  const std::string gone = Make("x-1", 1);
  const auto owners = [] { return Result<Owners>(Owners{{"default/train/main", {"x-0"}}}); };
  EXPECT_EQ(Collector::Collect(*store_, owners, kHour), 1u);
  ASSERT_EQ(store_->List()->grants.size(), 1u);
  EXPECT_EQ(store_->List()->grants[0].id, kept);
  EXPECT_FALSE(fs::exists(store_->FolderOf(gone)));
}

TEST_F(CollectorTest, RemovesNothingWhereKubeletDoesNotAnswer) {
  Make("x-0", 1);
  const auto owners = [] { return Result<Owners>(Status(StatusCode::kUnavailable, "away")); };
  EXPECT_EQ(Collector::Collect(*store_, owners, kHour), 0u);
  EXPECT_EQ(store_->List()->grants.size(), 1u);
}

TEST_F(CollectorTest, AGrantThatIsMadeWhileKubeletAnswersIsNotJudged) {
  Make("x-0", 1);
  const auto owners = [this] {
    Make("x-9", 1);
    return Result<Owners>(Owners{{"default/train/main", {"x-0"}}});
  };
  EXPECT_EQ(Collector::Collect(*store_, owners, kHour), 0u);
  EXPECT_EQ(store_->List()->grants.size(), 2u);
}

TEST_F(CollectorTest, LooksAtOnceAndEndsWhenItIsTold) {
  Make("x-0", 1);
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
  EXPECT_TRUE(store_->List()->grants.empty());
}

}  // namespace
}  // namespace sluice::deviceplugin
