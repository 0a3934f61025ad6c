// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/supervisor/signs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_folder.h"

namespace sluice::supervisor {
namespace {

TEST(Signs, AFolderWithoutASupervisorShowsNothing) {
  const testing::TempFolder folder;
  EXPECT_EQ(Signs::CheckAlive(folder.path()).message(),
            folder.path() + ": no sluice-node was started here");
  EXPECT_FALSE(Signs::CheckReady(folder.path()).ok());
}

TEST(Signs, ReadyIsWhatWasSaidLast) {
  const testing::TempFolder folder;
  auto signs = Signs::Begin(folder / "deep/down");
  ASSERT_TRUE(signs.ok()) << signs.status().message();
  EXPECT_TRUE(Signs::CheckAlive(folder / "deep/down").ok());
  EXPECT_EQ(Signs::CheckReady(folder / "deep/down").message(),
            folder / "deep/down: not every daemon serves");
  signs->SetReady(true);
  EXPECT_TRUE(Signs::CheckReady(folder / "deep/down").ok());
  signs->SetReady(false);
  EXPECT_FALSE(Signs::CheckReady(folder / "deep/down").ok());
}

TEST(Signs, AnEarlierOnesAreGone) {
  const testing::TempFolder folder;
  { Signs::Begin(folder.path())->SetReady(true); }
  EXPECT_TRUE(Signs::Begin(folder.path()).ok());
  EXPECT_FALSE(Signs::CheckReady(folder.path()).ok());
}

TEST(Signs, WhoDoesNotTurnIsNotAlive) {
  const testing::TempFolder folder;
  auto signs = Signs::Begin(folder.path());
  ASSERT_TRUE(signs.ok());
  signs->SetReady(true);
  timespec long_ago[2] = {};
  ::clock_gettime(CLOCK_REALTIME, &long_ago[0]);
  long_ago[0].tv_sec -= Signs::kStillS + 5;
  long_ago[1] = long_ago[0];
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder / "beat").c_str(), long_ago, 0), 0);
  EXPECT_FALSE(Signs::CheckAlive(folder.path()).ok());
  EXPECT_FALSE(Signs::CheckReady(folder.path()).ok());
  signs->Beat();
  EXPECT_TRUE(Signs::CheckReady(folder.path()).ok());
}

}  // namespace
}  // namespace sluice::supervisor
