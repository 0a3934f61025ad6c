// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/inventory/foreign_watch.h"

#include <gtest/gtest.h>

namespace sluice::deviceplugin {
namespace {

constexpr int kNeverS = 3600;

class ForeignWatchTest : public ::testing::Test {
 protected:
  ForeignWatch Watch(int every_s = kNeverS) {
    return ForeignWatch(
        {"GPU-a", "GPU-b"}, [this] { return Seen(); },
        [this](const std::string& uuid) { return uuid == in_mig_mode_; },
        [this](size_t gpu, const std::string& manager) {
          const std::lock_guard lock(mutex_);
          told_.emplace_back(gpu, manager);
          changed_.notify_all();
        },
        every_s);
  }
  Result<ForeignView> Seen() {
    const std::lock_guard lock(mutex_);
    if (away_) return Status(StatusCode::kUnavailable, "kubelet is away");
    return view_;
  }

  using Told = std::vector<std::pair<size_t, std::string>>;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool away_ = false;
  std::string in_mig_mode_;
  ForeignView view_;
  Told told_;
};

TEST_F(ForeignWatchTest, TheFirstLookComesBeforeAnythingElse) {
  view_.devices = {{"nvidia.com/gpu", "GPU-b", ""}};
  const ForeignWatch watch = Watch();
  EXPECT_EQ(told_, (Told{{1, "nvidia.com/gpu offers it"}}));
}

TEST_F(ForeignWatchTest, WhileKubeletIsAwayTheLastWordStands) {
  view_.devices = {{"nvidia.com/gpu", "GPU-b", ""}};
  ForeignWatch watch = Watch();
  away_ = true;
  for (unsigned i = 0; i <= ForeignBook::kLooksToComeBack; ++i) watch.LookOnce();
  EXPECT_EQ(told_.size(), 1u);
  away_ = false;
  view_ = {};
  for (unsigned i = 1; i < ForeignBook::kLooksToComeBack; ++i) watch.LookOnce();
  EXPECT_EQ(told_.size(), 1u);
  watch.LookOnce();
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_.back(), (std::pair<size_t, std::string>(1, "")));
}

TEST_F(ForeignWatchTest, NobodyIsElseBeforeKubeletEverSpoke) {
  away_ = true;
  const ForeignWatch watch = Watch();
  EXPECT_TRUE(told_.empty());
}

TEST_F(ForeignWatchTest, MigModeIsSeenWithoutKubeletAndGoesBeforeAManager) {
  away_ = true;
  in_mig_mode_ = "GPU-a";
  ForeignWatch watch = Watch();
  EXPECT_EQ(told_, (Told{{0, std::string(kInMigMode)}}));
  away_ = false;
  view_.devices = {{"nvidia.com/gpu", "GPU-a", ""}};
  watch.LookOnce();
  EXPECT_EQ(told_.size(), 1u);
  in_mig_mode_ = "";
  watch.LookOnce();
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_.back().second, "nvidia.com/gpu offers it");
  view_ = {};
  for (unsigned i = 0; i < ForeignBook::kLooksToComeBack; ++i) watch.LookOnce();
  EXPECT_EQ(told_.back().second, "");
  // The GPU itself says so; there is nothing to wait for.
  in_mig_mode_ = "GPU-a";
  watch.LookOnce();
  in_mig_mode_ = "";
  watch.LookOnce();
  EXPECT_EQ(told_.back().second, "");
  EXPECT_EQ(told_.size(), 5u);
}

TEST_F(ForeignWatchTest, ItLooksAgainByItself) {
  const ForeignWatch watch = Watch(1);
  std::unique_lock lock(mutex_);
  view_.devices = {{"nvidia.com/gpu", "GPU-a", "x/y/z"}};
  ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [this] { return !told_.empty(); }));
  EXPECT_EQ(told_.back(), (std::pair<size_t, std::string>(0, "nvidia.com/gpu gave it to x/y/z")));
}

}  // namespace
}  // namespace sluice::deviceplugin
