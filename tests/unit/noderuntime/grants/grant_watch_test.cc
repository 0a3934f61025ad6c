// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/grants/grant_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace sluice::grants {
namespace {

namespace fs = std::filesystem;

class GrantWatchTest : public ::testing::Test {
 protected:
  GrantWatch Watch() {
    Result<GrantWatch> watch = GrantWatch::Open(root_, "GPU-a");
    EXPECT_TRUE(watch.ok()) << watch.status().message();
    return std::move(*watch);
  }
  GrantRecord Make(const std::string& gpu) {
    const Result<GrantRecord> made = GrantStore::Open(root_)->Make({"", gpu, 4096, 1, {"a-0"}});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *made;
  }
  static bool Readable(const GrantWatch& watch) {
    pollfd event = {watch.fd(), POLLIN, 0};
    return ::poll(&event, 1, 0) == 1;
  }
  const testing::TempFolder temp_;
  const std::string root_ = temp_.path();
};

TEST_F(GrantWatchTest, TellsOfThoseThatWereThereBefore) {
  const GrantRecord grant = Make("GPU-a");
  GrantWatch watch = Watch();
  const auto changes = watch.Read();
  ASSERT_EQ(changes.added.size(), 1u);
  EXPECT_EQ(changes.added[0], grant);
  EXPECT_EQ(watch.SocketOf(grant.id), root_ + "/a/" + grant.id + "/sluice.sock");
  EXPECT_TRUE(watch.Read().added.empty()) << "once";
}

TEST_F(GrantWatchTest, FollowsWhatComesAndGoes) {
  GrantWatch watch = Watch();
  EXPECT_FALSE(Readable(watch));
  const GrantRecord grant = Make("GPU-a");
  ASSERT_TRUE(Readable(watch));
  EXPECT_EQ(watch.Read().added.size(), 1u);
  EXPECT_FALSE(Readable(watch));
  ASSERT_TRUE(GrantStore::Open(root_)->Remove(grant.id).ok());
  ASSERT_TRUE(Readable(watch));
  const auto changes = watch.Read();
  EXPECT_EQ(changes.removed, std::vector<std::string>{grant.id});
  EXPECT_TRUE(changes.added.empty());
}

TEST_F(GrantWatchTest, OtherGpusAreNotItsBusiness) {
  GrantWatch watch = Watch();
  const GrantRecord other = Make("GPU-b");
  EXPECT_TRUE(watch.Read().added.empty());
  ASSERT_TRUE(GrantStore::Open(root_)->Remove(other.id).ok());
  EXPECT_TRUE(watch.Read().removed.empty());
}

TEST_F(GrantWatchTest, ABrokenRecordIsSaidOnceAndIsNoGrant) {
  GrantWatch watch = Watch();
  const GrantRecord good = Make("GPU-a");
  std::ofstream(root_ + "/g/" + std::string(32, 'f')) << "nonsense\n";
  const auto changes = watch.Read();
  ASSERT_EQ(changes.added.size(), 1u);
  EXPECT_EQ(changes.added[0], good);
  ASSERT_EQ(changes.errors.size(), 1u);
  EXPECT_NE(changes.errors[0].find("line 1"), std::string::npos);
  EXPECT_TRUE(watch.Read().errors.empty());
}

TEST_F(GrantWatchTest, AFolderThatCannotBeReadTakesNothingBack) {
  GrantWatch watch = Watch();
  Make("GPU-a");
  EXPECT_EQ(watch.Read().added.size(), 1u);
  fs::rename(root_ + "/g", root_ + "/elsewhere");
  const auto changes = watch.Read();
  EXPECT_EQ(changes.errors.size(), 1u);
  EXPECT_TRUE(changes.removed.empty());
}

}  // namespace
}  // namespace sluice::grants
