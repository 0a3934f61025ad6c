// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/folder_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

class FolderWatchTest : public ::testing::Test {
 protected:
  static bool Readable(const FolderWatch& watch) {
    pollfd event = {watch.fd(), POLLIN, 0};
    return ::poll(&event, 1, 0) == 1;
  }
  const testing::TempFolder temp_;
  const std::string folder_ = temp_.path();
};

TEST_F(FolderWatchTest, TellsWhatComesAndGoesInOrder) {
  Result<FolderWatch> watch = FolderWatch::Open(folder_);
  ASSERT_TRUE(watch.ok());
  EXPECT_FALSE(Readable(*watch));
  std::ofstream(folder_ + "/a") << "text";
  fs::remove(folder_ + "/a");
  std::ofstream(folder_ + "/b");
  fs::rename(folder_ + "/b", folder_ + "/c");
  EXPECT_TRUE(Readable(*watch));
  const auto events = watch->Read();
  std::string said;
  for (const auto& event : events.list) said += (event.there ? "+" : "-") + event.name + " ";
  EXPECT_EQ(said, "+a -a +b -b +c ");
  EXPECT_FALSE(events.missed || events.folder_gone);
  EXPECT_TRUE(watch->Read().list.empty());
}

TEST_F(FolderWatchTest, TellsThatTheFolderIsGone) {
  Result<FolderWatch> watch = FolderWatch::Open(folder_);
  ASSERT_TRUE(watch.ok());
  fs::remove_all(folder_);
  EXPECT_TRUE(watch->Read().folder_gone);
}

TEST_F(FolderWatchTest, NamesTheFolderThatItCannotWatch) {
  const Result<FolderWatch> none = FolderWatch::Open(folder_ + "/none");
  EXPECT_NE(none.status().message().find(folder_ + "/none"), std::string::npos);
  std::ofstream(folder_ + "/file") << "text";
  EXPECT_FALSE(FolderWatch::Open(folder_ + "/file").ok());
}

}  // namespace
}  // namespace sluice
