// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/mps/socket_links.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace sluice::mps {
namespace {

namespace fs = std::filesystem;

class SocketLinks : public ::testing::Test {
 protected:
  SocketLinks() {
    fs::create_directory(from_);
    Pipe("control");
  }
  void Pipe(const std::string& name) const {
    ::unlink((from_ + "/" + name).c_str());
    ASSERT_EQ(::mkfifo((from_ + "/" + name).c_str(), 0600), 0);
  }
  static ino_t InodeOf(const std::string& path) {
    struct stat info = {};
    return ::lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
  }
  size_t Count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(to_), {}));
  }

  const testing::TempFolder folder_;
  const std::string from_ = folder_ / "from";
  const std::string to_ = folder_ / "to";
};

TEST_F(SocketLinks, TheFolderHasTheSamePipesAndNothingElse) {
  std::ofstream(from_ + "/text") << "no socket";
  fs::create_directory(from_ + "/folder");
  ASSERT_TRUE(LinkSockets(from_, to_).ok());
  EXPECT_EQ(InodeOf(to_ + "/control"), InodeOf(from_ + "/control"));
  EXPECT_EQ(Count(), 1u);
}

TEST_F(SocketLinks, ItStaysTheSameFolderWhenASocketIsReplaced) {
  ASSERT_TRUE(LinkSockets(from_, to_).ok());
  const ino_t folder = InodeOf(to_);
  Pipe("log");
  fs::rename(from_ + "/log", from_ + "/control");
  ASSERT_NE(InodeOf(to_ + "/control"), InodeOf(from_ + "/control"));
  ASSERT_TRUE(LinkSockets(from_, to_).ok());
  EXPECT_EQ(InodeOf(to_ + "/control"), InodeOf(from_ + "/control"));
  EXPECT_EQ(InodeOf(to_), folder);
  EXPECT_EQ(Count(), 1u);
}

TEST_F(SocketLinks, WhatIsNotThereHasNone) {
  ASSERT_TRUE(LinkSockets(from_, to_).ok());
  ASSERT_TRUE(LinkSockets("", to_).ok());
  EXPECT_EQ(Count(), 0u);
  EXPECT_TRUE(LinkSockets(from_, folder_ / "none/to").code() != StatusCode::kOk);
}

TEST_F(SocketLinks, WhatAContainerPutsThereIsNotFollowed) {
  std::ofstream(folder_ / "precious") << "text";
  fs::create_directory(to_);
  fs::create_symlink(folder_ / "precious", to_ + "/control");
  fs::create_symlink(folder_ / "precious", to_ + "/.sluice-new");
  ASSERT_TRUE(LinkSockets(from_, to_).ok());
  EXPECT_EQ(InodeOf(to_ + "/control"), InodeOf(from_ + "/control"));
  EXPECT_EQ(Count(), 1u);
  EXPECT_EQ(fs::file_size(folder_ / "precious"), 4u);
  // A folder that is none is refused.
  fs::remove_all(to_);
  fs::create_symlink(from_, to_);
  EXPECT_FALSE(LinkSockets("", to_).ok());
  EXPECT_NE(InodeOf(from_ + "/control"), 0u);
}

}  // namespace
}  // namespace sluice::mps
